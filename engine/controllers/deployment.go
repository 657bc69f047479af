package controllers

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
)

// deployments is the Deployment controller: it keeps one ReplicaSet for each version of
// the Pod template and moves replicas from the old ones to the new one. Upstream:
// pkg/controller/deployment. The rollout's arithmetic is upstream's own
// (pkg/controller/deployment/util).
type deployments struct {
	a    *actor
	ds   *client.Cache[*appsv1.Deployment]
	rss  *client.Cache[*appsv1.ReplicaSet]
	pods *client.Cache[*corev1.Pod]
}

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// silent takes the log lines of upstream's helpers; ctx carries it.
var (
	silent   = klog.Logger{} // discards
	quietCtx = klog.NewContext(context.Background(), silent)
)

func newDeployments(a *actor) logic {
	c := &deployments{a: a}
	c.ds = watch(a, func(ch client.Change[*appsv1.Deployment]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.rss = watch(a, c.replicaSetChanged)
	c.pods = watch(a, c.podChanged)
	return c
}

func (c *deployments) replicaSetChanged(ch client.Change[*appsv1.ReplicaSet]) {
	for _, rs := range []*appsv1.ReplicaSet{ch.Old, ch.New} {
		if rs == nil {
			continue
		}
		if owner := metav1.GetControllerOf(rs); owner != nil {
			if owner.Kind == deploymentKind.Kind {
				a := c.a
				a.q.add(kube.Key(rs.Namespace, owner.Name))
			}
			continue
		}
		if ch.New != nil { // an orphan: whoever selects it may adopt it
			c.enqueueSelecting(rs.Namespace, rs.Labels)
		}
	}
}

func (c *deployments) enqueueSelecting(namespace string, set map[string]string) {
	c.ds.Each(namespace, func(d *appsv1.Deployment) bool {
		if sel, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil && !sel.Empty() && sel.Matches(labels.Set(set)) {
			c.a.q.add(kube.KeyOf(d))
		}
		return true
	})
}

// podChanged matters to a Recreate rollout only: it waits until the last old Pod is gone.
func (c *deployments) podChanged(ch client.Change[*corev1.Pod]) {
	if ch.Type != wire.Deleted {
		return
	}
	owner := metav1.GetControllerOf(ch.Old)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return
	}
	rs, ok := c.rss.Get(ch.Old.Namespace, owner.Name)
	if !ok || rs.UID != owner.UID {
		return
	}
	d, ok := c.deploymentOf(rs)
	if !ok || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return
	}
	for _, pods := range c.podsOf(c.replicaSetsOf(d)) {
		if len(pods) > 0 {
			return
		}
	}
	c.a.q.add(kube.KeyOf(d))
}

func (c *deployments) deploymentOf(rs *appsv1.ReplicaSet) (*appsv1.Deployment, bool) {
	owner := metav1.GetControllerOf(rs)
	if owner == nil || owner.Kind != deploymentKind.Kind {
		return nil, false
	}
	d, ok := c.ds.Get(rs.Namespace, owner.Name)
	return d, ok && d.UID == owner.UID
}

// replicaSetsOf returns the ReplicaSets that a Deployment owns or could adopt or has to
// release.
func (c *deployments) replicaSetsOf(d *appsv1.Deployment) []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	c.rss.Each(d.Namespace, func(rs *appsv1.ReplicaSet) bool {
		if owner := metav1.GetControllerOfNoCopy(rs); owner == nil || owner.UID == d.UID {
			out = append(out, rs)
		}
		return true
	})
	return out
}

func (c *deployments) podsOf(rss []*appsv1.ReplicaSet) map[types.UID][]*corev1.Pod {
	pods := map[types.UID][]*corev1.Pod{}
	if len(rss) == 0 {
		return pods
	}
	mine := map[types.UID]bool{}
	for _, rs := range rss {
		mine[rs.UID] = true
	}
	c.pods.Each(rss[0].Namespace, func(p *corev1.Pod) bool {
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && mine[owner.UID] {
			pods[owner.UID] = append(pods[owner.UID], p)
		}
		return true
	})
	return pods
}

