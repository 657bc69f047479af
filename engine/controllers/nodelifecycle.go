package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	nodetopology "k8s.io/component-helpers/node/topology"

	"podwalk/engine/client"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// nodeLifecycle watches over the nodes: a node that does not renew its lease for 50 s
// gets the condition Ready=Unknown and the taints of an unreachable node, and its Pods
// are marked not Ready. It also turns conditions into NoSchedule taints. Upstream:
// pkg/controller/nodelifecycle.
type nodeLifecycle struct {
	a      *actor
	nodes  *client.Cache[*corev1.Node]
	pods   *client.Cache[*corev1.Pod]
	leases *client.Cache[*coordinationv1.Lease]
	state  nodeLifecycleState
}

type nodeLifecycleState struct {
	Known  map[string]types.UID // nodes seen so far
	Health map[string]nodeHealth
	Zones  map[string]zone
}

// nodeHealth is what the controller remembers of a node's signs of life.
type nodeHealth struct {
	Probe     kernel.Time // when it last saw a new one
	HasReady  bool
	Heartbeat metav1.Time
	Renewed   metav1.MicroTime
}

// zone is a failure domain: taints that evict Pods are added at a limited rate in each.
type zone struct {
	State zoneState
	Rate  float64 // nodes a second; 0 stops
	Next  kernel.Time
	Queue []string // nodes that wait for their NoExecute taint
}

type zoneState string

const (
	zoneInitial zoneState = "Initial"
	zoneNormal  zoneState = "Normal"
	zoneFull    zoneState = "FullDisruption"
	zonePartial zoneState = "PartialDisruption"
)

// The keys of the queue: the monitor's round, the taint queue, and "node/NAME" for a
// node whose NoSchedule taints may have to follow its conditions.
const (
	monitorKey = "monitor"
	taintKey   = "taint"
	nodePrefix = "node/"
)

func newNodeLifecycle(a *actor) logic {
	c := &nodeLifecycle{a: a, state: newNodeLifecycleState()}
	c.nodes = watch(a, func(ch client.Change[*corev1.Node]) {
		if ch.New != nil {
			a.q.add(nodePrefix + ch.New.Name)
		}
	})
	c.pods = watch(a, quiet[*corev1.Pod])
	c.leases = watch(a, quiet[*coordinationv1.Lease])
	return c
}

func (c *nodeLifecycle) start() { c.a.q.add(monitorKey) }

func (c *nodeLifecycle) gather(key string) any {
	switch key {
	case monitorKey:
		c.a.q.addAfter(monitorKey, c.a.cfg.NodeMonitorPeriod)
		return c.monitor()
	case taintKey:
		return c.takeTaints()
	}
	n, ok := c.nodes.Get("", key[len(nodePrefix):])
	if !ok {
		return nil
	}
	if add, del := conditionTaints(n); len(add)+len(del) > 0 {
		return taintInput{Nodes: []taintChange{{n, add, del}}}
	}
	return nil
}

func (c *nodeLifecycle) sync(r *run, input any) error {
	switch in := input.(type) {
	case monitorInput:
		return c.writeHealth(r, in)
	case taintInput:
		for _, ch := range in.Nodes {
			if err := writeTaints(r, ch); err != nil {
				return err
			}
		}
	}
	return nil
}

// monitorInput is what one round of the monitor found to do.
type monitorInput struct {
	Silent []silentNode
	Taints []taintChange // to be swapped or taken off at once
}

// silentNode is a node that has just been silent for too long.
type silentNode struct {
	Node     *corev1.Node
	Lease    string // its lease's resourceVersion as the cache has it
	Silence  time.Duration
	WasReady bool
	Pods     []*corev1.Pod // on it
}

// monitor looks at every node once and updates what the controller remembers.
func (c *nodeLifecycle) monitor() any {
	c.register()
	in := monitorInput{}
	ready := map[string][]corev1.ConditionStatus{} // by zone
	c.nodes.Each("", func(n *corev1.Node) bool {
		status, silence := c.observe(n)
		before := readyCondition(n)
		if silence > 0 && (before == nil || before.Status != corev1.ConditionUnknown) {
			in.Silent = append(in.Silent, silentNode{n, c.leaseVersion(n.Name), silence, before != nil && before.Status == corev1.ConditionTrue, c.podsOn(n.Name)})
		}
		z := nodetopology.GetZoneKey(n)
		if _, excluded := n.Labels["node.kubernetes.io/exclude-disruption"]; !excluded {
			ready[z] = append(ready[z], status)
		}
		c.queueTaint(&in, n, z, status)
		return true
	})
	c.disruption(&in, ready)
	c.wakeTainter()
	if len(in.Silent)+len(in.Taints) == 0 {
		return nil
	}
	return in
}

