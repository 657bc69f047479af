package plugins

import "podwalk/engine/scheduler/framework"

// Entry is one plugin of a profile with its weight in scoring (0 for one without score).
type Entry struct {
	Plugin framework.Plugin
	Weight int64
}

// Default returns the plugins of the default profile in upstream's order.
func Default() []Entry {
	return []Entry{
		{SchedulingGates{}, 0},
		{PrioritySort{}, 0},
		{NodeName{}, 0},
		{NodeUnschedulable{}, 0},
		{TaintToleration{}, 3},
		{NodeAffinity{}, 2},
		{NodePorts{}, 0},
		{NodeResourcesFit{}, 1},
		{VolumeBinding{}, 0},
		{PodTopologySpread{}, 2},
		{InterPodAffinity{}, 2},
		{DynamicResources{}, 0},
		{DefaultPreemption{}, 0},
		{NodeResourcesBalancedAllocation{}, 1},
		{ImageLocality{}, 1},
		{DefaultBinder{}, 0},
	}
}
