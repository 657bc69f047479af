package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// eviction is the removal of the victims of one preemption, one after the other. While
// it runs the preemptor stays out of the active queue. Replaced, not changed.
type eviction struct {
	Preemptor types.UID
	Scheduler string // the preemptor's profile
	Node      string
	Victims   []victim // still to evict; the first is under way
}

type victim struct {
	Namespace, Name string
	UID             types.UID
}

// evictTag comes back with the answers to the two requests for each victim: the patch of
// its status, then its deletion.
type evictTag struct {
	Preemptor types.UID
	Victim    types.UID
	Deleted   bool
}

// evict removes the victims of a preemption: each gets the condition DisruptionTarget and
// is then deleted. Pods of lower priority that were nominated to the node lose that.
func (s *Scheduler) evict(pod *framework.PodInfo, r *framework.PostFilterResult) {
	e := eviction{Preemptor: pod.UID(), Scheduler: pod.Pod.Spec.SchedulerName, Node: r.NominatedNode}
	for _, v := range r.Victims {
		if v.Pod.DeletionTimestamp == nil {
			e.Victims = append(e.Victims, victim{v.Pod.Namespace, v.Pod.Name, v.UID()})
		}
	}
	for _, key := range s.s.nominated[r.NominatedNode] {
		if q := s.queue.get(key); q != nil && q.Info.Priority < pod.Priority && q.Info.Pod.Status.NominatedNodeName != "" {
			status := q.Info.Pod.Status.DeepCopy()
			status.NominatedNodeName = ""
			s.writeStatus(q.Info.Pod, status, patchTag{key})
		}
	}
	s.evictNext(e)
}

// evictNext begins with the next victim.
func (s *Scheduler) evictNext(e eviction) {
	for len(e.Victims) > 0 {
		v := e.Victims[0]
		pod, ok := s.podCache.Get(v.Namespace, v.Name)
		if !ok || pod.UID != v.UID {
			e.Victims = e.Victims[1:]
			continue
		}
		s.s.evictions[e.Preemptor] = e
		status := pod.Status.DeepCopy()
		s.setCondition(status, &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			Message:            e.Scheduler + ": preempting to accommodate a higher priority pod",
			ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.DisruptionTarget),
		})
		s.writeStatus(pod, status, evictTag{e.Preemptor, v.UID, false})
		return
	}
	delete(s.s.evictions, e.Preemptor)
}

// evicting takes an answer about the victim that is being evicted.
func (s *Scheduler) evicting(t evictTag, a wire.Answer) {
	e, ok := s.s.evictions[t.Preemptor]
	if !ok || len(e.Victims) == 0 || e.Victims[0].UID != t.Victim {
		return
	}
	v := e.Victims[0]
	err := a.Err()
	pod, known := s.podCache.Get(v.Namespace, v.Name)
	if err == nil && !t.Deleted && known {
		s.c.Delete(kube.Pods, v.Namespace, v.Name, &metav1.DeleteOptions{}, evictTag{t.Preemptor, t.Victim, true})
		s.profiles.get(e.Scheduler).recorder.EventAction(pod, corev1.EventTypeNormal, "Preempted", "Preempting",
			fmt.Sprintf("Preempted by pod %v on node %v", e.Preemptor, e.Node))
		return
	}
	if err != nil && !apierrors.IsNotFound(err) { // give up; the preemptor is tried again
		delete(s.s.evictions, t.Preemptor)
		s.activate(t.Preemptor)
		return
	}
	e.Victims = e.Victims[1:]
	s.evictNext(e)
}

// preempting reports whether the removal of a Pod's victims has not yet begun for all of
// them: so long the Pod is not tried again.
func (s *Scheduler) preempting(uid types.UID) bool {
	e, ok := s.s.evictions[uid]
	if !ok || len(e.Victims) > 1 {
		return ok
	}
	last, known := s.podCache.Get(e.Victims[0].Namespace, e.Victims[0].Name)
	return known && last.DeletionTimestamp == nil
}

// activate wakes a Pod whose preemption came to nothing.
func (s *Scheduler) activate(uid types.UID) {
	h := happened{Event: framework.EventForceActivate}
	s.woken(s.queue.move(h, s.k.Now(), func(q *queued) bool { return q.Info.UID() == uid }), h.Event.Label())
	s.schedule()
}
