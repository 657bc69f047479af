package admission

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// RuntimeClass gives a Pod the overhead, node selector and tolerations of its
// RuntimeClass. Upstream: plugin/pkg/admission/runtimeclass.
type RuntimeClass struct{}

var runtimeClasses = nodev1.SchemeGroupVersion.WithResource("runtimeclasses")

// Name implements Plugin.
func (*RuntimeClass) Name() string { return "RuntimeClass" }

// Admit implements Mutator.
func (*RuntimeClass) Admit(a *Attributes, c Cluster) error {
	class, err := runtimeClassOf(a, c)
	if class == nil || err != nil {
		return err
	}
	pod := a.Object.(*corev1.Pod)
	if class.Overhead != nil {
		if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return a.forbid(fmt.Errorf("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
		}
		pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	s := class.Scheduling
	if s == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		value := s.NodeSelector[key]
		if have, ok := pod.Spec.NodeSelector[key]; ok && have != value {
			return a.forbid(fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, have))
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	for _, t := range s.Tolerations {
		same := func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }
		if !slices.ContainsFunc(pod.Spec.Tolerations, same) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, *t.DeepCopy())
		}
	}
	return nil
}

// Validate implements Validator.
func (*RuntimeClass) Validate(a *Attributes, c Cluster) error {
	class, err := runtimeClassOf(a, c)
	if err != nil || !a.isPod(Create) {
		return err
	}
	pod := a.Object.(*corev1.Pod)
	switch {
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return a.forbid(fmt.Errorf("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
		}
	case pod.Spec.Overhead != nil:
		return a.forbid(fmt.Errorf("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	}
	return nil
}

func runtimeClassOf(a *Attributes, c Cluster) (*nodev1.RuntimeClass, error) {
	if !a.isPod(Create) {
		return nil, nil
	}
	name := a.Object.(*corev1.Pod).Spec.RuntimeClassName
	if name == nil {
		return nil, nil
	}
	o, ok := c.Get(runtimeClasses, "", *name)
	if !ok {
		return nil, a.forbid(fmt.Errorf("pod rejected: RuntimeClass %q not found", *name))
	}
	return o.(*nodev1.RuntimeClass), nil
}
