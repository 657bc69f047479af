package plugins

import (
	"math"

	"podwalk/engine/scheduler/framework"
)

// NodeResourcesBalancedAllocation prefers nodes on which the Pod makes the use of cpu and
// of memory more alike.
type NodeResourcesBalancedAllocation struct{}

// Name implements Plugin.
func (NodeResourcesBalancedAllocation) Name() string { return "NodeResourcesBalancedAllocation" }

// PreScore implements PreScorePlugin: a Pod without requests changes no balance.
func (p NodeResourcesBalancedAllocation) PreScore(_ *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	if pod.Request.MilliCPU == 0 && pod.Request.Memory == 0 {
		return framework.NewStatus(framework.Skip, p.Name())
	}
	return nil
}

// Score implements ScorePlugin.
func (NodeResourcesBalancedAllocation) Score(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	have := [2]int64{node.Allocatable.MilliCPU, node.Allocatable.Memory}
	used := [2]int64{node.Requested.MilliCPU, node.Requested.Memory}
	then := [2]int64{used[0] + pod.Request.MilliCPU, used[1] + pod.Request.Memory}
	const half = framework.MaxNodeScore / 2
	return half + (half+balance(then, have)-balance(used, have))/2, nil
}

// balance is 100 if the fractions in use are the same, less the further they are apart.
func balance(used, have [2]int64) int64 {
	var f []float64
	for i := range used {
		if have[i] != 0 {
			f = append(f, min(1, float64(used[i])/float64(have[i])))
		}
	}
	std := 0.0
	if len(f) == 2 {
		std = math.Abs((f[0] - f[1]) / 2)
	}
	return int64((1 - std) * float64(framework.MaxNodeScore))
}
