package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/cri"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// What the kubelet asked the runtime for.
type askKind string

const (
	askOp      askKind = "op"      // the current operation of a worker's pass
	askStop    askKind = "stop"    // StopContainer of a kill
	askHook    askKind = "hook"    // a preStop hook
	askProbe   askKind = "probe"   // an exec probe
	askPull    askKind = "pull"    // the pull at the head of the queue
	askRemove  askKind = "remove"  // of a sandbox whose Pod is gone, of an old container
	askStatus  askKind = "status"  // is the runtime up?
	askImages  askKind = "images"  // for the node's status
	askRecover askKind = "recover" // after a restart of the kubelet
	askServe   askKind = "serve"   // for a caller of the kubelet's own server
)

// asked is a request to the runtime that has no answer yet.
type asked struct {
	What      askKind
	UID       types.UID
	Container string
	Seq       uint64 // what the answer is compared with: Await of a worker, Seq of a kill
	Probe     probeKey
	At        kernel.Time
}

// runtimeTag comes back with the runtime's answers and the network's.
type runtimeTag struct{ Seq uint64 }

// criLatency is one way over the runtime's socket.
const criLatency = 200 * time.Microsecond

// What the runtime's client says when the socket is not there, or breaks off.
const (
	socketMissing = `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: no such file or directory"`
	socketBroke   = "rpc error: code = Unavailable desc = error reading from server: EOF"
)

// ask sends a request to the node's runtime; its answer comes back to responded.
func (kl *Kubelet) ask(a asked, req any) {
	kl.Seq++
	a.At = kl.k.Now()
	kl.Asked[kl.Seq] = a
	tag := runtimeTag{kl.Seq}
	if kl.board.Hits(fault.ContainerdStopped, kl.cfg.Node) {
		kl.k.Send(kl.self, criLatency, cri.Response{Tag: tag, Err: socketMissing})
		return
	}
	kl.k.Send(kl.runtime, criLatency, kl.addressed(req, tag))
}

func (kl *Kubelet) addressed(req, tag any) any {
	switch r := req.(type) {
	case cri.RunPodSandbox:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.StopPodSandbox:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.RemovePodSandbox:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.PullImage:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.CreateContainer:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.StartContainer:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.StopContainer:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.RemoveContainer:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.ExecSync:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.Status:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.ImageStatus:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.ListImages:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.ListContainers:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	case cri.ContainerLog:
		r.ReplyTo, r.Tag = kl.self, tag
		return r
	}
	panic("kubelet: not a request to the runtime")
}

// breakOff fails what waits for a runtime that has gone away meanwhile.
func (kl *Kubelet) breakOff() {
	for _, seq := range slices.Sorted(maps.Keys(kl.Asked)) {
		if kl.Asked[seq].What != askStatus {
			kl.k.Send(kl.self, 0, cri.Response{Tag: runtimeTag{seq}, Err: socketBroke})
		}
	}
}

// responded takes the runtime's answer to where it was waited for.
func (kl *Kubelet) responded(r cri.Response) {
	tag, ok := r.Tag.(runtimeTag)
	if !ok {
		return
	}
	a, ok := kl.Asked[tag.Seq]
	if !ok {
		return
	}
	delete(kl.Asked, tag.Seq)
	switch a.What {
	case askStatus:
		kl.runtimeStatus(r)
		return
	case askImages:
		kl.imagesListed(r)
		return
	case askRecover:
		kl.recovered(r)
		return
	case askPull:
		kl.pulled(r)
		return
	case askServe:
		kl.servedByRuntime(tag.Seq, r)
		return
	}
	w := kl.Workers[a.UID]
	if w == nil {
		return
	}
	switch a.What {
	case askOp:
		if w.Running && w.Await == a.Seq {
			w.Await = 0
			kl.opAnswered(w, r)
		}
	case askStop:
		kl.stopped(w, a, r)
	case askHook:
		kl.preStopped(w, a, r)
	case askProbe:
		kl.execProbed(w, a, r)
	}
}

