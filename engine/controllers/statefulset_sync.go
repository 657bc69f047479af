package controllers

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/trace"
)

// reconcile goes through the members in order: create what is missing, wait for what is
// not Ready, delete what is too many from the end, and then what is of an old revision.
// With podManagementPolicy Parallel nobody waits for anybody.
func (s *statefulSync) reconcile(pods []*corev1.Pod) error {
	members := make([]*corev1.Pod, *s.set.Spec.Replicas)
	var condemned []*corev1.Pod
	for _, p := range pods {
		if i := ordinal(s.set, p.Name) - s.first(); i >= 0 && i < len(members) {
			members[i] = p
		} else {
			condemned = append(condemned, p)
		}
	}
	slices.SortFunc(condemned, func(a, b *corev1.Pod) int { return ordinal(s.set, b.Name) - ordinal(s.set, a.Name) })
	var failure error
	if s.set.DeletionTimestamp == nil {
		failure = s.act(members, condemned)
	}
	if err := s.writeStatus(pods); failure == nil {
		failure = err
	}
	return failure
}

func (s *statefulSync) act(members, condemned []*corev1.Pod) error {
	ordered := s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	for i, p := range members {
		wait, err := s.bring(i+s.first(), p)
		if err != nil || wait && ordered {
			return err
		}
	}
	for i, p := range condemned {
		if p.DeletionTimestamp == nil && (!ordered || s.available(p) || i == len(condemned)-1) {
			if err := s.delete(p, fmt.Sprintf("StatefulSet %s wants %s", s.set.Name, count(int(*s.set.Spec.Replicas), "replica"))); err != nil {
				return err
			}
		}
		if ordered {
			return nil
		}
	}
	if s.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return nil
	}
	return s.rollForward(members)
}

// bring sees to one member; it reports whether the members after it have to wait.
func (s *statefulSync) bring(n int, p *corev1.Pod) (bool, error) {
	switch {
	case p == nil:
		return true, s.create(n)
	case podutil.IsPodTerminal(p) && p.DeletionTimestamp == nil:
		return true, s.delete(p, fmt.Sprintf("Pod %s has ended", p.Name))
	case p.Status.Phase == corev1.PodPending:
		return true, s.makeClaims(n, p)
	}
	return p.DeletionTimestamp != nil || !s.available(p), nil
}

// rollForward deletes the last member that is of another revision, once all are available.
func (s *statefulSync) rollForward(members []*corev1.Pod) error {
	for _, p := range members {
		if p == nil || p.DeletionTimestamp != nil || !s.available(p) {
			return nil
		}
	}
	lowest := 0
	if u := s.set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		lowest = int(*u.Partition)
	}
	for i := len(members) - 1; i >= lowest; i-- {
		if p := members[i]; p.Labels[appsv1.StatefulSetRevisionLabel] != s.update.Name {
			return s.delete(p, fmt.Sprintf("Pod %s is of revision %s, wanted is %s", p.Name, p.Labels[appsv1.StatefulSetRevisionLabel], s.update.Name))
		}
	}
	return nil
}

func (s *statefulSync) available(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && podutil.IsPodAvailable(p, s.set.Spec.MinReadySeconds, metav1.NewTime(s.state.Started.Wall()))
}

func (s *statefulSync) create(n int) error {
	pod, err := s.member(n)
	if err != nil {
		return err
	}
	s.hop(trace.Hop{
		Verb: "reconcile StatefulSet " + s.set.Name, Object: ref("StatefulSet", s.set),
		Message: fmt.Sprintf("StatefulSet %s wants %s and has no %s: create it", s.set.Name, count(int(*s.set.Spec.Replicas), "replica"), pod.Name),
	})
	if err := s.makeClaims(n, pod); err != nil {
		s.told("Create", "Pod "+pod.Name, "", err)
		return err
	}
	_, err = s.do(create(pod))
	if apierrors.IsAlreadyExists(err) {
		return err
	}
	s.told("Create", "Pod "+pod.Name, "successful", err)
	return err
}

func (s *statefulSync) delete(p *corev1.Pod, why string) error {
	s.hop(trace.Hop{
		Verb: "reconcile StatefulSet " + s.set.Name, Object: ref("StatefulSet", s.set), Message: why + ": delete " + p.Name,
	})
	_, err := s.do(remove(p, metav1.DeleteOptions{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.told("Delete", "Pod "+p.Name, "successful", err)
	return err
}

// makeClaims creates the claims that a member lacks.
func (s *statefulSync) makeClaims(n int, p *corev1.Pod) error {
	for _, pvc := range s.claimsOf(n) {
		if there := s.in.Claims[pvc.Name]; there != nil {
			if there.DeletionTimestamp != nil {
				return fmt.Errorf("pvc %s is being deleted", pvc.Name)
			}
			continue
		}
		name := pvc.Name
		_, err := s.do(create(pvc))
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		what := fmt.Sprintf("Claim %s Pod %s", name, p.Name)
		if err != nil {
			what = fmt.Sprintf("Claim %s for Pod %s", name, p.Name)
		}
		s.told("Create", what, "success", err)
		if err != nil {
			return fmt.Errorf("failed to create PVC %s: %w", name, err)
		}
	}
	return nil
}

// told records upstream's event about something done for a member.
func (s *statefulSync) told(verb, what, done string, err error) {
	if err == nil {
		s.event(s.set, corev1.EventTypeNormal, "Successful"+verb, fmt.Sprintf("%s %s in StatefulSet %s %s", verb, what, s.set.Name, done))
		return
	}
	s.event(s.set, corev1.EventTypeWarning, "Failed"+verb, fmt.Sprintf("%s %s in StatefulSet %s failed error: %s", verb, what, s.set.Name, err))
}

func (s *statefulSync) writeStatus(pods []*corev1.Pod) error {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: s.set.Generation, CurrentRevision: s.current.Name, UpdateRevision: s.update.Name,
		CollisionCount: &s.collisions, Conditions: s.set.Status.Conditions,
	}
	later := false
	for _, p := range pods {
		status.Replicas++
		if p.Status.Phase == corev1.PodRunning && podutil.IsPodReady(p) {
			status.ReadyReplicas++
			if s.available(p) {
				status.AvailableReplicas++
			} else {
				later = true
			}
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		if rev := p.Labels[appsv1.StatefulSetRevisionLabel]; rev == s.current.Name {
			status.CurrentReplicas++
		}
		if p.Labels[appsv1.StatefulSetRevisionLabel] == s.update.Name {
			status.UpdatedReplicas++
		}
	}
	if want := *s.set.Spec.Replicas; status.UpdatedReplicas == want && status.ReadyReplicas == want && status.Replicas == want {
		status.CurrentReplicas, status.CurrentRevision = status.UpdatedReplicas, status.UpdateRevision
	}
	if later {
		s.once(func() {
			s.a.q.addAfter(s.state.Key, time.Duration(s.set.Spec.MinReadySeconds)*time.Second)
		})
	}
	if equality.Semantic.DeepEqual(status, s.set.Status) {
		return nil
	}
	fresh := s.set.DeepCopy()
	fresh.Status = status
	_, err := s.do(updateStatus(fresh))
	return err
}
