package admission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// DefaultTolerationSeconds lets a Pod stay for five minutes on a node that is not ready or
// cannot be reached, unless the Pod says otherwise. Upstream:
// plugin/pkg/admission/defaulttolerationseconds.
type DefaultTolerationSeconds struct{}

// Name implements Plugin.
func (*DefaultTolerationSeconds) Name() string { return "DefaultTolerationSeconds" }

// Admit implements Mutator.
func (*DefaultTolerationSeconds) Admit(a *Attributes, _ Cluster) error {
	if !a.isPod(Create) && !a.isPod(Update) {
		return nil
	}
	pod := a.Object.(*corev1.Pod)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if tolerates(pod, key) {
			continue
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300),
		})
	}
	return nil
}

func tolerates(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