// register notes nodes that came and went.
func (c *nodeLifecycle) register() {
	c.nodes.Each("", func(n *corev1.Node) bool {
		z := nodetopology.GetZoneKey(n)
		if _, known := c.state.Zones[z]; !known {
			c.state.Zones[z] = zone{State: zoneInitial, Rate: c.a.cfg.NodeEvictionRate}
		}
		if _, known := c.state.Known[n.Name]; !known {
			c.state.Known[n.Name] = n.UID
			c.nodeEvent(n.Name, n.UID, "RegisteredNode", fmt.Sprintf("Node %s event: Registered Node %s in Controller", n.Name, n.Name))
		}
		return true
	})
	for _, name := range slices.Sorted(maps.Keys(c.state.Known)) {
		if _, there := c.nodes.Get("", name); !there {
			c.nodeEvent(name, c.state.Known[name], "RemovingNode", fmt.Sprintf("Node %s event: Removing Node %s from Controller", name, name))
			delete(c.state.Known, name)
			delete(c.state.Health, name)
		}
	}
}

func (c *nodeLifecycle) nodeEvent(name string, uid types.UID, reason, message string) {
	c.a.rec.EventFor(corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}, corev1.EventTypeNormal, reason, message)
}

// observe takes note of a node's signs of life: a new heartbeat in its status or a
// renewed lease. It returns what Ready is to be seen as, and for how long the node has
// been silent where that is too long.
func (c *nodeLifecycle) observe(n *corev1.Node) (status corev1.ConditionStatus, silence time.Duration) {
	now := c.a.k.Now()
	grace := c.a.cfg.NodeStartupGracePeriod
	cond := readyCondition(n)
	status = corev1.ConditionUnknown
	h, known := c.state.Health[n.Name]
	if cond != nil {
		grace, status = c.a.cfg.NodeMonitorGracePeriod, cond.Status
		if !known || !h.HasReady || !h.Heartbeat.Equal(&cond.LastHeartbeatTime) {
			h.Probe = now
		}
		h.Heartbeat = cond.LastHeartbeatTime
	} else if !known {
		h.Probe = now
	}
	h.HasReady = cond != nil
	if l, ok := c.leases.Get(corev1.NamespaceNodeLease, n.Name); ok && l.Spec.RenewTime != nil && h.Renewed.Before(l.Spec.RenewTime) {
		h.Renewed, h.Probe = *l.Spec.RenewTime, now
	}
	c.state.Health[n.Name] = h
	if s := now.Sub(h.Probe); s > grace {
		return corev1.ConditionUnknown, s
	}
	return status, 0
}

func (c *nodeLifecycle) leaseVersion(node string) string {
	if l, ok := c.leases.Get(corev1.NamespaceNodeLease, node); ok {
		return l.ResourceVersion
	}
	return ""
}

// confirmed asks for a node's lease past the cache: it may be the cache that fell behind,
// or the API server that cannot be reached.
func confirmed(r *run, s silentNode) (bool, error) {
	ans, err := r.do(get(kube.Leases, corev1.NamespaceNodeLease, s.Node.Name))
	if err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	}
	return kube.Meta(ans.Object).GetResourceVersion() == s.Lease, nil
}

func readyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

func (c *nodeLifecycle) podsOn(node string) []*corev1.Pod {
	var out []*corev1.Pod
	c.pods.Each("", func(p *corev1.Pod) bool {
		if p.Spec.NodeName == node {
			out = append(out, p)
		}
		return true
	})
	return out
}

// writeHealth writes the conditions of nodes that fell silent, marks their Pods not
// Ready, and changes taints that must not wait.
func (c *nodeLifecycle) writeHealth(r *run, in monitorInput) error {
	var failed error
	for _, s := range in.Silent {
		if err := c.markUnknown(r, s); err != nil {
			failed = err
		}
	}
	for _, ch := range in.Taints {
		if err := writeTaints(r, ch); err != nil {
			failed = err
		}
	}
	return failed
}

func (c *nodeLifecycle) markUnknown(r *run, s silentNode) error {
	if silent, err := confirmed(r, s); err != nil || !silent {
		return err
	}
	n := s.Node.DeepCopy()
	setUnknown(n, r.now())
	r.hop(trace.Hop{
		Stage: stage.NodeLifecycle, Verb: "check Node " + n.Name, Object: trace.Ref{Kind: "Node", Name: n.Name}, Outcome: trace.Failed,
		Reason: "NodeStatusUnknown", Message: fmt.Sprintf("Kubelet stopped posting node status. Node %s has renewed neither its lease nor its status for %s (the grace period is %s): Ready becomes Unknown",
			n.Name, s.Silence.Round(100*time.Millisecond), c.a.cfg.NodeMonitorGracePeriod),
	})
	if _, err := r.do(updateStatus(n)); err != nil {
		return err
	}
	if !s.WasReady {
		return nil
	}
	r.once(func() {
		c.nodeEvent(n.Name, n.UID, "NodeNotReady", fmt.Sprintf("Node %s status is now: NodeNotReady", n.Name))
	})
	for _, p := range s.Pods {
		markPodNotReady(r, p)
	}
	return nil
}