// askFor is ask on behalf of the worker's current operation.
func (kl *Kubelet) askFor(w *worker, req any) {
	w.Await = kl.Seq + 1
	kl.ask(asked{What: askOp, UID: w.UID, Seq: w.Await}, req)
}

// containerEvent is the PLEG: a container changed by itself.
func (kl *Kubelet) containerEvent(e cri.ContainerEvent) {
	w := kl.Workers[types.UID(e.PodUID)]
	if w == nil {
		return
	}
	c := w.byID(e.ContainerID)
	if c == nil {
		return
	}
	in := &c.Current
	if in.ID != e.ContainerID {
		in = &c.Previous
	}
	switch e.Type {
	case cri.Started:
		return // the kubelet starts its containers itself and knows
	case cri.Stopped:
		known := in.State == stateExited // it was stopped, and the answer to that came first
		in.State, in.ExitCode, in.Reason, in.Message, in.FinishedAt = stateExited, e.ExitCode, e.Reason, e.Message, e.At
		if in.StartedAt == 0 && !in.NotStarted {
			in.StartedAt = e.At
		}
		if c.Kill.Stage == "" && !known {
			kl.died(w, c, in)
		}
		if in == &c.Current {
			kl.removeOlder(w, c)
		}
	}
	kl.lookAgain(w)
}

// died tells of a container that ended by itself.
func (kl *Kubelet) died(w *worker, c *container, in *instance) {
	spec, init := w.spec(c.Name)
	if spec == nil {
		return
	}
	h := trace.Hop{
		Stage: stage.Start, From: kl.containerd(), To: kl.me, Verb: "ContainerDied", Reason: in.Reason,
		Message: fmt.Sprintf("container %s ended with exit code %d", c.Name, in.ExitCode),
	}
	again := podutil.ContainerShouldRestart(*spec, w.Pod.Spec, in.ExitCode) && !(init && in.ExitCode == 0)
	switch {
	case again:
		h.Outcome = trace.Retry
	case in.ExitCode != 0:
		h.Outcome = trace.Failed
	}
	kl.hop(w, h)
}

// removeOlder has the runtime forget the dead instance before the one that has just died:
// of each container one is kept for kubectl logs --previous. The status goes on telling of
// the older one until the next starts, but its log is gone.
func (kl *Kubelet) removeOlder(w *worker, c *container) {
	if c.Previous.ID != "" && !c.Previous.Removed {
		c.Previous.Removed = true
		kl.ask(asked{What: askRemove, UID: w.UID}, cri.RemoveContainer{ContainerID: c.Previous.ID})
	}
}

// lookAgain lets the next relist find that the runtime has changed.
func (kl *Kubelet) lookAgain(w *worker) {
	if w.Running {
		w.Changed = true
		return
	}
	if w.Phase != finished {
		kl.schedule(w, max(kl.relistAfter(kl.k.Now()), kl.relistAfter(w.Last)))
	}
}

// recovered takes over what the runtime has run while the kubelet was away.
func (kl *Kubelet) recovered(r cri.Response) {
	if r.Err == "" {
		for _, s := range r.Containers {
			if w := kl.Workers[types.UID(s.PodUID)]; w != nil {
				w.adopt(s)
			}
		}
	}
	for _, w := range kl.sorted() {
		switch {
		case w.Phase != finished:
			kl.requestSync(w)
		case w.Pod.DeletionTimestamp != nil:
			kl.finalDelete(w)
		}
		kl.patchStatus(w)
	}
}

func (w *worker) adopt(s cri.ContainerStatus) {
	c := w.byID(s.ContainerID)
	if c == nil {
		return
	}
	in := &c.Current
	if in.ID != s.ContainerID {
		in = &c.Previous
	}
	if s.State == stateExited {
		in.State, in.ExitCode, in.Reason, in.Message = stateExited, s.ExitCode, s.Reason, s.Message
		in.FinishedAt = s.FinishedAt
	}
}

func (w *worker) byID(id string) *container {
	for _, name := range slices.Sorted(maps.Keys(w.Containers)) {
		if c := w.Containers[name]; id != "" && (c.Current.ID == id || c.Previous.ID == id) {
			return c
		}
	}
	return nil
}
