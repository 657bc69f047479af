package plugins

import "podwalk/engine/scheduler/framework"

// NodeName lets a Pod that names its node run there only. (A Pod with spec.nodeName is
// bound already and does not come to the scheduler; other schedulers' Pods may.)
type NodeName struct{}

// Name implements Plugin.
func (NodeName) Name() string { return "NodeName" }

// PreFilter implements PreFilterPlugin.
func (NodeName) PreFilter(_ *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	if n := pod.Pod.Spec.NodeName; n != "" {
		return &framework.PreFilterResult{NodeNames: map[string]bool{n: true}}, nil
	}
	return nil, nil
}

var nodeNameRefused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "NodeName", "node(s) didn't match the requested node name")

// Filter implements FilterPlugin.
func (NodeName) Filter(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if n := pod.Pod.Spec.NodeName; n != "" && n != node.Name {
		return nodeNameRefused
	}
	return nil
}

// EventsToRegister implements EnqueueExtensions.
func (NodeName) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{onNode(framework.Add, nil)}
}
