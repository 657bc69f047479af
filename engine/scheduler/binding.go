package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// binding is the binding cycle of one Pod. It is replaced, not changed.
type binding struct {
	N     uint64 // of the scheduling cycle before it
	Pod   *queued
	Info  *framework.PodInfo // the assumed Pod
	Next  stage.ID
	State framework.CycleState
	Host  string
}

// bindTag comes back with the API server's answer to a binding.
type bindTag struct {
	Key   string
	Cycle uint64
}

// reserve assumes the Pod on its node and lets the Reserve plugins set things aside.
func (s *Scheduler) reserve(f *profile, c *cycle) {
	pod := *c.Pod.Info.Pod // the rest of it is shared
	pod.Spec.NodeName = c.Host
	assumed := *c.Pod.Info
	assumed.Pod = &pod
	s.s.nodes.addPod(&assumed, true)
	s.unnominate(assumed.Key)
	h := s.hop(&assumed, stage.Reserve, "Reserve")
	for _, p := range f.reserve {
		if st := p.Reserve(&c.State, &assumed, c.Host); !st.IsSuccess() {
			s.refusedLate(f, c, h, "Reserve", p.Name(), st)
			return
		}
	}
	h.Message = c.Host
	s.log.Record(h)
	c.Next = stage.Permit
	s.goOn(c, s.cfg.Step)
}

// permit is the last word of the scheduling cycle; then the next Pod may come while this
// one is bound.
func (s *Scheduler) permit(f *profile, c *cycle) {
	assumed := s.s.nodes.info(c.Pod.Info.UID())
	if assumed == nil { // the Pod was deleted meanwhile
		s.queue.done(c.Pod.Info.UID())
		s.s.cycle = nil
		s.schedule()
		return
	}
	h := s.hop(assumed, stage.Permit, "Permit")
	for _, p := range f.permit {
		if st := p.Permit(&c.State, assumed, c.Host); !st.IsSuccess() {
			s.refusedLate(f, c, h, "Permit", p.Name(), st)
			return
		}
	}
	s.log.Record(h)
	b := &binding{N: c.N, Pod: c.Pod, Info: assumed, Next: stage.PreBind, State: c.State, Host: c.Host}
	b.State.Snapshot = nil
	s.s.bindings[assumed.Key] = b
	s.queue.done(assumed.UID()) // a failure from here on means back-off, not unschedulable
	s.s.cycle = nil
	s.k.Send(ID, s.cfg.Step, bindStep{assumed.Key, b.N})
	s.schedule()
}

// refusedLate ends a cycle whose Pod had a node already.
func (s *Scheduler) refusedLate(f *profile, c *cycle, h trace.Hop, point, plugin string, st *framework.Status) {
	s.unreserve(f, &c.State, c.Pod.Info, c.Host)
	if st.IsRejected() {
		v := framework.Verdicts{Nodes: []framework.NodeStatus{{Node: c.Host, Status: st}}}
		h.Outcome, h.Reason, h.Message = trace.Denied, plugin, framework.FitErrorMessage(1, "", &v, "")
		c.Rejectors = insert(nil, plugin)
	} else {
		h.Outcome, h.Reason, h.Message = trace.Retry, plugin, fmt.Sprintf("running %s plugin %q: %s", point, plugin, st.Message())
	}
	s.log.Record(h)
	empty := ""
	c.Nomination = &empty
	s.failed(c, h.Message, st.IsRejected())
}

// unreserve takes back what was reserved and forgets that the Pod was assumed.
func (s *Scheduler) unreserve(f *profile, state *framework.CycleState, p *framework.PodInfo, host string) {
	for i := len(f.reserve) - 1; i >= 0; i-- {
		f.reserve[i].Unreserve(state, p, host)
	}
	if s.s.nodes.assumed(p.UID()) {
		s.s.nodes.removePod(p.UID())
	}
}

// runBindStep runs one extension point of a binding cycle.
func (s *Scheduler) runBindStep(e bindStep) {
	was := s.s.bindings[e.Key]
	if was == nil || was.N != e.Cycle {
		return
	}
	b := *was
	f := s.profiles.of(b.Info)
	switch b.Next {
	case stage.PreBind:
		h := s.hop(b.Info, stage.PreBind, "PreBind")
		for _, p := range f.preBind {
			if st := p.PreBind(&b.State, b.Info, b.Host); !st.IsSuccess() {
				s.bindingFailed(f, &b, h, fmt.Sprintf("running PreBind plugin %q: %s", p.Name(), st.Message()))
				return
			}
		}
		s.log.Record(h)
		b.Next = stage.Bind
		s.s.bindings[e.Key] = &b
		s.k.Send(ID, s.cfg.Step, e)
	case stage.Bind:
		h := s.hop(b.Info, stage.Bind, "POST binding")
		h.To, h.Message = stage.APIServer, b.Host
		s.log.Record(h)
		b.Next = stage.PostBind
		s.s.bindings[e.Key] = &b
		for _, p := range f.bind {
			if !p.Bind(binder{s, b.N}, &b.State, b.Info, b.Host).IsSkip() {
				break
			}
		}
	}
}

// binder sends the binding of one cycle.
type binder struct {
	s *Scheduler
	n uint64
}

// Bind implements framework.Binder.
func (b binder) Bind(pod *corev1.Pod, node string) {
	b.s.c.BindAs(pod, node, background(pod), bindTag{kube.KeyOf(pod), b.n})
}

// bound takes the API server's answer to a binding.
func (s *Scheduler) bound(t bindTag, a wire.Answer) {
	b := s.s.bindings[t.Key]
	if b == nil || b.N != t.Cycle {
		return
	}
	f := s.profiles.of(b.Info)
	if err := a.Err(); err != nil {
		h := s.hop(b.Info, stage.Bind, "POST binding")
		h.From, h.To = stage.APIServer, stage.Scheduler
		s.bindingFailed(f, b, h, fmt.Sprintf("running Bind plugin %q: %s", f.bind[0].Name(), err))
		return
	}
	delete(s.s.bindings, t.Key)
	f.recorder.EventAction(b.Info.Pod, corev1.EventTypeNormal, "Scheduled", "Binding",
		fmt.Sprintf("Successfully assigned %v/%v to %v", b.Info.Pod.Namespace, b.Info.Pod.Name, b.Host))
	for _, p := range f.postBind {
		p.PostBind(&b.State, b.Info, b.Host)
	}
	h := s.hop(b.Info, stage.PostBind, "PostBind")
	h.Reason, h.Message = "Scheduled", fmt.Sprintf("Successfully assigned %v/%v to %v", b.Info.Pod.Namespace, b.Info.Pod.Name, b.Host)
	s.log.Record(h)
	s.schedule()
}

// bindingFailed takes everything back; the Pod is tried again after its back-off.
func (s *Scheduler) bindingFailed(f *profile, b *binding, h trace.Hop, message string) {
	h.Outcome, h.Reason, h.Message = trace.Retry, "FailedScheduling", message
	s.log.Record(h)
	delete(s.s.bindings, b.Info.Key)
	freed := s.s.nodes.assumed(b.Info.UID())
	s.unreserve(f, &b.State, b.Info, b.Host)
	if freed {
		s.moveAll(happened{Event: podEvent(framework.Delete), Old: b.Info.Pod}, nil)
	}
	empty := ""
	s.handleFailure(b.Pod, nil, message, false, &empty)
}
