package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
	"podwalk/engine/scenario"
)

// TestNodeLabels: a kubelet may not call its own node a control plane; the set-up does.
func TestNodeLabels(t *testing.T) {
	e, err := New(scenario.Default())
	if err != nil {
		t.Fatal(err)
	}
	o, ok := e.Get(kube.Nodes, "", "controlplane")
	if !ok {
		t.Fatal("no node controlplane")
	}
	node := o.(*corev1.Node)
	if _, ok := node.Labels["node-role.kubernetes.io/control-plane"]; !ok {
		t.Errorf("labels %v", node.Labels)
	}
	if len(node.Spec.Taints) == 0 || node.Spec.Taints[0].Key != "node-role.kubernetes.io/control-plane" {
		t.Errorf("taints %v", node.Spec.Taints)
	}
}
