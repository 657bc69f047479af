package plugins

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// InterPodAffinity matches a Pod's podAffinity and podAntiAffinity, and the
// podAntiAffinity of the Pods that run already, by the places (topologyKey) of nodes.
type InterPodAffinity struct{}

// Name implements Plugin.
func (InterPodAffinity) Name() string { return "InterPodAffinity" }

// hardPodAffinityWeight is how much a required affinity of a running Pod to the new one
// counts in scoring.
const hardPodAffinityWeight = 1

var (
	existingAntiAffinityRefused = framework.NewStatus(framework.Unschedulable, "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules")
	podAffinityRefused          = framework.NewStatus(framework.UnschedulableAndUnresolvable, "InterPodAffinity", "node(s) didn't match pod affinity rules")
	podAntiAffinityRefused      = framework.NewStatus(framework.Unschedulable, "InterPodAffinity", "node(s) didn't match pod anti-affinity rules")
)

// place is one value of a topology key; all nodes that share it count as one place.
type place struct{ key, value string }

type counts map[place]int64

func (c counts) add(node *corev1.Node, key string, n int64) {
	if v, ok := node.Labels[key]; ok {
		p := place{key, v}
		if c[p] += n; c[p] == 0 {
			delete(c, p)
		}
	}
}

// affinityState is what PreFilter counts: Pods by place.
type affinityState struct {
	pod      *framework.PodInfo
	nsLabels labels.Set // of the Pod's namespace
	required []framework.AffinityTerm
	anti     []framework.AffinityTerm

	existingAnti counts // running Pods that do not want this one
	affinity     counts // running Pods that this one wants near
	antiAffinity counts // running Pods that this one does not want near
}

func (s *affinityState) clone() *affinityState {
	out := *s
	out.existingAnti, out.affinity, out.antiAffinity = maps.Clone(s.existingAnti), maps.Clone(s.affinity), maps.Clone(s.antiAffinity)
	return &out
}

// count adds a running Pod, n times.
func (s *affinityState) count(q *framework.PodInfo, node *corev1.Node, n int64) {
	if q.Affinity != nil {
		for i := range q.Affinity.RequiredAnti {
			if t := &q.Affinity.RequiredAnti[i]; t.Matches(s.pod.Pod, s.nsLabels) {
				s.existingAnti.add(node, t.TopologyKey, n)
			}
		}
	}
	if matchesAll(s.required, q.Pod) {
		for i := range s.required {
			s.affinity.add(node, s.required[i].TopologyKey, n)
		}
	}
	for i := range s.anti {
		if s.anti[i].Matches(q.Pod, nil) {
			s.antiAffinity.add(node, s.anti[i].TopologyKey, n)
		}
	}
}

// matchesAll reports whether a Pod counts for all terms; never if there are none.
func matchesAll(terms []framework.AffinityTerm, pod *corev1.Pod) bool {
	for i := range terms {
		if !terms[i].Matches(pod, nil) {
			return false
		}
	}
	return len(terms) > 0
}

func matchesAny(terms []framework.AffinityTerm, pod *corev1.Pod) bool {
	for i := range terms {
		if terms[i].Matches(pod, nil) {
			return true
		}
	}
	return false
}

// resolve turns namespace selectors into the namespaces that they select now.
func resolve(objects framework.Lister, terms []framework.AffinityTerm) []framework.AffinityTerm {
	out := make([]framework.AffinityTerm, len(terms))
	for i, t := range terms {
		if !t.NamespaceSelector.Empty() {
			t.Namespaces = maps.Clone(t.Namespaces)
			objects.Each((*corev1.Namespace)(nil), "", func(o kube.Object) bool {
				if t.NamespaceSelector.Matches(labels.Set(o.GetLabels())) {
					t.Namespaces[o.GetName()] = true
				}
				return true
			})
			t.NamespaceSelector = labels.Nothing()
		}
		out[i] = t
	}
	return out
}

func namespaceLabels(objects framework.Lister, namespace string) labels.Set {
	if ns, ok := objects.Object((*corev1.Namespace)(nil), "", namespace); ok {
		return labels.Set(ns.GetLabels())
	}
	return nil
}

