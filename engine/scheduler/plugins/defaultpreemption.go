package plugins

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// DefaultPreemption looks for a node on which the removal of Pods of lower priority
// would make room. It only decides; the scheduler then evicts the victims.
type DefaultPreemption struct{}

// Name implements Plugin.
func (DefaultPreemption) Name() string { return "DefaultPreemption" }

// Upstream's defaults: at least 10% of the nodes and at least 100 are tried.
const (
	minCandidateNodesPercentage = 10
	minCandidateNodesAbsolute   = 100
)

const (
	notHelpful = "Preemption is not helpful for scheduling"
	noVictims  = "No preemption victims found for incoming pod"
)

// candidate is a node with what would have to go there, most important victim first.
type candidate struct {
	node       string
	victims    []*framework.PodInfo
	violations int // of PodDisruptionBudgets
}

// PostFilter implements PostFilterPlugin.
func (p DefaultPreemption) PostFilter(h framework.Handle, state *framework.CycleState, pod *framework.PodInfo, v *framework.Verdicts) (*framework.PostFilterResult, *framework.Status) {
	refuse := func(text string) *framework.Status {
		return framework.NewStatus(framework.Unschedulable, p.Name(), "preemption: "+text)
	}
	if text := notEligible(state, pod, v); text != "" {
		return nil, refuse(text)
	}
	candidates, why := findCandidates(h, state, pod, v)
	if len(candidates) == 0 {
		return &framework.PostFilterResult{Override: true, Nodes: why},
			refuse(framework.FitErrorMessage(state.Snapshot.Nodes.Len(), "", &framework.Verdicts{
				Nodes: why, Absent: framework.NewStatus(framework.UnschedulableAndUnresolvable, p.Name(), notHelpful),
			}, ""))
	}
	best := pickOne(candidates)
	return &framework.PostFilterResult{Override: true, NominatedNode: best.node, Victims: best.victims, Nodes: why},
		framework.NewStatus(framework.Success, p.Name(),
			fmt.Sprintf("preemption: found a potential placement for pod on node %v, preempting %d victims", best.node, len(best.victims)))
}

// notEligible says why the Pod may not preempt, "" if it may.
func notEligible(state *framework.CycleState, pod *framework.PodInfo, v *framework.Verdicts) string {
	if pp := pod.Pod.Spec.PreemptionPolicy; pp != nil && *pp == corev1.PreemptNever {
		return "not eligible due to preemptionPolicy=Never."
	}
	nominated := pod.Pod.Status.NominatedNodeName
	if nominated == "" || v.Get(nominated).GetCode() == framework.UnschedulableAndUnresolvable {
		return ""
	}
	node := state.Snapshot.Get(nominated)
	if node == nil {
		return ""
	}
	for _, q := range node.Pods {
		if q.Priority < pod.Priority && terminatingByPreemption(q.Pod) {
			return "not eligible due to a terminating pod on the nominated node."
		}
	}
	return ""
}

func terminatingByPreemption(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}
	return false
}

// findCandidates tries the nodes that were refused for a reason that the removal of Pods
// may lift; why says what is wrong with those that do not help.
func findCandidates(h framework.Handle, state *framework.CycleState, pod *framework.PodInfo, v *framework.Verdicts) (found []candidate, why []framework.NodeStatus) {
	potential := potentialNodes(state, v)
	if len(potential) == 0 {
		return nil, nil
	}
	want := min(max(len(potential)*minCandidateNodesPercentage/100, minCandidateNodesAbsolute), len(potential))
	pdbs := budgets(state.Snapshot.Objects)
	offset := h.IntN(len(potential))
	var violating []candidate
	for i := range potential {
		node := potential[(offset+i)%len(potential)]
		victims, violations, s := selectVictims(h, state.Clone(), pod, node, pdbs)
		switch {
		case !s.IsSuccess():
			why = append(why, framework.NodeStatus{Node: node.Name, Status: s})
			continue
		case violations > 0:
			violating = append(violating, candidate{node.Name, victims, violations})
		default:
			found = append(found, candidate{node.Name, victims, 0})
		}
		if len(found) > 0 && len(found)+len(violating) >= want {
			break
		}
	}
	return append(found, violating...), why
}

// potentialNodes returns the nodes whose refusal was Unschedulable.
func potentialNodes(state *framework.CycleState, v *framework.Verdicts) []*framework.NodeInfo {
	var out []*framework.NodeInfo
	if v.Absent.GetCode() == framework.Unschedulable {
		seen := map[string]bool{}
		for _, n := range v.Nodes {
			seen[n.Node] = true
		}
		for i := range state.Snapshot.Nodes.Len() {
			if n := state.Snapshot.Nodes.At(i); !seen[n.Name] {
				out = append(out, n)
			}
		}
	}
	for _, n := range v.Nodes {
		if n.Status.GetCode() == framework.Unschedulable {
			if info := state.Snapshot.Get(n.Node); info != nil {
				out = append(out, info)
			}
		}
	}
	return out
}

