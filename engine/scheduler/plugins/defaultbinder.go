package plugins

import "podwalk/engine/scheduler/framework"

// DefaultBinder binds with POST pods/NAME/binding.
type DefaultBinder struct{}

// Name implements Plugin.
func (DefaultBinder) Name() string { return "DefaultBinder" }

// Bind implements BindPlugin.
func (DefaultBinder) Bind(b framework.Binder, _ *framework.CycleState, pod *framework.PodInfo, node string) *framework.Status {
	b.Bind(pod.Pod, node)
	return nil
}
