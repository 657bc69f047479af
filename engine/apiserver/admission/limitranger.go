package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"

	"podwalk/engine/kube"
)

// LimitRanger carries out the LimitRange objects of a namespace: it fills in default
// requests and limits, and later refuses what is out of bounds. The arithmetic and the
// texts are upstream's (plugin/pkg/admission/limitranger).
type LimitRanger struct{}

var limits = &limitranger.DefaultLimitRangerActions{}

// Name implements Plugin.
func (*LimitRanger) Name() string { return "LimitRanger" }

func limited(a *Attributes, c Cluster) []runtime.Object {
	if a.Subresource != "" || a.Operation == Delete || (a.Resource != kube.Pods && a.Resource != kube.PVCs) {
		return nil
	}
	if a.Resource == kube.Pods && a.Operation == Update {
		return nil // a Pod's resources are not changed by an update
	}
	return c.List(kube.LimitRanges, a.Namespace)
}

// Admit implements Mutator.
func (*LimitRanger) Admit(a *Attributes, c Cluster) error {
	ranges := limited(a, c)
	if len(ranges) == 0 || a.Resource != kube.Pods {
		return nil
	}
	in, err := internal(a.Object)
	if err != nil {
		return err
	}
	for _, o := range ranges {
		if err := limitranger.PodMutateLimitFunc(o.(*corev1.LimitRange), in.(*core.Pod)); err != nil {
			return a.forbid(err)
		}
	}
	return external(in, a.Object)
}

// Validate implements Validator.
func (*LimitRanger) Validate(a *Attributes, c Cluster) error {
	ranges := limited(a, c)
	if len(ranges) == 0 {
		return nil
	}
	in, err := internal(a.Object)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range ranges {
		if err := limits.ValidateLimit(o.(*corev1.LimitRange), a.Resource.Resource, in); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == 1 {
		return a.forbid(errs[0])
	}
	return a.forbid(utilerrors.NewAggregate(errs))
}
