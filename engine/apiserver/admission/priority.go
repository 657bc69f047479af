package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apischeduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"

	"podwalk/engine/kube"
)

// Priority turns a Pod's priorityClassName into a number, and keeps at most one
// PriorityClass the default. Upstream: plugin/pkg/admission/priority.
type Priority struct{}

// Name implements Plugin.
func (*Priority) Name() string { return "Priority" }

// Admit implements Mutator.
func (*Priority) Admit(a *Attributes, c Cluster) error {
	if a.isPod(Update) {
		pod, old := a.Object.(*corev1.Pod), a.OldObject.(*corev1.Pod)
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = old.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
		}
		return nil
	}
	if !a.isPod(Create) {
		return nil
	}
	pod := a.Object.(*corev1.Pod)
	class, err := classOf(a, c, pod.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	value := class.Value
	pod.Spec.PriorityClassName = class.Name
	if p := pod.Spec.Priority; p != nil && *p != value {
		return a.forbid(fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *p, value))
	}
	pod.Spec.Priority = &value
	policy := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		policy = *class.PreemptionPolicy
	}
	if p := pod.Spec.PreemptionPolicy; p != nil && *p != policy {
		return a.forbid(fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *p, policy))
	}
	pod.Spec.PreemptionPolicy = &policy
	return nil
}

// classOf finds the class by its name, or the default one: the class with globalDefault
// and the lowest value, or none, which is priority 0.
func classOf(a *Attributes, c Cluster, name string) (*schedulingv1.PriorityClass, error) {
	if name != "" {
		if o, ok := c.Get(kube.PriorityClasses, "", name); ok {
			return o.(*schedulingv1.PriorityClass), nil
		}
		for _, sys := range apischeduling.SystemPriorityClasses() {
			if sys.Name == name {
				return sys, nil // its object is made by the API server itself, a moment after start
			}
		}
		return nil, a.forbid(fmt.Errorf("no PriorityClass with name %s was found", name))
	}
	found := &schedulingv1.PriorityClass{}
	for _, o := range c.List(kube.PriorityClasses, "") {
		p := o.(*schedulingv1.PriorityClass)
		if p.GlobalDefault && (found.Name == "" || p.Value < found.Value) {
			found = p
		}
	}
	return found, nil
}

// Validate implements Validator.
func (*Priority) Validate(a *Attributes, c Cluster) error {
	if a.Resource != kube.PriorityClasses || a.Subresource != "" || a.Operation == Delete {
		return nil
	}
	class := a.Object.(*schedulingv1.PriorityClass)
	if !class.GlobalDefault {
		return nil
	}
	for _, o := range c.List(kube.PriorityClasses, "") {
		p := o.(*schedulingv1.PriorityClass)
		if p.GlobalDefault && (a.Operation == Create || p.Name != class.Name) {
			return a.forbid(fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist", p.Name))
		}
	}
	return nil
}
