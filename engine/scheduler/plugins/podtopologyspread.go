package plugins

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// PodTopologySpread keeps the Pods that a spec.topologySpreadConstraint selects evenly
// spread over the places of its topologyKey. Pods of a Service, ReplicaSet or the like
// without constraints are spread softly by default.
type PodTopologySpread struct{}

// Name implements Plugin.
func (PodTopologySpread) Name() string { return "PodTopologySpread" }

var (
	spreadRefused = framework.NewStatus(framework.Unschedulable, "PodTopologySpread", "node(s) didn't match pod topology spread constraints")
	spreadNoLabel = framework.NewStatus(framework.UnschedulableAndUnresolvable, "PodTopologySpread",
		"node(s) didn't match pod topology spread constraints (missing required label)")
)

// constraint is a topologySpreadConstraint with its defaults filled in.
type constraint struct {
	maxSkew     int32
	key         string
	selector    labels.Selector
	minDomains  int32
	honourNodes bool // nodeAffinityPolicy: Honor
	honourTaint bool // nodeTaintsPolicy: Honor
}

// constraints returns the Pod's own ones of one kind.
func constraints(pod *corev1.Pod, action corev1.UnsatisfiableConstraintAction) []constraint {
	var out []constraint
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != action {
			continue
		}
		sel, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			continue
		}
		for _, key := range c.MatchLabelKeys {
			if v, ok := pod.Labels[key]; ok {
				req, _ := labels.SelectorFromSet(labels.Set{key: v}).Requirements()
				sel = sel.Add(req...)
			}
		}
		k := constraint{maxSkew: c.MaxSkew, key: c.TopologyKey, selector: sel, minDomains: 1, honourNodes: true}
		if c.MinDomains != nil {
			k.minDomains = *c.MinDomains
		}
		if p := c.NodeAffinityPolicy; p != nil {
			k.honourNodes = *p == corev1.NodeInclusionPolicyHonor
		}
		if p := c.NodeTaintsPolicy; p != nil {
			k.honourTaint = *p == corev1.NodeInclusionPolicyHonor
		}
		out = append(out, k)
	}
	return out
}

// countsNode reports whether the Pods on a node count for the constraint.
func (c *constraint) countsNode(pod *corev1.Pod, node *corev1.Node, required nodeaffinity.RequiredNodeAffinity) bool {
	if c.honourNodes {
		if match, _ := required.Match(node); !match {
			return false
		}
	}
	return !c.honourTaint || !untolerated(node, pod)
}

func hasKeys(node *corev1.Node, cs []constraint) bool {
	for i := range cs {
		if _, ok := node.Labels[cs[i].key]; !ok {
			return false
		}
	}
	return true
}

// selected counts the living Pods of the namespace that a selector matches.
func selected(pods []*framework.PodInfo, sel labels.Selector, namespace string) int {
	if sel.Empty() {
		return 0
	}
	n := 0
	for _, q := range pods {
		if q.Pod.DeletionTimestamp == nil && q.Pod.Namespace == namespace && sel.Matches(labels.Set(q.Pod.Labels)) {
			n++
		}
	}
	return n
}

// spreadState is what PreFilter counts: for each constraint the Pods by place.
type spreadState struct {
	constraints []constraint
	matches     []map[string]int
	low         []int // the smallest number of Pods in any place
	required    nodeaffinity.RequiredNodeAffinity
}

// fewest works out the smallest number of Pods in any place; zero if there are fewer
// places than there should be.
func (s *spreadState) fewest() {
	s.low = make([]int, len(s.matches))
	for i, m := range s.matches {
		if len(m) < int(s.constraints[i].minDomains) {
			continue
		}
		s.low[i] = math.MaxInt32
		for _, n := range m {
			s.low[i] = min(s.low[i], n)
		}
	}
}

