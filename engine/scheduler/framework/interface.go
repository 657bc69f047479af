package framework

import (
	corev1 "k8s.io/api/core/v1"
)

// Plugin is a scheduling plugin; it implements the extension points below that it needs.
type Plugin interface {
	Name() string
}

// QueueSortPlugin orders the active queue.
type QueueSortPlugin interface {
	Plugin
	Less(a, b QueuedPod) bool
}

// QueuedPod is what a QueueSort plugin sees of a waiting Pod.
type QueuedPod interface {
	GetPriority() int32
	GetTimestamp() int64 // virtual nanoseconds
}

// PreEnqueuePlugin decides whether a Pod may enter the active queue.
type PreEnqueuePlugin interface {
	Plugin
	PreEnqueue(pod *PodInfo) *Status
}

// EnqueueExtensions names the changes that may help the Pods that a plugin refused. A
// plugin that filters and does not implement it is woken by any change.
type EnqueueExtensions interface {
	Plugin
	EventsToRegister() []EventWithHint
}

// PreFilterResult narrows the nodes to look at; nil means all of them.
type PreFilterResult struct {
	NodeNames map[string]bool
}

// PreFilterPlugin looks at the Pod once, before the nodes.
type PreFilterPlugin interface {
	Plugin
	PreFilter(state *CycleState, pod *PodInfo) (*PreFilterResult, *Status)
}

// PreFilterExtensions keeps what PreFilter computed right while preemption and nominated
// Pods are tried out.
type PreFilterExtensions interface {
	AddPod(state *CycleState, pod, added *PodInfo, node *NodeInfo)
	RemovePod(state *CycleState, pod, removed *PodInfo, node *NodeInfo)
}

// FilterPlugin says whether a node can run the Pod.
type FilterPlugin interface {
	Plugin
	Filter(state *CycleState, pod *PodInfo, node *NodeInfo) *Status
}

// NodeStatus is the verdict on one node.
type NodeStatus struct {
	Node   string
	Status *Status
}

// Verdicts are the refusals of a cycle, in the order in which the nodes were looked at.
type Verdicts struct {
	Nodes []NodeStatus
	// Absent is the status of every node that is not in Nodes; nil means
	// UnschedulableAndUnresolvable without a reason.
	Absent *Status
}

// Get returns the status of a node.
func (v *Verdicts) Get(node string) *Status {
	for i := range v.Nodes {
		if v.Nodes[i].Node == node {
			return v.Nodes[i].Status
		}
	}
	if v.Absent != nil {
		return v.Absent
	}
	return NewStatus(UnschedulableAndUnresolvable, "")
}

// PostFilterResult is what came of a PostFilter plugin.
type PostFilterResult struct {
	// Override says that NominatedNode is to be written to the Pod, even where it is empty.
	Override      bool
	NominatedNode string
	Victims       []*PodInfo
	// Nodes says for each node why preemption there would not help, for the trace.
	Nodes []NodeStatus
}

// PostFilterPlugin tries to make room for a Pod that fits nowhere.
type PostFilterPlugin interface {
	Plugin
	PostFilter(h Handle, state *CycleState, pod *PodInfo, v *Verdicts) (*PostFilterResult, *Status)
}

// PreScorePlugin looks at the Pod once, before the nodes that fit are scored.
type PreScorePlugin interface {
	Plugin
	PreScore(state *CycleState, pod *PodInfo, nodes []*NodeInfo) *Status
}

// MaxNodeScore is the best normalised score; the worst is 0.
const MaxNodeScore int64 = 100

// ScorePlugin says how well a node suits the Pod.
type ScorePlugin interface {
	Plugin
	Score(state *CycleState, pod *PodInfo, node *NodeInfo) (int64, *Status)
}

// ScoreExtensions brings a plugin's scores of all nodes into the range 0–100.
type ScoreExtensions interface {
	NormalizeScore(state *CycleState, pod *PodInfo, nodes []*NodeInfo, scores []int64)
}

// ReservePlugin sets something aside for the Pod on the chosen node.
type ReservePlugin interface {
	Plugin
	Reserve(state *CycleState, pod *PodInfo, node string) *Status
	Unreserve(state *CycleState, pod *PodInfo, node string)
}

// PermitPlugin may refuse the Pod at the last moment.
type PermitPlugin interface {
	Plugin
	Permit(state *CycleState, pod *PodInfo, node string) *Status
}

// PreBindPlugin does what must be done before the Pod is bound.
type PreBindPlugin interface {
	Plugin
	PreBind(state *CycleState, pod *PodInfo, node string) *Status
}

// Binder sends the binding to the API server; the answer comes later.
type Binder interface {
	Bind(pod *corev1.Pod, node string)
}

// BindPlugin binds the Pod to its node.
type BindPlugin interface {
	Plugin
	Bind(b Binder, state *CycleState, pod *PodInfo, node string) *Status
}

// PostBindPlugin is told of a successful binding.
type PostBindPlugin interface {
	Plugin
	PostBind(state *CycleState, pod *PodInfo, node string)
}

// Handle is what a PostFilter plugin needs of the scheduler.
type Handle interface {
	// RunFilterPlugins runs the profile's filters for one node, with the Pods nominated to
	// it and without.
	RunFilterPlugins(state *CycleState, pod *PodInfo, node *NodeInfo) *Status
	// AddPod and RemovePod run the profile's PreFilterExtensions.
	AddPod(state *CycleState, pod, added *PodInfo, node *NodeInfo)
	RemovePod(state *CycleState, pod, removed *PodInfo, node *NodeInfo)
	// IntN draws from the scheduler's random stream.
	IntN(n int) int
}

// DefaultNormalizeScore scales the scores so that the highest becomes 100, turned round
// if reverse is set.
func DefaultNormalizeScore(reverse bool, scores []int64) {
	var top int64
	for _, s := range scores {
		top = max(top, s)
	}
	for i, s := range scores {
		if top > 0 {
			s = MaxNodeScore * s / top
		}
		if reverse {
			s = MaxNodeScore - s
		}
		scores[i] = s
	}
}
