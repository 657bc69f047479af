package plugins

import (
	"fmt"

	"podwalk/engine/scheduler/framework"
)

// SchedulingGates keeps a Pod out of the active queue while spec.schedulingGates is not
// empty.
type SchedulingGates struct{}

// Name implements Plugin.
func (SchedulingGates) Name() string { return "SchedulingGates" }

// PreEnqueue implements PreEnqueuePlugin.
func (p SchedulingGates) PreEnqueue(pod *framework.PodInfo) *framework.Status {
	gates := pod.Pod.Spec.SchedulingGates
	if len(gates) == 0 {
		return nil
	}
	names := make([]string, 0, len(gates))
	for _, g := range gates {
		names = append(names, g.Name)
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, p.Name(), fmt.Sprintf("waiting for scheduling gates: %v", names))
}

// EventsToRegister implements EnqueueExtensions.
func (SchedulingGates) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{on(framework.TargetPod, framework.UpdatePodSchedulingGatesEliminated, always)}
}