// deploymentInput is what a sync of one Deployment looks at.
type deploymentInput struct {
	Deployment  *appsv1.Deployment
	ReplicaSets []*appsv1.ReplicaSet
	Pods        map[types.UID][]*corev1.Pod // by ReplicaSet, for Recreate only
}

func (c *deployments) gather(key string) any {
	ns, name := split(key)
	d, ok := c.ds.Get(ns, name)
	if !ok {
		return nil
	}
	in := deploymentInput{Deployment: d, ReplicaSets: c.replicaSetsOf(d)}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		in.Pods = c.podsOf(in.ReplicaSets)
	}
	return in
}

// rollout is one sync: upstream's methods on the Deployment being synced.
type rollout struct {
	*run
	c *deployments
	d *appsv1.Deployment // a copy
}

func (c *deployments) sync(r *run, input any) error {
	in := input.(deploymentInput)
	s := &rollout{r, c, in.Deployment.DeepCopy()}
	d := s.d
	if reflect.DeepEqual(d.Spec.Selector, &metav1.LabelSelector{}) {
		s.event(d, corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
		if d.Status.ObservedGeneration < d.Generation {
			d.Status.ObservedGeneration = d.Generation
			_, err := s.writeStatus()
			return err
		}
		return nil
	}
	rss, err := s.claim(in.ReplicaSets)
	if err != nil {
		return err
	}
	if d.DeletionTimestamp != nil {
		newRS, oldRSs, err := s.revisions(rss, false)
		if err != nil {
			return err
		}
		return s.syncStatus(append(oldRSs, newRS), newRS)
	}
	if err := s.checkPaused(); err != nil {
		return err
	}
	if d.Spec.Paused {
		return s.syncScale(rss)
	}
	if rollbackTo(d) != nil {
		return s.rollback(rss)
	}
	scaling, err := s.isScalingEvent(rss)
	if err != nil {
		return err
	}
	if scaling {
		return s.syncScale(rss)
	}
	switch d.Spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		return s.recreate(rss, in.Pods)
	case appsv1.RollingUpdateDeploymentStrategyType:
		return s.rolling(rss)
	}
	return fmt.Errorf("unexpected deployment strategy type: %s", d.Spec.Strategy.Type)
}

// claim adopts matching orphans and releases what no longer matches.
func (s *rollout) claim(candidates []*appsv1.ReplicaSet) ([]*appsv1.ReplicaSet, error) {
	sel, err := metav1.LabelSelectorAsSelector(s.d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("deployment %s/%s has invalid label selector: %v", s.d.Namespace, s.d.Name, err)
	}
	var out []*appsv1.ReplicaSet
	for _, rs := range candidates {
		ok, err := claim(s.run, s.d, deploymentKind, sel, rs)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, rs)
		}
	}
	return out, nil
}

// writeStatus sends the Deployment's status and takes over what came of it.
func (s *rollout) writeStatus() (*appsv1.Deployment, error) {
	ans, err := s.do(updateStatus(s.d.DeepCopy()))
	if err != nil {
		return nil, err
	}
	d := ans.Object.(*appsv1.Deployment)
	s.d.ResourceVersion = d.ResourceVersion // so that a second write of this sync is no conflict
	return d, nil
}

func (s *rollout) condition(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: t, Status: status, LastUpdateTime: s.now(), LastTransitionTime: s.now(), Reason: reason, Message: message,
	}
}

// checkPaused notes a pause or its end in the conditions, so that the time of a pause
// does not count against the progress deadline.
func (s *rollout) checkPaused() error {
	d := s.d
	if !deploymentutil.HasProgressDeadline(d) {
		return nil
	}
	cond := deploymentutil.GetDeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	if cond != nil && cond.Reason == deploymentutil.TimedOutReason {
		return nil
	}
	noted := cond != nil && cond.Reason == deploymentutil.PausedDeployReason
	switch {
	case d.Spec.Paused && !noted:
		deploymentutil.SetDeploymentCondition(&d.Status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, deploymentutil.PausedDeployReason, "Deployment is paused"))
	case !d.Spec.Paused && noted:
		deploymentutil.SetDeploymentCondition(&d.Status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, deploymentutil.ResumedDeployReason, "Deployment is resumed"))
	default:
		return nil
	}
	_, err := s.writeStatus()
	return err
}
