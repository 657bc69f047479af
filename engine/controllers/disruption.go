package controllers

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/client"
	"podwalk/engine/kube"
)

// disruption is the PodDisruptionBudget controller: it counts the Pods behind a budget
// and writes how many may be evicted. Upstream: pkg/controller/disruption.
//
// Left out: custom resources with a scale, and the clean-up of DisruptionTarget conditions
// of Pods that were never deleted.
type disruption struct {
	a       *actor
	budgets *client.Cache[*policyv1.PodDisruptionBudget]
	pods    *client.Cache[*corev1.Pod]
	rss     *client.Cache[*appsv1.ReplicaSet]
	ds      *client.Cache[*appsv1.Deployment]
	sts     *client.Cache[*appsv1.StatefulSet]
	rcs     *client.Cache[*corev1.ReplicationController]
}

// disruptedFor is how long an evicted Pod counts as gone before it is.
const disruptedFor = 2 * time.Minute

func newDisruption(a *actor) logic {
	c := &disruption{a: a}
	c.budgets = watch(a, func(ch client.Change[*policyv1.PodDisruptionBudget]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.pods = watch(a, func(ch client.Change[*corev1.Pod]) {
		c.budgets.Each(ch.Object().Namespace, func(b *policyv1.PodDisruptionBudget) bool {
			sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err == nil && (ch.New != nil && sel.Matches(labels.Set(ch.New.Labels)) || ch.Old != nil && sel.Matches(labels.Set(ch.Old.Labels))) {
				a.q.add(kube.KeyOf(b))
			}
			return true
		})
	})
	c.rss = watch(a, quiet[*appsv1.ReplicaSet])
	c.ds = watch(a, quiet[*appsv1.Deployment])
	c.sts = watch(a, quiet[*appsv1.StatefulSet])
	c.rcs = watch(a, quiet[*corev1.ReplicationController])
	return c
}

// disruptionInput is what a sync of one budget looks at.
type disruptionInput struct {
	Budget    *policyv1.PodDisruptionBudget
	Pods      []*corev1.Pod
	Expected  int32 // Pods that the Pods' controllers want
	Unmanaged int   // Pods without such a controller
}

func (c *disruption) gather(key string) any {
	ns, name := split(key)
	b, ok := c.budgets.Get(ns, name)
	if !ok {
		return nil
	}
	in := disruptionInput{Budget: b}
	sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil
	}
	c.pods.Each(ns, func(p *corev1.Pod) bool {
		if sel.Matches(labels.Set(p.Labels)) {
			in.Pods = append(in.Pods, p)
		}
		return true
	})
	scales := map[types.UID]int32{}
	for _, p := range in.Pods {
		uid, n, managed := c.scaleOf(p)
		if !managed {
			in.Unmanaged++
			continue
		}
		scales[uid] = n
	}
	for _, n := range slices.Collect(maps.Values(scales)) {
		in.Expected += n
	}
	return in
}

// scaleOf returns how many Pods the workload behind a Pod wants.
func (c *disruption) scaleOf(p *corev1.Pod) (types.UID, int32, bool) {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return "", 0, false
	}
	switch owner.Kind {
	case "ReplicaSet":
		rs, ok := c.rss.Get(p.Namespace, owner.Name)
		if !ok || rs.UID != owner.UID {
			return "", 0, false
		}
		if above := metav1.GetControllerOf(rs); above != nil && above.Kind == deploymentKind.Kind {
			if d, ok := c.ds.Get(p.Namespace, above.Name); ok && d.UID == above.UID {
				return d.UID, *d.Spec.Replicas, true
			}
		}
		return rs.UID, *rs.Spec.Replicas, true
	case "StatefulSet":
		if s, ok := c.sts.Get(p.Namespace, owner.Name); ok && s.UID == owner.UID {
			return s.UID, *s.Spec.Replicas, true
		}
	case "ReplicationController":
		if rc, ok := c.rcs.Get(p.Namespace, owner.Name); ok && rc.UID == owner.UID {
			return rc.UID, *rc.Spec.Replicas, true
		}
	}
	return "", 0, false
}

