package plugins

import (
	"errors"

	"podwalk/engine/scheduler/framework"
)

// DynamicResources allocates devices to resource claims. Claims are not modelled, so it
// has nothing to say about any Pod but for one oddity that users meet: where an earlier
// plugin's PreFilter ends the cycle, its PostFilter misses what its own PreFilter would
// have left, fails with "not found", and that ends up in the Pod's event.
type DynamicResources struct{}

// Name implements Plugin.
func (DynamicResources) Name() string { return "DynamicResources" }

// PreFilter implements PreFilterPlugin.
func (p DynamicResources) PreFilter(state *framework.CycleState, _ *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	state.Write(p.Name(), true)
	return nil, framework.NewStatus(framework.Skip, p.Name())
}

// Filter implements FilterPlugin; PreFilter always skips it.
func (DynamicResources) Filter(*framework.CycleState, *framework.PodInfo, *framework.NodeInfo) *framework.Status {
	return nil
}

var errNotFound = errors.New("not found")

// PostFilter implements PostFilterPlugin.
func (p DynamicResources) PostFilter(_ framework.Handle, state *framework.CycleState, _ *framework.PodInfo, _ *framework.Verdicts) (*framework.PostFilterResult, *framework.Status) {
	if state.Read(p.Name()) == nil {
		return nil, framework.AsStatus(p.Name(), errNotFound)
	}
	return nil, framework.NewStatus(framework.Unschedulable, p.Name())
}

// EventsToRegister implements EnqueueExtensions: nothing that happens concerns it.
func (DynamicResources) EventsToRegister() []framework.EventWithHint { return nil }