// PreFilter implements PreFilterPlugin.
func (p InterPodAffinity) PreFilter(state *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	snap := state.Snapshot
	s := &affinityState{pod: pod, existingAnti: counts{}, affinity: counts{}, antiAffinity: counts{}}
	if pod.Affinity != nil {
		s.required, s.anti = resolve(snap.Objects, pod.Affinity.Required), resolve(snap.Objects, pod.Affinity.RequiredAnti)
	}
	own := len(s.required)+len(s.anti) > 0
	if !own && snap.WithAntiAffinity == 0 {
		return nil, framework.NewStatus(framework.Skip, p.Name())
	}
	s.nsLabels = namespaceLabels(snap.Objects, pod.Pod.Namespace)
	for i := range snap.Nodes.Len() {
		n := snap.Nodes.At(i)
		pods := n.WithAntiAffinity
		if own {
			pods = n.Pods
		}
		for _, q := range pods {
			s.count(q, n.Node, 1)
		}
	}
	if !own && len(s.existingAnti) == 0 {
		return nil, framework.NewStatus(framework.Skip, p.Name())
	}
	state.Write(p.Name(), s)
	return nil, nil
}

// AddPod implements PreFilterExtensions.
func (p InterPodAffinity) AddPod(state *framework.CycleState, _, added *framework.PodInfo, node *framework.NodeInfo) {
	p.update(state, added, node, 1)
}

// RemovePod implements PreFilterExtensions.
func (p InterPodAffinity) RemovePod(state *framework.CycleState, _, removed *framework.PodInfo, node *framework.NodeInfo) {
	p.update(state, removed, node, -1)
}

func (p InterPodAffinity) update(state *framework.CycleState, q *framework.PodInfo, node *framework.NodeInfo, n int64) {
	if s, ok := state.Read(p.Name()).(*affinityState); ok {
		s = s.clone()
		s.count(q, node.Node, n)
		state.Write(p.Name(), s)
	}
}

// Filter implements FilterPlugin.
func (p InterPodAffinity) Filter(state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	s, ok := state.Read(p.Name()).(*affinityState)
	if !ok {
		return nil
	}
	switch {
	case !s.near(node.Node):
		return podAffinityRefused
	case s.tooNear(node.Node):
		return podAntiAffinityRefused
	case s.unwanted(node.Node):
		return existingAntiAffinityRefused
	}
	return nil
}

// near reports whether the Pods that this one wants near are there.
func (s *affinityState) near(node *corev1.Node) bool {
	there := true
	for i := range s.required {
		v, ok := node.Labels[s.required[i].TopologyKey]
		if !ok {
			return false
		}
		if s.affinity[place{s.required[i].TopologyKey, v}] <= 0 {
			there = false
		}
	}
	// The first Pod of a group that wants to be near its own kind may go anywhere.
	return there || len(s.affinity) == 0 && matchesAll(s.required, s.pod.Pod)
}

func (s *affinityState) tooNear(node *corev1.Node) bool {
	for i := range s.anti {
		if v, ok := node.Labels[s.anti[i].TopologyKey]; ok && s.antiAffinity[place{s.anti[i].TopologyKey, v}] > 0 {
			return true
		}
	}
	return false
}

func (s *affinityState) unwanted(node *corev1.Node) bool {
	if len(s.existingAnti) == 0 {
		return false
	}
	for key, v := range node.Labels {
		if s.existingAnti[place{key, v}] > 0 {
			return true
		}
	}
	return false
}

// affinityScores sums the weights by place.
type affinityScores map[place]int64

func (m affinityScores) add(terms []framework.AffinityTerm, pod *corev1.Pod, ns labels.Set, node *corev1.Node, sign int64) {
	for i := range terms {
		t := &terms[i]
		if v, ok := node.Labels[t.TopologyKey]; ok && t.Matches(pod, ns) {
			m[place{t.TopologyKey, v}] += sign * int64(t.Weight)
		}
	}
}

const affinityScoresKey = "InterPodAffinity/scores"