func (c *disruption) sync(r *run, input any) error {
	in := input.(disruptionInput)
	b := in.Budget
	if len(in.Pods) == 0 {
		r.event(b, corev1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	expected, desired, err := in.goal()
	if err != nil {
		r.event(b, corev1.EventTypeWarning, "CalculateExpectedPodCountFailed", fmt.Sprintf("Failed to calculate the number of expected pods: %v", err))
		return err
	}
	if in.Unmanaged > 0 && (b.Spec.MaxUnavailable != nil || b.Spec.MinAvailable.Type == intstr.String) {
		r.event(b, corev1.EventTypeWarning, "UnmanagedPods", fmt.Sprintf("Pods selected by this PodDisruptionBudget (selector: %v) were found "+
			"to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "+
			"To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.", b.Spec.Selector))
	}
	disrupted, recheck := in.disrupted(r)
	status := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: b.Generation, DesiredHealthy: desired, ExpectedPods: expected, DisruptedPods: disrupted,
		Conditions: append([]metav1.Condition(nil), b.Status.Conditions...),
	}
	for _, p := range in.Pods {
		if _, gone := disrupted[p.Name]; p.DeletionTimestamp == nil && !gone && podutil.IsPodReady(p) {
			status.CurrentHealthy++
		}
	}
	if expected > 0 {
		status.DisruptionsAllowed = max(0, status.CurrentHealthy-desired)
	}
	setDisruptionAllowed(&status, r.now())
	if recheck > 0 {
		r.once(func() { r.a.q.addAfter(r.state.Key, recheck) })
	}
	if equality.Semantic.DeepEqual(status, b.Status) {
		return nil
	}
	fresh := b.DeepCopy()
	fresh.Status = status
	_, err = r.do(updateStatus(fresh))
	return err
}

// goal returns how many Pods there should be, and how many of them healthy.
func (in disruptionInput) goal() (expected, desired int32, err error) {
	spec := in.Budget.Spec
	switch {
	case spec.MaxUnavailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, int(in.Expected), true)
		return in.Expected, max(0, in.Expected-int32(n)), err
	case spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.Int:
		return int32(len(in.Pods)), spec.MinAvailable.IntVal, nil
	case spec.MinAvailable != nil:
		n, err := intstr.GetScaledValueFromIntOrPercent(spec.MinAvailable, int(in.Expected), true)
		return in.Expected, int32(n), err
	}
	return 0, 0, nil
}

// disrupted keeps the Pods whose eviction was granted and who are not deleted yet.
func (in disruptionInput) disrupted(r *run) (left map[string]metav1.Time, recheck time.Duration) {
	left = map[string]metav1.Time{}
	now := r.state.Started.Wall()
	for _, p := range in.Pods {
		at, listed := in.Budget.Status.DisruptedPods[p.Name]
		if !listed || p.DeletionTimestamp != nil {
			continue
		}
		d := at.Add(disruptedFor).Sub(now)
		if d < 0 {
			r.event(p, corev1.EventTypeWarning, "NotDeleted",
				fmt.Sprintf("Pod was expected by PDB %s/%s to be deleted but it wasn't", in.Budget.Namespace, in.Budget.Namespace))
			continue
		}
		left[p.Name] = at
		if recheck == 0 || d < recheck {
			recheck = d
		}
	}
	return left, recheck
}

func setDisruptionAllowed(s *policyv1.PodDisruptionBudgetStatus, now metav1.Time) {
	cond := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: s.ObservedGeneration, LastTransitionTime: now,
	}
	if s.DisruptionsAllowed > 0 {
		cond.Status, cond.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	for i, was := range s.Conditions {
		if was.Type == cond.Type {
			if was.Status == cond.Status {
				cond.LastTransitionTime = was.LastTransitionTime
			}
			s.Conditions[i] = cond
			return
		}
	}
	s.Conditions = append(s.Conditions, cond)
}
