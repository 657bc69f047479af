package plugins

import (
	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// TaintToleration refuses nodes with a NoSchedule or NoExecute taint that the Pod does
// not tolerate, and prefers nodes with fewer untolerated PreferNoSchedule taints.
type TaintToleration struct{}

// Name implements Plugin.
func (TaintToleration) Name() string { return "TaintToleration" }

var taintRefused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "TaintToleration", "node(s) had untolerated taint(s)")

// Filter implements FilterPlugin.
func (TaintToleration) Filter(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if untolerated(node.Node, pod.Pod) {
		return taintRefused
	}
	return nil
}

// untolerated reports whether a taint keeps the Pod off the node.
func untolerated(node *corev1.Node, pod *corev1.Pod) bool {
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if !tolerates(pod.Spec.Tolerations, t) {
			return true
		}
	}
	return false
}

// PreScore implements PreScorePlugin: it keeps the tolerations that speak of
// PreferNoSchedule.
func (p TaintToleration) PreScore(state *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	var out []corev1.Toleration
	for _, t := range pod.Pod.Spec.Tolerations {
		if t.Effect == "" || t.Effect == corev1.TaintEffectPreferNoSchedule {
			out = append(out, t)
		}
	}
	state.Write(p.Name(), out)
	return nil
}

// Score implements ScorePlugin.
func (p TaintToleration) Score(state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	if len(node.Node.Spec.Taints) == 0 {
		return 0, nil
	}
	tolerations, _ := state.Read(p.Name()).([]corev1.Toleration)
	var n int64
	for i := range node.Node.Spec.Taints {
		t := &node.Node.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(tolerations, t) {
			n++
		}
	}
	return n, nil
}

// NormalizeScore implements ScoreExtensions: fewer taints, higher score.
func (TaintToleration) NormalizeScore(_ *framework.CycleState, _ *framework.PodInfo, _ []*framework.NodeInfo, scores []int64) {
	framework.DefaultNormalizeScore(true, scores)
}

// EventsToRegister implements EnqueueExtensions.
func (TaintToleration) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		onNode(framework.Add|framework.UpdateNodeTaint, func(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
			was, now := nodes(old, obj)
			return hint((was == nil || untolerated(was, pod.Pod)) && !untolerated(now, pod.Pod))
		}),
		on(framework.TargetPod, framework.UpdatePodToleration, always),
	}
}
