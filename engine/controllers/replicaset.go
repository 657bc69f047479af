package controllers

import (
	"errors"
	"fmt"
	"reflect"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	upstream "k8s.io/kubernetes/pkg/controller"
	replicasetutil "k8s.io/kubernetes/pkg/controller/replicaset"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// burstReplicas is how many Pods one sync creates or deletes at most.
const burstReplicas = 500

// replicaSets is the ReplicaSet controller: it keeps as many Pods alive as spec.replicas
// says. Upstream: pkg/controller/replicaset.
type replicaSets struct {
	a    *actor
	rss  *client.Cache[*appsv1.ReplicaSet]
	pods *client.Cache[*corev1.Pod]
}

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

func newReplicaSets(a *actor) logic {
	c := &replicaSets{a: a}
	c.rss = watch(a, func(ch client.Change[*appsv1.ReplicaSet]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.pods = watch(a, c.podChanged)
	return c
}

func (c *replicaSets) podChanged(ch client.Change[*corev1.Pod]) {
	newOwner := c.enqueueOwner(ch.New)
	oldOwner := c.enqueueOwner(ch.Old)
	if newOwner || ch.New == nil || ch.New.DeletionTimestamp != nil {
		if newOwner && ch.Type == wire.Modified {
			c.availableLater(ch.Old, ch.New)
		}
		return
	}
	// An orphan: if it is new or its labels changed, somebody may want to adopt it.
	if ch.Old != nil && !oldOwner && reflect.DeepEqual(ch.Old.Labels, ch.New.Labels) {
		return
	}
	c.rss.Each(ch.New.Namespace, func(rs *appsv1.ReplicaSet) bool {
		if sel, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector); err == nil && !sel.Empty() && sel.Matches(labels.Set(ch.New.Labels)) {
			c.a.q.add(kube.KeyOf(rs))
		}
		return true
	})
}

func (c *replicaSets) enqueueOwner(p *corev1.Pod) bool {
	if p == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return false
	}
	if owner.Kind == replicaSetKind.Kind {
		if rs, ok := c.rss.Get(p.Namespace, owner.Name); ok && rs.UID == owner.UID {
			c.a.q.add(kube.KeyOf(rs))
		}
	}
	return true
}

// availableLater looks again when a Pod that just became Ready has been so for
// minReadySeconds.
func (c *replicaSets) availableLater(old, pod *corev1.Pod) {
	if podutil.IsPodReady(old) || !podutil.IsPodReady(pod) {
		return
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if rs, ok := c.rss.Get(pod.Namespace, owner.Name); ok && rs.Spec.MinReadySeconds > 0 {
		c.a.q.addAfter(kube.KeyOf(rs), time.Duration(rs.Spec.MinReadySeconds)*time.Second)
	}
}

// replicaSetInput is what a sync of one ReplicaSet looks at.
type replicaSetInput struct {
	ReplicaSet *appsv1.ReplicaSet
	Pods       []*corev1.Pod // those it owns, and orphans
	Related    []*corev1.Pod // of all ReplicaSets with the same controller
}

func (c *replicaSets) gather(key string) any {
	ns, name := split(key)
	rs, ok := c.rss.Get(ns, name)
	if !ok {
		return nil
	}
	in := replicaSetInput{ReplicaSet: rs}
	c.pods.Each(ns, func(p *corev1.Pod) bool {
		if owner := metav1.GetControllerOfNoCopy(p); owner == nil || owner.UID == rs.UID {
			in.Pods = append(in.Pods, p)
		}
		return true
	})
	if len(in.Pods) > int(*rs.Spec.Replicas) {
		in.Related = c.related(rs)
	}
	return in
}

// related returns the Pods of all ReplicaSets that have the same controller: scaling down
// prefers nodes on which many of them run.
func (c *replicaSets) related(rs *appsv1.ReplicaSet) []*corev1.Pod {
	var out []*corev1.Pod
	owner := metav1.GetControllerOf(rs)
	c.rss.Each(rs.Namespace, func(other *appsv1.ReplicaSet) bool {
		theirs := metav1.GetControllerOf(other)
		same := other.UID == rs.UID || owner != nil && theirs != nil && theirs.UID == owner.UID
		sel, err := metav1.LabelSelectorAsSelector(other.Spec.Selector)
		if !same || err != nil {
			return true
		}
		c.pods.Each(rs.Namespace, func(p *corev1.Pod) bool {
			if sel.Matches(labels.Set(p.Labels)) {
				out = append(out, p)
			}
			return true
		})
		return true
	})
	return out
}

func (c *replicaSets) sync(r *run, input any) error {
	in := input.(replicaSetInput)
	rs := in.ReplicaSet
	sel, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return nil // an invalid selector matches nothing and will not get better by trying
	}
	active, err := c.claimActive(r, rs, sel, in.Pods)
	if err != nil {
		return err
	}
	terminating := upstream.FilterClaimedPods(rs, sel, upstream.FilterTerminatingPods(in.Pods))
	var failure error
	if rs.DeletionTimestamp == nil {
		failure = c.manage(r, rs, active, in.Related)
	}
	if err := c.writeStatus(r, rs, active, terminating, failure); err != nil {
		return err
	}
	if failure != nil {
		return failure
	}
	if rs.Spec.MinReadySeconds > 0 {
		c.checkLater(r, rs, active)
	}
	return nil
}

// takes is about a millisecond for a hundred Pods, as upstream.
func (c *replicaSets) takes(input any) time.Duration {
	return time.Duration(len(input.(replicaSetInput).Pods)/100) * time.Millisecond
}

func (c *replicaSets) claimActive(r *run, rs *appsv1.ReplicaSet, sel labels.Selector, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	var active []*corev1.Pod
	for _, p := range upstream.FilterActivePods(silent, pods) {
		mine, err := claim(r, rs, replicaSetKind, sel, p)
		if err != nil {
			return nil, err
		}
		if mine {
			active = append(active, p)
		}
	}
	return active, nil
}

// manage creates missing Pods or deletes excess ones.
func (c *replicaSets) manage(r *run, rs *appsv1.ReplicaSet, active, related []*corev1.Pod) error {
	have, want := len(active), int(*rs.Spec.Replicas)
	diff := min(max(have-want, want-have), burstReplicas)
	if diff == 0 {
		return nil
	}
	verb := fmt.Sprintf("reconcile ReplicaSet %s %d→%d", rs.Name, have, want)
	if have < want {
		r.hop(trace.Hop{
			Verb: verb, Object: ref("ReplicaSet", rs),
			Message: fmt.Sprintf("ReplicaSet %s wants %s and has %d: create %d", rs.Name, count(want, "Pod"), have, diff),
		})
		return createPods(r, rs, diff, func() *corev1.Pod {
			pod, _ := upstream.GetPodFromTemplate(&rs.Spec.Template, rs, metav1.NewControllerRef(rs, replicaSetKind))
			pod.Namespace = rs.Namespace
			return pod
		})
	}
	r.hop(trace.Hop{
		Verb: verb, Object: ref("ReplicaSet", rs),
		Message: fmt.Sprintf("ReplicaSet %s wants %s and has %d: delete %d", rs.Name, count(want, "Pod"), have, diff),
	})
	return deletePods(r, rs, podsToDelete(active, related, diff, r.now()))
}

// createPods creates n Pods in batches of 1, 2, 4 …; the first failure ends it, so that
// a quota that is used up is not asked a hundred times.
func createPods(r *run, owner kube.Object, n int, pod func() *corev1.Pod) error {
	for batch := min(n, upstream.SlowStartInitialBatchSize); batch > 0; batch = min(2*batch, n) {
		reqs := make([]wire.Request, batch)
		for i := range reqs {
			reqs[i] = create(pod())
		}
		var failure error
		for _, ans := range r.all(reqs...) {
			if err := podCreated(r, owner, ans); err != nil {
				failure = err
			}
		}
		if failure != nil {
			return failure
		}
		n -= batch
	}
	return nil
}

func podCreated(r *run, owner kube.Object, ans wire.Answer) error {
	err := ans.Err()
	switch {
	case err == nil:
		r.event(owner, corev1.EventTypeNormal, upstream.SuccessfulCreatePodReason, "Created pod: "+kube.Meta(ans.Object).GetName())
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // everything in this namespace fails from here on; it does not matter
	default:
		r.event(owner, corev1.EventTypeWarning, upstream.FailedCreatePodReason, fmt.Sprintf("Error creating: %v", err))
	}
	return err
}

func deletePods(r *run, owner kube.Object, pods []*corev1.Pod) error {
	reqs := make([]wire.Request, len(pods))
	for i, p := range pods {
		reqs[i] = remove(p, metav1.DeleteOptions{})
	}
	var failure error
	for i, ans := range r.all(reqs...) {
		err := ans.Err()
		switch {
		case err == nil:
			r.event(owner, corev1.EventTypeNormal, upstream.SuccessfulDeletePodReason, "Deleted pod: "+pods[i].Name)
		case !apierrors.IsNotFound(err):
			r.event(owner, corev1.EventTypeWarning, upstream.FailedDeletePodReason, fmt.Sprintf("Error deleting: %v", err))
			failure = errors.Join(failure, fmt.Errorf("unable to delete pods: %v", err))
		}
	}
	return failure
}

// podsToDelete prefers Pods that are not scheduled, pending, not ready, on nodes with
// many of their kind, cheap to delete, young: upstream's order.
func podsToDelete(active, related []*corev1.Pod, n int, now metav1.Time) []*corev1.Pod {
	pods := append([]*corev1.Pod(nil), active...)
	if n < len(pods) {
		onNode := map[string]int{}
		for _, p := range related {
			if upstream.IsPodActive(p) {
				onNode[p.Spec.NodeName]++
			}
		}
		rank := make([]int, len(pods))
		for i, p := range pods {
			rank[i] = onNode[p.Spec.NodeName]
		}
		sort.Sort(upstream.ActivePodsWithRanks{Pods: pods, Rank: rank, Now: now})
	}
	return pods[:n]
}

// writeStatus writes what was counted if it differs from what the status says.
func (c *replicaSets) writeStatus(r *run, rs *appsv1.ReplicaSet, active, terminating []*corev1.Pod, failure error) error {
	status := replicaSetStatus(r, rs, active, terminating, failure)
	if rs.Generation == rs.Status.ObservedGeneration {
		status.ObservedGeneration = rs.Status.ObservedGeneration
		if reflect.DeepEqual(status, rs.Status) {
			return nil
		}
	}
	fresh := rs.DeepCopy()
	for try := 0; ; try++ {
		status.ObservedGeneration = rs.Generation
		fresh.Status = status
		_, err := r.do(updateStatus(fresh.DeepCopy()))
		if err == nil || try > 0 {
			return err
		}
		ans, err := r.do(get(kube.ReplicaSets, rs.Namespace, rs.Name))
		if err != nil {
			return err
		}
		fresh = ans.Object.(*appsv1.ReplicaSet).DeepCopy()
	}
}

func replicaSetStatus(r *run, rs *appsv1.ReplicaSet, active, terminating []*corev1.Pod, failure error) appsv1.ReplicaSetStatus {
	status := *rs.Status.DeepCopy()
	status.Replicas, status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = int32(len(active)), 0, 0, 0
	gone := int32(len(terminating))
	status.TerminatingReplicas = &gone
	template := labels.Set(rs.Spec.Template.Labels).AsSelectorPreValidated()
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			status.FullyLabeledReplicas++
		}
		if podutil.IsPodReady(p) {
			status.ReadyReplicas++
			if podutil.IsPodAvailable(p, rs.Spec.MinReadySeconds, metav1.NewTime(r.state.Started.Wall())) {
				status.AvailableReplicas++
			}
		}
	}
	noted := replicasetutil.GetCondition(rs.Status, appsv1.ReplicaSetReplicaFailure) != nil
	switch {
	case failure != nil && !noted:
		reason := upstream.FailedCreatePodReason
		if len(active) > int(*rs.Spec.Replicas) {
			reason = upstream.FailedDeletePodReason
		}
		replicasetutil.SetCondition(&status, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			LastTransitionTime: r.now(), Reason: reason, Message: failure.Error(),
		})
	case failure == nil && noted:
		replicasetutil.RemoveCondition(&status, appsv1.ReplicaSetReplicaFailure)
	}
	return status
}

// checkLater looks again when the next Pod becomes available.
func (c *replicaSets) checkLater(r *run, rs *appsv1.ReplicaSet, active []*corev1.Pod) {
	var next time.Duration
	now := r.state.Started.Wall()
	for _, p := range active {
		cond := podutil.GetPodReadyCondition(p.Status)
		if !podutil.IsPodReady(p) || podutil.IsPodAvailable(p, rs.Spec.MinReadySeconds, metav1.NewTime(now)) {
			continue
		}
		d := cond.LastTransitionTime.Add(time.Duration(rs.Spec.MinReadySeconds) * time.Second).Sub(now)
		if next == 0 || d < next {
			next = d
		}
	}
	if next > 0 {
		r.once(func() { r.a.q.addAfter(r.state.Key, next) })
	}
}
