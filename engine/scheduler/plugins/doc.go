// Package plugins holds the scheduler's in-tree plugins, one file each, with upstream's
// names, logic and reason texts (k8s.io/kubernetes/pkg/scheduler/framework/plugins). A
// plugin has no state: what it works out for a Pod lies in the CycleState.
//
// Left out: VolumeRestrictions, NodeVolumeLimits, VolumeZone, NodeDeclaredFeatures, Pod groups, in-place resizing of bound Pods, device
// claims (DynamicResources only says what it says about Pods without any).
package plugins

import (
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// nop is the logger that upstream's helper functions ask for; it drops everything.
var nop = klog.Logger{}

// tolerates reports whether any toleration covers the taint.
func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return corev1helpers.TolerationsTolerateTaint(nop, tolerations, taint, false)
}

// nodes returns the two versions of a node in a hint; the old one is nil for an addition.
func nodes(old, obj kube.Object) (was, now *corev1.Node) {
	was, _ = old.(*corev1.Node)
	now, _ = obj.(*corev1.Node)
	return was, now
}

// onNode is the registration for an event of nodes.
func onNode(a framework.ActionType, hint framework.HintFn) framework.EventWithHint {
	return framework.EventWithHint{Event: framework.ClusterEvent{Resource: framework.Node, Action: a}, Hint: hint}
}

// on is the registration for an event of another resource.
func on(r framework.EventResource, a framework.ActionType, hint framework.HintFn) framework.EventWithHint {
	return framework.EventWithHint{Event: framework.ClusterEvent{Resource: r, Action: a}, Hint: hint}
}

func always(*framework.PodInfo, kube.Object, kube.Object) framework.QueueingHint {
	return framework.Queue
}

func hint(queue bool) framework.QueueingHint {
	if queue {
		return framework.Queue
	}
	return framework.QueueSkip
}