// setUnknown sets the conditions that a silent kubelet would have kept up to date.
func setUnknown(n *corev1.Node, now metav1.Time) {
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == t })
		if i < 0 {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: t, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: n.CreationTimestamp, LastTransitionTime: now,
			})
			continue
		}
		if cond := &n.Status.Conditions[i]; cond.Status != corev1.ConditionUnknown {
			cond.Status, cond.Reason, cond.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			cond.LastTransitionTime = now
		}
	}
}

// markPodNotReady takes a Pod on a silent node out of service: only its Ready condition
// changes, its phase and containers stay as they were last reported.
func markPodNotReady(r *run, p *corev1.Pod) {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if i < 0 || p.Status.Conditions[i].Status == corev1.ConditionFalse {
		return
	}
	p = p.DeepCopy()
	p.Status.Conditions[i].Status = corev1.ConditionFalse
	p.Status.Conditions[i].LastTransitionTime = r.now()
	r.hop(trace.Hop{
		Stage: stage.NodeLifecycle, From: component, To: stage.APIServer, Verb: "mark Pod " + p.Name + " not ready", Object: ref("Pod", p),
		Outcome: trace.Failed, Reason: "NodeNotReady", Message: "Node is not ready",
	})
	if _, err := r.do(updateStatus(p)); err != nil {
		return // gone, or changed meanwhile: then somebody else knows better
	}
	r.event(p, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
}

// taintInput is a set of taint changes to write.
type taintInput struct{ Nodes []taintChange }

type taintChange struct {
	Node     *corev1.Node
	Add, Del []corev1.Taint
}

// writeTaints patches a node's taints.
func writeTaints(r *run, ch taintChange) error {
	taints := slices.DeleteFunc(slices.Clone(ch.Node.Spec.Taints), func(t corev1.Taint) bool {
		same := func(o corev1.Taint) bool { return o.MatchTaint(&t) }
		return slices.ContainsFunc(ch.Del, same) || slices.ContainsFunc(ch.Add, same)
	})
	now := r.now()
	for _, t := range ch.Add {
		t.TimeAdded = &now
		taints = append(taints, t)
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": ch.Node.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return err
	}
	for _, t := range ch.Add {
		r.hop(taintHop(ch.Node, "add taint "+taintText(t)))
	}
	for _, t := range ch.Del {
		if slices.ContainsFunc(ch.Node.Spec.Taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) }) {
			r.hop(taintHop(ch.Node, "remove taint "+taintText(t)))
		}
	}
	req := patch(ch.Node, types.StrategicMergePatchType, body)
	req.Background = true
	_, err = r.do(req)
	return err
}

func taintText(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

func taintHop(n *corev1.Node, verb string) trace.Hop {
	state := "has no Ready condition"
	if cond := readyCondition(n); cond != nil {
		state = fmt.Sprintf("has Ready=%s (%s)", cond.Status, cond.Reason)
	}
	if n.Spec.Unschedulable {
		state += " and is unschedulable"
	}
	return trace.Hop{
		Stage: stage.NodeLifecycle, From: component, To: stage.APIServer, Verb: verb,
		Object: trace.Ref{Kind: "Node", Name: n.Name}, Message: fmt.Sprintf("Node %s %s", n.Name, state),
	}
}

func (c *nodeLifecycle) forget() { c.state = newNodeLifecycleState() }

func newNodeLifecycleState() nodeLifecycleState {
	return nodeLifecycleState{Known: map[string]types.UID{}, Health: map[string]nodeHealth{}, Zones: map[string]zone{}}
}

func (c *nodeLifecycle) snapshot() any { return c.state.copy() }

func (c *nodeLifecycle) restore(s any) { c.state = s.(nodeLifecycleState).copy() }

func (s nodeLifecycleState) copy() nodeLifecycleState {
	out := nodeLifecycleState{maps.Clone(s.Known), maps.Clone(s.Health), maps.Clone(s.Zones)}
	for name, z := range out.Zones {
		z.Queue = slices.Clone(z.Queue)
		out.Zones[name] = z
	}
	return out
}
