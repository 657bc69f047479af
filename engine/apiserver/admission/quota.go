package admission

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	clocktesting "k8s.io/utils/clock/testing"

	"podwalk/engine/kube"
)

// ResourceQuota refuses what would go over a quota of the namespace, and counts what it
// lets pass. It runs last, on the object as it will be stored. Arithmetic and texts are
// upstream's (k8s.io/apiserver/pkg/admission/plugin/resourcequota and
// k8s.io/kubernetes/pkg/quota/v1/evaluator/core).
type ResourceQuota struct{}

// Name implements Plugin.
func (*ResourceQuota) Name() string { return "ResourceQuota" }

// oldNames are the resources that a quota may also count by their bare name.
var oldNames = []string{"configmaps", "resourcequotas", "replicationcontrollers", "secrets"}

// evaluator returns the arithmetic for a resource: the real one for Pods, Services and
// claims, counting objects for the rest, nil for what no quota covers.
func evaluator(gvr schema.GroupVersionResource, now time.Time) quota.Evaluator {
	switch gvr {
	case kube.Pods:
		return core.NewPodEvaluator(nil, clocktesting.NewFakeClock(now))
	case kube.Services:
		return core.NewServiceEvaluator(nil)
	case kube.PVCs:
		return core.NewPersistentVolumeClaimEvaluator(nil)
	}
	k, ok := kube.ByResource(gvr)
	if !ok || !k.Namespaced || gvr == kube.Events || gvr == kube.EventsV1 || gvr == kube.Leases {
		return nil
	}
	alias := corev1.ResourceName("")
	if gvr.Group == "" && slices.Contains(oldNames, gvr.Resource) {
		alias = corev1.ResourceName(gvr.Resource)
	}
	return generic.NewObjectCountEvaluator(gvr.GroupResource(), nil, alias)
}

// Validate implements Validator.
func (p *ResourceQuota) Validate(a *Attributes, c Cluster) error {
	_, _, err := p.check(a, c)
	return err
}

// Charge implements Charger.
func (p *ResourceQuota) Charge(a *Attributes, c Cluster) []runtime.Object {
	before, after, err := p.check(a, c)
	if err != nil {
		return nil
	}
	var out []runtime.Object
	for i := range after {
		if !quota.Equals(before[i].Status.Used, after[i].Status.Used) {
			out = append(out, after[i].DeepCopy())
		}
	}
	return out
}

func (*ResourceQuota) check(a *Attributes, c Cluster) (before, after []corev1.ResourceQuota, err error) {
	if a.Operation != Create && a.Operation != Update || a.Namespace == "" || a.Subresource != "" {
		return nil, nil, nil
	}
	for _, o := range c.List(kube.ResourceQuotas, a.Namespace) {
		before = append(before, *o.(*corev1.ResourceQuota))
	}
	ev := evaluator(a.Resource, a.Now)
	if len(before) == 0 || ev == nil {
		return nil, nil, nil
	}
	in := make([]corev1.ResourceQuota, len(before))
	for i := range before {
		in[i] = *before[i].DeepCopy()
	}
	after, err = resourcequota.CheckRequest(in, a.record(), ev, nil)
	return before, after, err
}
