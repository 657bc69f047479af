package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// nodeChanged brings the node cache up to date and wakes whom it may help.
func (s *Scheduler) nodeChanged(c client.Change[*corev1.Node]) {
	ev := framework.ClusterEvent{Resource: framework.Node, Action: framework.Add}
	switch c.Type {
	case wire.Added:
		s.s.nodes.setNode(c.New)
		s.moveAll(happened{Event: ev, Obj: c.New}, nil)
	case wire.Deleted:
		ev.Action = framework.Delete
		s.moveAll(happened{Event: ev, Old: c.Old}, nil)
		s.s.nodes.removeNode(c.Old.Name)
	default:
		s.s.nodes.setNode(c.New)
		if !s.anyoneWaits() {
			return
		}
		for _, ev := range framework.NodeEvents(c.Old, c.New) {
			s.moveAll(happened{ev, c.Old, c.New}, nil)
		}
	}
}

// anyoneWaits reports whether a cluster change could matter to any Pod.
func (s *Scheduler) anyoneWaits() bool {
	return s.queue.s.parked.Len() > 0 || len(s.queue.s.inFlight) > 0
}

// moveAll puts a change to the unschedulable Pods.
func (s *Scheduler) moveAll(h happened, check func(*queued) bool) {
	if s.anyoneWaits() {
		s.woken(s.queue.move(h, s.k.Now(), check), h.Event.Label())
	}
}

