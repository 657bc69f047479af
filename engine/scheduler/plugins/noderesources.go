package plugins

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// NodeResourcesFit refuses nodes on which what the Pod requests is not free, and (with
// the strategy LeastAllocated) prefers nodes with more left of cpu and memory.
type NodeResourcesFit struct{}

// Name implements Plugin.
func (NodeResourcesFit) Name() string { return "NodeResourcesFit" }

// Filter implements FilterPlugin.
func (p NodeResourcesFit) Filter(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	return fits(pod.Request, node)
}

// Reason texts that need no formatting; cpu alone is by far the most frequent refusal.
var (
	insufficientCPU      = framework.NewStatus(framework.Unschedulable, "NodeResourcesFit", "Insufficient cpu")
	cpuTooBig            = framework.NewStatus(framework.UnschedulableAndUnresolvable, "NodeResourcesFit", "Insufficient cpu")
	reasonCPU, reasonMem = "Insufficient cpu", "Insufficient memory"
)

func fits(want framework.Resource, node *framework.NodeInfo) *framework.Status {
	have, used := &node.Allocatable, &node.Requested
	var reasons []string
	code := framework.Unschedulable
	lacks := func(reason string, want, have, used int64) {
		if want <= 0 || want <= have-used {
			return
		}
		reasons = append(reasons, reason)
		if want > have { // not even the empty node would do
			code = framework.UnschedulableAndUnresolvable
		}
	}
	if len(node.Pods)+1 > have.AllowedPodNumber {
		reasons = append(reasons, "Too many pods")
	}
	lacks(reasonCPU, want.MilliCPU, have.MilliCPU, used.MilliCPU)
	lacks(reasonMem, want.Memory, have.Memory, used.Memory)
	lacks("Insufficient ephemeral-storage", want.EphemeralStorage, have.EphemeralStorage, used.EphemeralStorage)
	for _, name := range scalarNames(want) {
		lacks("Insufficient "+string(name), want.Scalar[name], have.Scalar[name], used.Scalar[name])
	}
	switch {
	case len(reasons) == 0:
		return nil
	case len(reasons) == 1 && reasons[0] == reasonCPU && code == framework.Unschedulable:
		return insufficientCPU
	case len(reasons) == 1 && reasons[0] == reasonCPU:
		return cpuTooBig
	}
	return framework.NewStatus(code, "NodeResourcesFit", reasons...)
}

func scalarNames(r framework.Resource) []corev1.ResourceName {
	if len(r.Scalar) == 0 {
		return nil
	}
	names := make([]corev1.ResourceName, 0, len(r.Scalar))
	for n := range r.Scalar {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Score implements ScorePlugin with the strategy LeastAllocated over cpu and memory,
// weighted alike.
func (NodeResourcesFit) Score(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	var sum, weights int64
	for _, r := range [2][2]int64{
		{node.NonZero.MilliCPU + pod.NonZero.MilliCPU, node.Allocatable.MilliCPU},
		{node.NonZero.Memory + pod.NonZero.Memory, node.Allocatable.Memory},
	} {
		requested, have := r[0], r[1]
		if have == 0 {
			continue
		}
		if requested <= have {
			sum += (have - requested) * framework.MaxNodeScore / have
		}
		weights++
	}
	if weights == 0 {
		return 0, nil
	}
	return sum / weights, nil
}

// EventsToRegister implements EnqueueExtensions.
func (NodeResourcesFit) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		on(framework.AssignedPod, framework.Delete, func(_ *framework.PodInfo, old, _ kube.Object) framework.QueueingHint {
			gone := old.(*corev1.Pod)
			return hint(gone.Spec.NodeName != "" || gone.Status.NominatedNodeName != "")
		}),
		onNode(framework.Add|framework.UpdateNodeAllocatable, func(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
			was, now := nodes(old, obj)
			node := (&framework.NodeInfo{}).WithNode(now)
			if fits(pod.Request, node) != nil {
				return framework.QueueSkip
			}
			return hint(was == nil || moreOf(pod.Request, framework.NewResource(was.Status.Allocatable), node.Allocatable))
		}),
		on(framework.AssignedPod, framework.UpdatePodScaleDown, func(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
			return hint(moreOf(pod.Request, framework.PodRequests(obj.(*corev1.Pod)), framework.PodRequests(old.(*corev1.Pod))))
		}),
		on(framework.TargetPod, framework.UpdatePodScaleDown, always),
	}
}

// moreOf reports whether now has more than was of anything that the Pod asks for.
func moreOf(want, was, now framework.Resource) bool {
	if now.AllowedPodNumber > was.AllowedPodNumber ||
		want.MilliCPU > 0 && now.MilliCPU > was.MilliCPU ||
		want.Memory > 0 && now.Memory > was.Memory ||
		want.EphemeralStorage > 0 && now.EphemeralStorage > was.EphemeralStorage {
		return true
	}
	for name, n := range want.Scalar {
		if n > 0 && now.Scalar[name] > was.Scalar[name] {
			return true
		}
	}
	return false
}
