package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// noteLengthLimit is the longest text of an event.
const noteLengthLimit = 1024

// failed ends the running scheduling cycle without a node.
func (s *Scheduler) failed(c *cycle, message string, rejected bool) {
	s.s.cycle = nil
	rejectors := c.Rejectors
	if !rejected {
		rejectors = nil
	}
	nomination := c.Nomination
	if c.State.Snapshot != nil && c.State.Snapshot.Nodes.Len() == 0 || !rejected {
		empty := ""
		nomination = &empty
	}
	s.handleFailure(c.Pod, rejectors, message, rejected, nomination)
}

// handleFailure puts the Pod back into the queue and tells the world: an event, and the
// condition PodScheduled=False.
func (s *Scheduler) handleFailure(q *queued, rejectors []string, message string, rejected bool, nomination *string) {
	pod := q.Info.Pod
	cached, known := s.podCache.Get(pod.Namespace, pod.Name)
	back := *q
	requeued := false
	switch {
	case !known || finished(cached) || assigned(cached): // gone, or bound by somebody else
		s.queue.done(q.Info.UID())
	case cached.UID != pod.UID: // deleted and made anew meanwhile
		s.queue.done(q.Info.UID())
		s.schedule()
		return
	default:
		pod, requeued = cached, true
		back.Info, back.Rejectors = q.Info.WithPod(pod), rejectors
		s.queue.fail(&back, s.k.Now())
		if nomination != nil {
			s.unnominate(back.Info.Key)
			s.nominate(back.Info, *nomination)
		}
	}
	s.profiles.of(q.Info).recorder.EventAction(pod, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", truncated(message))
	reason := corev1.PodReasonUnschedulable
	if !rejected {
		reason = corev1.PodReasonSchedulerError
	}
	s.patchStatus(pod, reason, message, nomination)

	if requeued {
		s.recordRequeue(back.Info, string(reason))
	}
	s.schedule()
}

// recordRequeue says where a Pod waits after an attempt that failed.
func (s *Scheduler) recordRequeue(info *framework.PodInfo, reason string) {
	p := s.queue.get(info.Key)
	h := s.hop(info, stage.QueueSort, "Requeue")
	h.Outcome, h.Reason, h.Message = trace.Waiting, reason, string(p.Queue)
	h.Detail = s.queueDetail(info, "")
	hop := s.log.Record(h)
	s.queue.replace(p, func(p *queued) { p.Hop = hop })
}

func truncated(message string) string {
	const suffix = " ..."
	if len(message) <= noteLengthLimit {
		return message
	}
	return message[:noteLengthLimit-len(suffix)] + suffix
}

// patchTag marks answers that need no attention: the watch brings what came of them.
type patchTag struct{ Key string }

// patchStatus writes the condition and the nomination, if they differ from what is there.
func (s *Scheduler) patchStatus(pod *corev1.Pod, reason, message string, nomination *string) {
	status := pod.Status.DeepCopy()
	condition := &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.PodScheduled),
	}
	changed := s.setCondition(status, condition)
	if nomination != nil && *nomination != status.NominatedNodeName {
		status.NominatedNodeName, changed = *nomination, true
	}
	if changed {
		s.writeStatus(pod, status, patchTag{kube.KeyOf(pod)})
	}
}

// writeStatus sends a patch of a Pod's status.
func (s *Scheduler) writeStatus(pod *corev1.Pod, status *corev1.PodStatus, tag any) {
	out := pod.DeepCopy()
	out.Status = *status
	s.c.Do(wire.Request{
		Verb: wire.Patch, Resource: kube.Pods, Subresource: "status", Namespace: out.Namespace, Name: out.Name,
		Object: out, Tag: tag, Background: background(pod),
	})
}

// setCondition is upstream's UpdatePodCondition on the simulated clock: it reports whether
// anything changed, and sets lastTransitionTime when the status did.
func (s *Scheduler) setCondition(status *corev1.PodStatus, c *corev1.PodCondition) bool {
	c.LastTransitionTime = metav1.NewTime(s.k.Now().Wall().Truncate(1e9))
	_, old := podutil.GetPodCondition(status, c.Type)
	if old == nil {
		status.Conditions = append(status.Conditions, *c)
		return true
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	same := old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message &&
		old.ObservedGeneration == c.ObservedGeneration && old.LastProbeTime.Equal(&c.LastProbeTime) && old.LastTransitionTime.Equal(&c.LastTransitionTime)
	*old = *c
	return !same
}