// finished reports whether a Pod runs no more; such Pods do not exist for the scheduler
// (upstream's informer does not even list them).
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func assigned(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

func (s *Scheduler) responsible(pod *corev1.Pod) bool {
	return s.profiles.get(pod.Spec.SchedulerName) != nil
}

// podChanged sorts out what a change of a Pod means: for the queue, for the node cache.
func (s *Scheduler) podChanged(c client.Change[*corev1.Pod]) {
	old, pod := c.Old, c.New
	if c.Type == wire.Added || old != nil && finished(old) {
		old = nil
	}
	if c.Type == wire.Deleted || finished(pod) {
		pod = nil
	}
	if old != nil && pod != nil && old.UID != pod.UID { // deleted and made anew, unseen
		s.podChanged(client.Change[*corev1.Pod]{Type: wire.Deleted, Old: old})
		old = nil
	}
	switch {
	case pod == nil && c.Old == nil, old == nil && pod == nil:
	case pod == nil:
		s.podGone(old)
	case assigned(pod):
		s.assignedPod(old, pod)
	case old == nil:
		if s.responsible(pod) {
			s.enqueue(pod)
		}
	default:
		if s.responsible(pod) {
			s.waitingPodChanged(old, pod)
		}
	}
}

// podGone forgets a Pod that was deleted or has finished.
func (s *Scheduler) podGone(old *corev1.Pod) {
	key := kube.KeyOf(old)
	s.unnominate(key)
	if assigned(old) {
		s.s.nodes.removePod(old.UID)
		s.moveAll(happened{Event: podEvent(framework.Delete), Old: old}, nil)
		return
	}
	if !s.responsible(old) {
		return
	}
	s.queue.take(key)
	if s.s.nodes.assumed(old.UID) { // its binding will fail; its room is free at once
		was := s.s.nodes.info(old.UID).Pod
		s.s.nodes.removePod(old.UID)
		s.moveAll(happened{Event: podEvent(framework.Delete), Old: was}, nil)
		return
	}
	if old.Status.NominatedNodeName != "" {
		s.moveAll(happened{Event: podEvent(framework.Delete), Old: old}, upTo(old))
	}
}

func podEvent(a framework.ActionType) framework.ClusterEvent {
	return framework.ClusterEvent{Resource: framework.AssignedPod, Action: a}
}

// upTo selects the waiting Pods that had to yield to a nominated one.
func upTo(pod *corev1.Pod) func(*queued) bool {
	var limit int32
	if pod.Spec.Priority != nil {
		limit = *pod.Spec.Priority
	}
	return func(q *queued) bool { return q.Info.Priority <= limit }
}

// assignedPod notes that a Pod is on a node: bound by this scheduler, by another, or
// changed since.
func (s *Scheduler) assignedPod(old, pod *corev1.Pod) {
	was := s.s.nodes.info(pod.UID)
	info := was.WithPod(pod)
	s.s.nodes.addPod(info, false)
	if old == nil || !assigned(old) {
		key := kube.KeyOf(pod)
		s.unnominate(key)
		if s.responsible(pod) {
			s.queue.take(key)
		}
		s.moveAll(happened{Event: podEvent(framework.Add), Obj: pod}, nil)
		return
	}
	if !s.anyoneWaits() || was == nil {
		return
	}
	for _, ev := range framework.PodEvents(was, info, false) {
		s.moveAll(happened{ev, old, pod}, nil)
	}
}

// enqueue takes in a Pod that waits for a node.
func (s *Scheduler) enqueue(pod *corev1.Pod) {
	info := framework.NewPodInfo(pod)
	s.nominate(info, pod.Status.NominatedNodeName)
	q, refused := s.queue.add(info, s.k.Now(), 0)
	h := s.hop(info, stage.PreEnqueue, "watch")
	h.From, h.To = stage.APIServer, stage.Scheduler
	if refused != nil {
		h.Outcome, h.Reason, h.Message = trace.Waiting, "SchedulingGated", refused.Message()
	}
	h.Detail = s.queueDetail(info, "")
	hop := s.log.Record(h)
	s.queue.replace(q, func(q *queued) { q.Hop = hop })
}

// waitingPodChanged brings a waiting Pod up to date and sees whether the change helps it.
func (s *Scheduler) waitingPodChanged(old, pod *corev1.Pod) {
	if s.s.nodes.assumed(pod.UID) {
		if pod.DeletionTimestamp != nil && old.DeletionTimestamp == nil {
			was := s.s.nodes.info(pod.UID).Pod
			s.s.nodes.removePod(pod.UID)
			s.moveAll(happened{Event: podEvent(framework.Delete), Old: was}, nil)
		}
		return
	}
	key := kube.KeyOf(pod)
	q := s.queue.get(key)
	switch {
	case s.queue.isInFlight(pod.UID):
		was := framework.NewPodInfo(old)
		for _, ev := range framework.PodEvents(was, was.WithPod(pod), true) {
			s.queue.saw(happened{ev, old, pod})
		}
	case q == nil:
		s.enqueue(pod)
	default:
		s.updateQueued(q, old, pod)
	}
	if n := old.Status.NominatedNodeName; n != pod.Status.NominatedNodeName {
		s.unnominate(key)
		s.nominate(framework.NewPodInfo(pod), pod.Status.NominatedNodeName)
		if n != "" {
			s.moveAll(happened{Event: podEvent(framework.Delete), Old: old}, upTo(old))
		}
	}
}

func (s *Scheduler) updateQueued(q *queued, old, pod *corev1.Pod) {
	was := q.Info
	q = s.queue.replace(q, func(q *queued) { q.Info = q.Info.WithPod(pod) })
	if q.Queue != unschedulableQ && q.Queue != gatedQ {
		return
	}
	for _, ev := range framework.PodEvents(was, q.Info, true) {
		if !s.queue.worth(q, happened{ev, old, pod}) {
			continue
		}
		if q = s.queue.wake(q, s.k.Now()); q.Queue != gatedQ {
			s.woken([]*queued{q}, ev.Label())
			return
		}
	}
}

// woken records for each Pod that it leaves the unschedulable queue, and why.
func (s *Scheduler) woken(pods []*queued, why string) {
	for _, q := range pods {
		if q.Queue == gatedQ {
			continue
		}
		h := s.hop(q.Info, stage.PreEnqueue, "requeue")
		h.Outcome, h.Reason = trace.Retry, why
		h.Detail = s.queueDetail(q.Info, "")
		cause := s.k.Cause()
		hop := s.log.Record(h)
		s.k.SetCause(cause)
		s.queue.replace(q, func(q *queued) { q.Hop = hop })
	}
}

// nominate remembers that preemption made room for a Pod on a node.
func (s *Scheduler) nominate(info *framework.PodInfo, node string) {
	if node == "" || slices.Contains(s.s.nominated[node], info.Key) {
		return
	}
	s.s.nominated[node] = append(slices.Clone(s.s.nominated[node]), info.Key)
}

func (s *Scheduler) unnominate(key string) {
	for node, keys := range s.s.nominated {
		if i := slices.Index(keys, key); i >= 0 {
			s.s.nominated[node] = slices.Delete(slices.Clone(keys), i, i+1)
		}
	}
}

// nominatedPods returns the nominated Pods by node, as the cache knows them.
func (s *Scheduler) nominatedPods() map[string][]*framework.PodInfo {
	var out map[string][]*framework.PodInfo
	for node, keys := range s.s.nominated {
		for _, key := range keys {
			if q := s.queue.get(key); q != nil {
				if out == nil {
					out = map[string][]*framework.PodInfo{}
				}
				out[node] = append(out[node], q.Info)
			}
		}
	}
	return out
}