// selectVictims finds the smallest set of Pods on one node that must go.
func selectVictims(h framework.Handle, state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*framework.PodInfo, int, *framework.Status) {
	var potential []*framework.PodInfo
	for _, q := range node.Pods {
		if q.Priority < pod.Priority {
			potential = append(potential, q)
		}
	}
	if len(potential) == 0 {
		return nil, 0, framework.NewStatus(framework.UnschedulableAndUnresolvable, "DefaultPreemption", noVictims)
	}
	for _, q := range potential {
		node = node.WithoutPod(q.UID())
		h.RemovePod(state, pod, q, node)
	}
	if s := h.RunFilterPlugins(state, pod, node); !s.IsSuccess() {
		return nil, 0, s
	}
	slices.SortStableFunc(potential, moreImportant)
	violating, others := splitByBudget(potential, pdbs)
	var victims []*framework.PodInfo
	violations := 0
	reprieve := func(q *framework.PodInfo) bool {
		with := node.WithPod(q)
		h.AddPod(state, pod, q, with)
		if h.RunFilterPlugins(state, pod, with).IsSuccess() {
			node = with
			return true
		}
		h.RemovePod(state, pod, q, node)
		victims = append(victims, q)
		return false
	}
	for _, q := range violating {
		if !reprieve(q) {
			violations++
		}
	}
	for _, q := range others {
		reprieve(q)
	}
	if len(victims) == 0 {
		return nil, 0, framework.AsStatus("DefaultPreemption", fmt.Errorf("expected at least one victim pod on node %q", node.Name))
	}
	slices.SortStableFunc(victims, moreImportant)
	return victims, violations, nil
}

// moreImportant sorts by priority, then by who has run longer.
func moreImportant(a, b *framework.PodInfo) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	return cmp.Compare(startTime(a.Pod), startTime(b.Pod))
}

// startTime is when the Pod started; one that has not started counts as now, the latest.
func startTime(pod *corev1.Pod) int64 {
	if pod.Status.StartTime == nil {
		return math.MaxInt64
	}
	return pod.Status.StartTime.UnixNano()
}

func budgets(objects framework.Lister) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	if objects == nil {
		return nil
	}
	objects.Each((*policyv1.PodDisruptionBudget)(nil), "", func(o kube.Object) bool {
		out = append(out, o.(*policyv1.PodDisruptionBudget))
		return true
	})
	return out
}

// splitByBudget separates the Pods whose removal a PodDisruptionBudget forbids.
func splitByBudget(pods []*framework.PodInfo, pdbs []*policyv1.PodDisruptionBudget) (violating, others []*framework.PodInfo) {
	allowed := make([]int32, len(pdbs))
	for i, b := range pdbs {
		allowed[i] = b.Status.DisruptionsAllowed
	}
	for _, q := range pods {
		bad := false
		for i, b := range pdbs {
			if len(q.Pod.Labels) == 0 || b.Namespace != q.Pod.Namespace {
				continue
			}
			sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil || sel.Empty() || !sel.Matches(labels.Set(q.Pod.Labels)) {
				continue
			}
			if _, done := b.Status.DisruptedPods[q.Pod.Name]; done {
				continue
			}
			if allowed[i]--; allowed[i] < 0 {
				bad = true
				break
			}
		}
		if bad {
			violating = append(violating, q)
		} else {
			others = append(others, q)
		}
	}
	return violating, others
}

// pickOne chooses the node where preemption hurts least: fewest violated budgets, lowest
// highest priority, smallest sum of priorities, fewest victims, the youngest victims.
func pickOne(candidates []candidate) candidate {
	best := candidates
	for _, score := range []func(candidate) int64{
		func(c candidate) int64 { return -int64(c.violations) },
		func(c candidate) int64 { return -int64(c.victims[0].Priority) },
		func(c candidate) (s int64) {
			for _, v := range c.victims {
				s -= int64(v.Priority) + math.MaxInt32 + 1
			}
			return s
		},
		func(c candidate) int64 { return -int64(len(c.victims)) },
		earliestStart,
	} {
		top := score(best[0])
		for _, c := range best {
			top = max(top, score(c))
		}
		best = slices.DeleteFunc(slices.Clone(best), func(c candidate) bool { return score(c) < top })
		if len(best) == 1 {
			break
		}
	}
	return best[0]
}

// earliestStart is when the first of the most important victims started.
func earliestStart(c candidate) int64 {
	first := startTime(c.victims[0].Pod)
	for _, v := range c.victims {
		if v.Priority == c.victims[0].Priority {
			first = min(first, startTime(v.Pod))
		}
	}
	return first
}

// EventsToRegister implements EnqueueExtensions: the plugins that refused the Pod decide
// when it is tried again.
func (DefaultPreemption) EventsToRegister() []framework.EventWithHint { return nil }
