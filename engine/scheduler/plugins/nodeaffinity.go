package plugins

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// NodeAffinity matches spec.nodeSelector and spec.affinity.nodeAffinity against the
// labels of nodes, and prefers nodes that match the preferred terms.
type NodeAffinity struct{}

// Name implements Plugin.
func (NodeAffinity) Name() string { return "NodeAffinity" }

var nodeAffinityRefused = framework.NewStatus(framework.UnschedulableAndUnresolvable, "NodeAffinity", "node(s) didn't match Pod's node affinity/selector")

// PreFilter implements PreFilterPlugin.
func (p NodeAffinity) PreFilter(state *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	var required *corev1.NodeSelector
	if a := pod.Pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if required == nil && pod.Pod.Spec.NodeSelector == nil {
		return nil, framework.NewStatus(framework.Skip, p.Name())
	}
	state.Write(p.Name(), nodeaffinity.GetRequiredNodeAffinity(pod.Pod))
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return nil, nil
	}
	names, named := nodeNames(required.NodeSelectorTerms)
	switch {
	case !named:
		return nil, nil
	case len(names) == 0:
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, p.Name(), "pod affinity terms conflict")
	}
	return &framework.PreFilterResult{NodeNames: names}, nil
}

// nodeNames returns the nodes that the terms name by matchFields, and false if a term
// names none: then all nodes must be looked at. DaemonSet Pods are such.
func nodeNames(terms []corev1.NodeSelectorTerm) (map[string]bool, bool) {
	all := map[string]bool{}
	for _, t := range terms {
		var names map[string]bool
		for _, r := range t.MatchFields {
			if r.Key != metav1.ObjectNameField || r.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			these := map[string]bool{}
			for _, v := range r.Values {
				if names == nil || names[v] {
					these[v] = true
				}
			}
			names = these
		}
		if names == nil {
			return nil, false
		}
		for n := range names {
			all[n] = true
		}
	}
	return all, true
}

// Filter implements FilterPlugin.
func (p NodeAffinity) Filter(state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	required, ok := state.Read(p.Name()).(nodeaffinity.RequiredNodeAffinity)
	if !ok {
		required = nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
	}
	if match, _ := required.Match(node.Node); !match {
		return nodeAffinityRefused
	}
	return nil
}

const preferredNodeAffinity = "NodeAffinity/preferred"

// PreScore implements PreScorePlugin.
func (p NodeAffinity) PreScore(state *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	a := pod.Pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution == nil {
		return framework.NewStatus(framework.Skip, p.Name())
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return framework.AsStatus(p.Name(), err)
	}
	state.Write(preferredNodeAffinity, terms)
	return nil
}

// Score implements ScorePlugin: the sum of the weights of the terms that match.
func (NodeAffinity) Score(state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	terms, ok := state.Read(preferredNodeAffinity).(*nodeaffinity.PreferredSchedulingTerms)
	if !ok {
		return 0, nil
	}
	return terms.Score(node.Node), nil
}

// NormalizeScore implements ScoreExtensions.
func (NodeAffinity) NormalizeScore(_ *framework.CycleState, _ *framework.PodInfo, _ []*framework.NodeInfo, scores []int64) {
	framework.DefaultNormalizeScore(false, scores)
}

// EventsToRegister implements EnqueueExtensions.
func (NodeAffinity) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		onNode(framework.Add|framework.UpdateNodeLabel, func(pod *framework.PodInfo, old, obj kube.Object) framework.QueueingHint {
			was, now := nodes(old, obj)
			required := nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
			if match, err := required.Match(now); err != nil || !match {
				return hint(err != nil)
			}
			if was == nil {
				return framework.Queue
			}
			matched, err := required.Match(was)
			return hint(err != nil || !matched)
		}),
	}
}
