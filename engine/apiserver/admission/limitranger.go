package admission

import (
	"maps"
	"slices"

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
	for _, o := range ranges {
		var errs []error
		for _, part := range split(o.(*corev1.LimitRange)) {
			for _, piece := range pieces(in, part.Spec.Limits[0].Type) {
				for _, one := range single(part) {
					if err := limits.ValidateLimit(one, a.Resource.Resource, piece); err != nil {
						errs = append(errs, err)
					}
				}
			}
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			return a.forbid(err)
		}
	}
	return nil
}

// Upstream walks maps, so that the order of several complaints is different each time.
// Here the same question is asked bound by bound, in the order of the resources' names.

// split makes a LimitRange of each item.
func split(lr *corev1.LimitRange) []*corev1.LimitRange {
	out := make([]*corev1.LimitRange, len(lr.Spec.Limits))
	for i, item := range lr.Spec.Limits {
		out[i] = &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	}
	return out
}

// single makes a LimitRange of each bound of an item.
func single(lr *corev1.LimitRange) []*corev1.LimitRange {
	item := lr.Spec.Limits[0]
	var out []*corev1.LimitRange
	for _, b := range []struct {
		bounds corev1.ResourceList
		set    func(*corev1.LimitRangeItem, corev1.ResourceList)
	}{
		{item.Min, func(i *corev1.LimitRangeItem, l corev1.ResourceList) { i.Min = l }},
		{item.Max, func(i *corev1.LimitRangeItem, l corev1.ResourceList) { i.Max = l }},
		{item.MaxLimitRequestRatio, func(i *corev1.LimitRangeItem, l corev1.ResourceList) { i.MaxLimitRequestRatio = l }},
	} {
		for _, name := range slices.Sorted(maps.Keys(b.bounds)) {
			one := corev1.LimitRangeItem{Type: item.Type}
			b.set(&one, corev1.ResourceList{name: b.bounds[name]})
			out = append(out, &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{one}}})
		}
	}
	return out
}

// pieces takes a Pod apart into Pods of one container, where the bounds are those of
// containers.
func pieces(in runtime.Object, t corev1.LimitType) []runtime.Object {
	pod, ok := in.(*core.Pod)
	if !ok || t != corev1.LimitTypeContainer {
		return []runtime.Object{in}
	}
	var out []runtime.Object
	for i := range pod.Spec.Containers {
		out = append(out, &core.Pod{Spec: core.PodSpec{Containers: pod.Spec.Containers[i : i+1]}})
	}
	for i := range pod.Spec.InitContainers {
		out = append(out, &core.Pod{Spec: core.PodSpec{InitContainers: pod.Spec.InitContainers[i : i+1]}})
	}
	return out
}
