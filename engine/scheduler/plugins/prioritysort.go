package plugins

import "podwalk/engine/scheduler/framework"

// PrioritySort orders the active queue: higher priority first, then who waited longer.
type PrioritySort struct{}

// Name implements Plugin.
func (PrioritySort) Name() string { return "PrioritySort" }

// Less implements QueueSortPlugin.
func (PrioritySort) Less(a, b framework.QueuedPod) bool {
	p, q := a.GetPriority(), b.GetPriority()
	return p > q || p == q && a.GetTimestamp() < b.GetTimestamp()
}
