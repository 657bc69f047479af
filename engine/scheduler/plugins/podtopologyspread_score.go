package plugins

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// defaultSpread are the soft constraints of Pods that have none.
var defaultSpread = []constraint{
	{maxSkew: 3, key: corev1.LabelHostname, minDomains: 1, honourNodes: true},
	{maxSkew: 5, key: corev1.LabelTopologyZone, minDomains: 1, honourNodes: true},
}

// spreadScores is what PreScore counts.
type spreadScores struct {
	constraints []constraint
	ignored     map[string]bool
	counts      []map[string]int64 // by place; hostnames are counted at the node
	weights     []float64
}

const spreadScoresKey = "PodTopologySpread/scores"

// softConstraints returns the Pod's own soft ones, or the default ones with the selector
// of whatever it belongs to.
func softConstraints(objects framework.Lister, pod *corev1.Pod) []constraint {
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return constraints(pod, corev1.ScheduleAnyway)
	}
	sel := defaultSelector(objects, pod)
	if sel.Empty() {
		return nil
	}
	out := append([]constraint(nil), defaultSpread...)
	for i := range out {
		out[i].selector = sel
	}
	return out
}

// defaultSelector joins the selectors of the Services of a Pod and of its controller.
func defaultSelector(objects framework.Lister, pod *corev1.Pod) labels.Selector {
	set := labels.Set{}
	if len(pod.Labels) > 0 {
		objects.Each((*corev1.Service)(nil), pod.Namespace, func(o kube.Object) bool {
			s := o.(*corev1.Service).Spec.Selector
			if len(s) > 0 && labels.SelectorFromSet(s).Matches(labels.Set(pod.Labels)) {
				set = labels.Merge(set, s)
			}
			return true
		})
	}
	sel := labels.NewSelector()
	if owner := metav1.GetControllerOf(pod); owner != nil {
		add := func(s *metav1.LabelSelector) {
			if other, err := metav1.LabelSelectorAsSelector(s); err == nil {
				reqs, _ := other.Requirements()
				sel = sel.Add(reqs...)
			}
		}
		switch owner.Kind {
		case "ReplicationController":
			if o, ok := objects.Object((*corev1.ReplicationController)(nil), pod.Namespace, owner.Name); ok {
				set = labels.Merge(set, o.(*corev1.ReplicationController).Spec.Selector)
			}
		case "ReplicaSet":
			if o, ok := objects.Object((*appsv1.ReplicaSet)(nil), pod.Namespace, owner.Name); ok {
				add(o.(*appsv1.ReplicaSet).Spec.Selector)
			}
		case "StatefulSet":
			if o, ok := objects.Object((*appsv1.StatefulSet)(nil), pod.Namespace, owner.Name); ok {
				add(o.(*appsv1.StatefulSet).Spec.Selector)
			}
		}
	}
	if len(set) > 0 {
		reqs, _ := labels.SelectorFromSet(set).Requirements()
		sel = sel.Add(reqs...)
	}
	return sel
}

// PreScore implements PreScorePlugin.
func (p PodTopologySpread) PreScore(state *framework.CycleState, pod *framework.PodInfo, feasible []*framework.NodeInfo) *framework.Status {
	cs := softConstraints(state.Snapshot.Objects, pod.Pod)
	if len(cs) == 0 {
		return framework.NewStatus(framework.Skip, p.Name())
	}
	all := len(pod.Pod.Spec.TopologySpreadConstraints) > 0 // the default ones do not require the labels
	s := &spreadScores{constraints: cs, ignored: map[string]bool{}}
	for range cs {
		s.counts = append(s.counts, map[string]int64{})
	}
	for _, n := range feasible {
		if all && !hasKeys(n.Node, cs) {
			s.ignored[n.Name] = true
			continue
		}
		for i := range cs {
			if cs[i].key != corev1.LabelHostname {
				s.counts[i][n.Node.Labels[cs[i].key]] = 0
			}
		}
	}
	for i := range cs {
		size := len(s.counts[i])
		if cs[i].key == corev1.LabelHostname {
			size = len(feasible) - len(s.ignored)
		}
		s.weights = append(s.weights, math.Log(float64(size+2)))
	}
	s.count(state.Snapshot, pod.Pod, all)
	state.Write(spreadScoresKey, s)
	return nil
}

func (s *spreadScores) count(snap *framework.Snapshot, pod *corev1.Pod, all bool) {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	for i := range snap.Nodes.Len() {
		n := snap.Nodes.At(i)
		if len(n.Pods) == 0 || all && !hasKeys(n.Node, s.constraints) {
			continue
		}
		for j := range s.constraints {
			c := &s.constraints[j]
			v := n.Node.Labels[c.key]
			if _, wanted := s.counts[j][v]; wanted && c.countsNode(pod, n.Node, required) {
				s.counts[j][v] += int64(selected(n.Pods, c.selector, pod.Namespace))
			}
		}
	}
}

// Score implements ScorePlugin: fewer Pods of the same kind in the same places is better;
// NormalizeScore turns it round.
func (PodTopologySpread) Score(state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	s, ok := state.Read(spreadScoresKey).(*spreadScores)
	if !ok || s.ignored[node.Name] {
		return 0, nil
	}
	var sum float64
	for i := range s.constraints {
		c := &s.constraints[i]
		v, ok := node.Node.Labels[c.key]
		if !ok {
			continue
		}
		n := s.counts[i][v]
		if c.key == corev1.LabelHostname {
			n = int64(selected(node.Pods, c.selector, pod.Pod.Namespace))
		}
		sum += float64(n)*s.weights[i] + float64(c.maxSkew-1)
	}
	return int64(math.Round(sum)), nil
}

// NormalizeScore implements ScoreExtensions.
func (PodTopologySpread) NormalizeScore(state *framework.CycleState, _ *framework.PodInfo, nodes []*framework.NodeInfo, scores []int64) {
	s, ok := state.Read(spreadScoresKey).(*spreadScores)
	if !ok {
		return
	}
	low, high := int64(math.MaxInt64), int64(0)
	for i, n := range nodes {
		if !s.ignored[n.Name] {
			low, high = min(low, scores[i]), max(high, scores[i])
		}
	}
	for i, n := range nodes {
		switch {
		case s.ignored[n.Name]:
			scores[i] = 0
		case high == 0:
			scores[i] = framework.MaxNodeScore
		default:
			scores[i] = framework.MaxNodeScore * (high + low - scores[i]) / high
		}
	}
}
