package plugins

import (
	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// NodeUnschedulable refuses cordoned nodes unless the Pod tolerates the taint that
// stands for it.
type NodeUnschedulable struct{}

// Name implements Plugin.
func (NodeUnschedulable) Name() string { return "NodeUnschedulable" }

var (
	unschedulableTaint = &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

	nodeUnschedulableRefused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "NodeUnschedulable", "node(s) were unschedulable")
)

// Filter implements FilterPlugin.
func (NodeUnschedulable) Filter(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if node.Node.Spec.Unschedulable && !tolerates(pod.Pod.Spec.Tolerations, unschedulableTaint) {
		return nodeUnschedulableRefused
	}
	return nil
}

// EventsToRegister implements EnqueueExtensions.
func (NodeUnschedulable) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		onNode(framework.Add|framework.UpdateNodeTaint, func(_ *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
			was, now := nodes(old, obj)
			return hint(!now.Spec.Unschedulable && (was == nil || was.Spec.Unschedulable))
		}),
		on(framework.TargetPod, framework.UpdatePodToleration, func(pod *framework.PodInfo, _, _ kube.Object) framework.QueueingHint {
			return hint(tolerates(pod.Pod.Spec.Tolerations, unschedulableTaint))
		}),
	}
}
