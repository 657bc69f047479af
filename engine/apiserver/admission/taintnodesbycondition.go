package admission

import (
	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
)

// TaintNodesByCondition makes every new node start as not ready; the node lifecycle
// controller takes the taint away. Upstream: plugin/pkg/admission/nodetaint.
type TaintNodesByCondition struct{}

// Name implements Plugin.
func (*TaintNodesByCondition) Name() string { return "TaintNodesByCondition" }

// Admit implements Mutator.
func (*TaintNodesByCondition) Admit(a *Attributes, _ Cluster) error {
	if a.Resource != kube.Nodes || a.Subresource != "" || a.Operation != Create {
		return nil
	}
	node := a.Object.(*corev1.Node)
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for _, t := range node.Spec.Taints {
		if t.MatchTaint(&taint) {
			return nil
		}
	}
	node.Spec.Taints = append(node.Spec.Taints, taint)
	return nil
}