// PreScore implements PreScorePlugin.
func (p InterPodAffinity) PreScore(state *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	snap := state.Snapshot
	var preferred, anti []framework.AffinityTerm
	if pod.Affinity != nil {
		preferred, anti = resolve(snap.Objects, pod.Affinity.Preferred), resolve(snap.Objects, pod.Affinity.PreferredAnti)
	}
	own := len(preferred)+len(anti) > 0
	if !own && snap.WithAffinity == 0 {
		return framework.NewStatus(framework.Skip, p.Name())
	}
	ns := namespaceLabels(snap.Objects, pod.Pod.Namespace)
	m := affinityScores{}
	for i := range snap.Nodes.Len() {
		n := snap.Nodes.At(i)
		pods := n.WithAffinity
		if own {
			pods = n.Pods
		}
		for _, q := range pods {
			m.add(preferred, q.Pod, nil, n.Node, 1)
			m.add(anti, q.Pod, nil, n.Node, -1)
			if q.Affinity == nil {
				continue
			}
			for j := range q.Affinity.Required {
				t := q.Affinity.Required[j]
				t.Weight = hardPodAffinityWeight
				m.add([]framework.AffinityTerm{t}, pod.Pod, ns, n.Node, 1)
			}
			m.add(q.Affinity.Preferred, pod.Pod, ns, n.Node, 1)
			m.add(q.Affinity.PreferredAnti, pod.Pod, ns, n.Node, -1)
		}
	}
	if len(m) == 0 {
		return framework.NewStatus(framework.Skip, p.Name())
	}
	state.Write(affinityScoresKey, m)
	return nil
}

// Score implements ScorePlugin.
func (InterPodAffinity) Score(state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	m, _ := state.Read(affinityScoresKey).(affinityScores)
	var sum int64
	for key, v := range node.Node.Labels {
		sum += m[place{key, v}]
	}
	return sum, nil
}

// NormalizeScore implements ScoreExtensions: the lowest sum becomes 0, the highest 100.
func (InterPodAffinity) NormalizeScore(_ *framework.CycleState, _ *framework.PodInfo, _ []*framework.NodeInfo, scores []int64) {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range scores {
		low, high = min(low, s), max(high, s)
	}
	for i, s := range scores {
		scores[i] = 0
		if high > low {
			scores[i] = int64(float64(framework.MaxNodeScore) * (float64(s-low) / float64(high-low)))
		}
	}
}

// EventsToRegister implements EnqueueExtensions.
func (InterPodAffinity) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		on(framework.AssignedPod, framework.Add|framework.UpdatePodLabel|framework.Delete, affinityAfterPod),
		on(framework.TargetPod, framework.UpdatePodLabel, always),
		onNode(framework.Add|framework.UpdateNodeLabel, affinityAfterNode),
	}
}

func affinityAfterPod(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
	was, _ := old.(*corev1.Pod)
	now, _ := obj.(*corev1.Pod)
	var required, anti []framework.AffinityTerm
	if pod.Affinity != nil {
		required, anti = pod.Affinity.Required, pod.Affinity.RequiredAnti
	}
	switch {
	case was != nil && now != nil:
		return hint(!matchesAll(required, was) && matchesAll(required, now) || matchesAny(anti, was) && !matchesAny(anti, now))
	case now != nil:
		return hint(matchesAll(required, now))
	}
	if matchesAny(anti, was) {
		return framework.Queue
	}
	theirs := framework.NewPodInfo(was).Affinity
	return hint(theirs != nil && matchesAny(theirs.RequiredAnti, pod.Pod))
}

func affinityAfterNode(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
	was, now := nodes(old, obj)
	if pod.Affinity == nil {
		return framework.QueueSkip
	}
	for _, t := range pod.Affinity.Required {
		v, has := now.Labels[t.TopologyKey]
		if was == nil {
			if has {
				return framework.Queue
			}
			continue
		}
		if w, had := was.Labels[t.TopologyKey]; has && (!had || v != w) {
			return framework.Queue
		}
	}
	for _, t := range pod.Affinity.RequiredAnti {
		if was == nil {
			return framework.Queue
		}
		v, has := now.Labels[t.TopologyKey]
		if w, had := was.Labels[t.TopologyKey]; had && (!has || v != w) {
			return framework.Queue
		}
	}
	return framework.QueueSkip
}