// PreFilter implements PreFilterPlugin.
func (p PodTopologySpread) PreFilter(state *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	cs := constraints(pod.Pod, corev1.DoNotSchedule)
	if len(cs) == 0 {
		return nil, framework.NewStatus(framework.Skip, p.Name())
	}
	s := &spreadState{constraints: cs, required: nodeaffinity.GetRequiredNodeAffinity(pod.Pod)}
	for range cs {
		s.matches = append(s.matches, map[string]int{})
	}
	for i := range state.Snapshot.Nodes.Len() {
		n := state.Snapshot.Nodes.At(i)
		if !hasKeys(n.Node, cs) {
			continue
		}
		for j := range cs {
			if cs[j].countsNode(pod.Pod, n.Node, s.required) {
				s.matches[j][n.Node.Labels[cs[j].key]] += selected(n.Pods, cs[j].selector, pod.Pod.Namespace)
			}
		}
	}
	s.fewest()
	state.Write(p.Name(), s)
	return nil, nil
}

// AddPod implements PreFilterExtensions.
func (p PodTopologySpread) AddPod(state *framework.CycleState, pod, added *framework.PodInfo, node *framework.NodeInfo) {
	p.update(state, pod, added, node, 1)
}

// RemovePod implements PreFilterExtensions.
func (p PodTopologySpread) RemovePod(state *framework.CycleState, pod, removed *framework.PodInfo, node *framework.NodeInfo) {
	p.update(state, pod, removed, node, -1)
}

func (p PodTopologySpread) update(state *framework.CycleState, pod, q *framework.PodInfo, node *framework.NodeInfo, by int) {
	s, ok := state.Read(p.Name()).(*spreadState)
	if !ok || q.Pod.Namespace != pod.Pod.Namespace || !hasKeys(node.Node, s.constraints) {
		return
	}
	out := *s
	out.matches = make([]map[string]int, len(s.matches))
	for i, m := range s.matches {
		out.matches[i] = maps.Clone(m)
		c := &s.constraints[i]
		if c.selector.Matches(labels.Set(q.Pod.Labels)) && c.countsNode(pod.Pod, node.Node, s.required) {
			out.matches[i][node.Node.Labels[c.key]] += by
		}
	}
	out.fewest()
	state.Write(p.Name(), &out)
}

// Filter implements FilterPlugin.
func (p PodTopologySpread) Filter(state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	s, ok := state.Read(p.Name()).(*spreadState)
	if !ok {
		return nil
	}
	for i := range s.constraints {
		c := &s.constraints[i]
		v, ok := node.Node.Labels[c.key]
		if !ok {
			return spreadNoLabel
		}
		self := 0
		if c.selector.Matches(labels.Set(pod.Pod.Labels)) {
			self = 1
		}
		if s.matches[i][v]+self-s.low[i] > int(c.maxSkew) {
			return spreadRefused
		}
	}
	return nil
}

// EventsToRegister implements EnqueueExtensions.
func (PodTopologySpread) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		on(framework.AssignedPod, framework.Add|framework.UpdatePodLabel|framework.Delete, spreadAfterPod),
		on(framework.TargetPod, framework.UpdatePodToleration|framework.UpdatePodLabel, always),
		onNode(framework.Add|framework.Delete|framework.UpdateNodeLabel|framework.UpdateNodeTaint, spreadAfterNode),
	}
}

func spreadAfterPod(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
	matches := func(o kube.Object) (out []bool) {
		q, ok := o.(*corev1.Pod)
		for _, c := range constraints(pod.Pod, corev1.DoNotSchedule) {
			out = append(out, ok && q.Namespace == pod.Pod.Namespace && c.selector.Matches(labels.Set(q.Labels)))
		}
		return out
	}
	was, now := matches(old), matches(obj)
	for i := range was {
		if was[i] != now[i] {
			return framework.Queue
		}
	}
	return framework.QueueSkip
}

func spreadAfterNode(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
	was, now := nodes(old, obj)
	cs := constraints(pod.Pod, corev1.DoNotSchedule)
	had, has := was != nil && hasKeys(was, cs), now != nil && hasKeys(now, cs)
	if was == nil || now == nil {
		return hint(had || has)
	}
	if had != has {
		return framework.Queue
	}
	if !has {
		return framework.QueueSkip
	}
	for _, c := range cs {
		if was.Labels[c.key] != now.Labels[c.key] {
			return framework.Queue
		}
	}
	return hint(untolerated(was, pod.Pod) != untolerated(now, pod.Pod) || len(was.Spec.Taints) != len(now.Spec.Taints))
}
