package plugins

import (
	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// NodePorts refuses nodes on which a wanted host port is taken.
type NodePorts struct{}

// Name implements Plugin.
func (NodePorts) Name() string { return "NodePorts" }

var nodePortsRefused = framework.NewStatus(framework.Unschedulable, "NodePorts", "node(s) didn't have free ports for the requested pod ports")

// PreFilter implements PreFilterPlugin.
func (p NodePorts) PreFilter(_ *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if len(pod.Ports) == 0 {
		return nil, framework.NewStatus(framework.Skip, p.Name())
	}
	return nil, nil
}

// Filter implements FilterPlugin.
func (NodePorts) Filter(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if framework.PortsConflict(pod.Ports, node.Ports) {
		return nodePortsRefused
	}
	return nil
}

// EventsToRegister implements EnqueueExtensions.
func (NodePorts) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		on(framework.AssignedPod, framework.Delete, func(pod *framework.PodInfo, old, _ kube.Object) framework.QueueingHint {
			gone := old.(*corev1.Pod)
			if gone.Spec.NodeName == "" && gone.Status.NominatedNodeName == "" {
				return framework.QueueSkip
			}
			return hint(framework.PortsConflict(pod.Ports, framework.HostPorts(gone)))
		}),
		onNode(framework.Add, nil),
	}
}
