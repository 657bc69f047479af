package framework

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"podwalk/engine/kube"
)

// EventResource is the kind of thing that changed in the cluster.
type EventResource string

// The resources. A Pod counts as one of three: bound to a node; waiting; or the very Pod
// that a hint is asked about.
const (
	AssignedPod           EventResource = "AssignedPod"
	UnscheduledPod        EventResource = "UnscheduledPod"
	TargetPod             EventResource = "TargetPod"
	Node                  EventResource = "Node"
	PersistentVolume      EventResource = "PersistentVolume"
	PersistentVolumeClaim EventResource = "PersistentVolumeClaim"
	StorageClass          EventResource = "storage.k8s.io/StorageClass"
	WildCard              EventResource = "*"
)

// ActionType is what happened to it; a set of bits, so that a plugin can register for
// several at once.
type ActionType int64

// The actions.
const (
	Add ActionType = 1 << iota
	Delete
	UpdateNodeAllocatable
	UpdateNodeLabel
	UpdateNodeTaint
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdatePodLabel
	UpdatePodScaleDown
	UpdatePodToleration
	UpdatePodSchedulingGatesEliminated
	// UpdateOther is a change that none of the above describes.
	UpdateOther

	// Update is any change; All anything at all.
	Update = UpdateNodeAllocatable | UpdateNodeLabel | UpdateNodeTaint | UpdateNodeCondition | UpdateNodeAnnotation |
		UpdatePodLabel | UpdatePodScaleDown | UpdatePodToleration | UpdatePodSchedulingGatesEliminated | UpdateOther
	All = Add | Delete | Update
)

var actionNames = map[ActionType]string{
	Add: "Add", Delete: "Delete", UpdateNodeAllocatable: "UpdateNodeAllocatable", UpdateNodeLabel: "UpdateNodeLabel",
	UpdateNodeTaint: "UpdateNodeTaint", UpdateNodeCondition: "UpdateNodeCondition", UpdateNodeAnnotation: "UpdateNodeAnnotation",
	UpdatePodLabel: "UpdatePodLabel", UpdatePodScaleDown: "UpdatePodScaleDown", UpdatePodToleration: "UpdatePodToleration",
	UpdatePodSchedulingGatesEliminated: "UpdatePodSchedulingGatesEliminated", UpdateOther: "Update", Update: "Update", All: "All",
}

// ClusterEvent is a change that may make waiting Pods schedulable.
type ClusterEvent struct {
	Resource EventResource
	Action   ActionType
	Custom   string // label of the special events below
}

// EventForceActivate puts a Pod back into the active queue whatever it waits for.
var EventForceActivate = ClusterEvent{WildCard, All, "ForceActivate"}

// Label returns upstream's label of the event, such as NodeUpdateNodeTaint.
func (e ClusterEvent) Label() string {
	if e.Custom != "" {
		return e.Custom
	}
	return string(e.Resource) + actionNames[e.Action]
}

// IsWildCard reports whether the event concerns every waiting Pod.
func (e ClusterEvent) IsWildCard() bool { return e.Resource == WildCard && e.Action == All }

// Matches reports whether what happened is the same as, or more specific than, the event
// e that a plugin registered for.
func (e ClusterEvent) Matches(happened ClusterEvent) bool {
	return e.IsWildCard() || e.Resource == happened.Resource && e.Action&happened.Action == happened.Action
}

// QueueingHint is a plugin's word on whether a change may help a Pod that it refused.
type QueueingHint int

// The hints.
const (
	QueueSkip QueueingHint = iota
	Queue
)

// HintFn is asked for each Pod that the plugin refused; old is nil for an addition and
// obj for a removal.
type HintFn func(pod *PodInfo, old, obj kube.Object) QueueingHint

// EventWithHint is one registration. Without a Hint, the event always queues.
type EventWithHint struct {
	Event ClusterEvent
	Hint  HintFn
}

// NodeEvents says what an update of a node changed that matters to scheduling.
func NodeEvents(old, node *corev1.Node) []ClusterEvent {
	var out []ClusterEvent
	add := func(changed bool, a ActionType) {
		if changed {
			out = append(out, ClusterEvent{Resource: Node, Action: a})
		}
	}
	add(old.Spec.Unschedulable && !node.Spec.Unschedulable, UpdateNodeTaint)
	add(!sameAllocatable(old, node), UpdateNodeAllocatable)
	add(!maps.Equal(old.Labels, node.Labels), UpdateNodeLabel)
	add(!equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints), UpdateNodeTaint)
	add(!sameConditions(old, node), UpdateNodeCondition)
	add(!maps.Equal(old.Annotations, node.Annotations), UpdateNodeAnnotation)
	return out
}

func sameConditions(a, b *corev1.Node) bool {
	strip := func(n *corev1.Node) map[corev1.NodeConditionType]corev1.ConditionStatus {
		m := map[corev1.NodeConditionType]corev1.ConditionStatus{}
		for _, c := range n.Status.Conditions {
			m[c.Type] = c.Status
		}
		return m
	}
	return maps.Equal(strip(a), strip(b))
}

// PodEvents says what an update of a Pod changed that matters to scheduling; target says
// that the hint is asked about this same Pod.
func PodEvents(old, pod *PodInfo, target bool) []ClusterEvent {
	r := UnscheduledPod
	if pod.Pod.Spec.NodeName != "" {
		r = AssignedPod
	} else if target {
		r = TargetPod
	}
	var out []ClusterEvent
	add := func(changed bool, a ActionType) {
		if changed {
			out = append(out, ClusterEvent{Resource: r, Action: a})
		}
	}
	add(!maps.Equal(old.Pod.Labels, pod.Pod.Labels), UpdatePodLabel)
	add(scaledDown(old.Request, pod.Request), UpdatePodScaleDown)
	add(len(pod.Pod.Spec.SchedulingGates) == 0 && len(old.Pod.Spec.SchedulingGates) != 0, UpdatePodSchedulingGatesEliminated)
	add(len(old.Pod.Spec.Tolerations) != len(pod.Pod.Spec.Tolerations), UpdatePodToleration)
	if len(out) == 0 {
		add(true, UpdateOther)
	}
	return out
}

func scaledDown(old, now Resource) bool {
	if old.MilliCPU > now.MilliCPU || old.Memory > now.Memory || old.EphemeralStorage > now.EphemeralStorage {
		return true
	}
	for name, n := range old.Scalar {
		if n > now.Scalar[name] {
			return true
		}
	}
	return false
}
