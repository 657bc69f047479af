package controllers

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The taints that evict Pods.
var (
	unreachable = corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	notReady    = corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}
)

// conditionTaint says which NoSchedule taint a condition in a status stands for.
var conditionTaint = []struct {
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
	key       string
}{
	{corev1.NodeReady, corev1.ConditionFalse, corev1.TaintNodeNotReady},
	{corev1.NodeReady, corev1.ConditionUnknown, corev1.TaintNodeUnreachable},
	{corev1.NodeMemoryPressure, corev1.ConditionTrue, corev1.TaintNodeMemoryPressure},
	{corev1.NodeDiskPressure, corev1.ConditionTrue, corev1.TaintNodeDiskPressure},
	{corev1.NodeNetworkUnavailable, corev1.ConditionTrue, corev1.TaintNodeNetworkUnavailable},
	{corev1.NodePIDPressure, corev1.ConditionTrue, corev1.TaintNodePIDPressure},
}

// conditionTaints compares a node's NoSchedule taints with its conditions.
func conditionTaints(n *corev1.Node) (add, del []corev1.Taint) {
	var want []corev1.Taint
	managed := map[string]bool{corev1.TaintNodeUnschedulable: true}
	for _, row := range conditionTaint {
		managed[row.key] = true
		for _, c := range n.Status.Conditions {
			if c.Type == row.condition && c.Status == row.status {
				want = append(want, corev1.Taint{Key: row.key, Effect: corev1.TaintEffectNoSchedule})
			}
		}
	}
	if n.Spec.Unschedulable {
		want = append(want, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, t := range want {
		if !hasTaint(n.Spec.Taints, t) {
			add = append(add, t)
		}
	}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule && managed[t.Key] && !hasTaint(want, t) {
			del = append(del, t)
		}
	}
	return add, del
}

func hasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(o corev1.Taint) bool { return o.MatchTaint(&t) })
}

// queueTaint decides about the NoExecute taint of a node: a node that is Ready loses it
// at once; one that is not gets in line for it; not-ready and unreachable are exchanged
// at once.
func (c *nodeLifecycle) queueTaint(in *monitorInput, n *corev1.Node, name string, status corev1.ConditionStatus) {
	z := c.state.Zones[name]
	i := slices.Index(z.Queue, n.Name)
	want, other := unreachable, notReady
	switch status {
	case corev1.ConditionTrue:
		if i >= 0 {
			z.Queue = slices.Delete(slices.Clone(z.Queue), i, i+1)
		}
		c.takeOff(in, n)
	case corev1.ConditionFalse, corev1.ConditionUnknown:
		if status == corev1.ConditionFalse {
			want, other = notReady, unreachable
		}
		switch {
		case hasTaint(n.Spec.Taints, other):
			in.Taints = append(in.Taints, taintChange{n, []corev1.Taint{want}, []corev1.Taint{other}})
		case !hasTaint(n.Spec.Taints, want) && i < 0:
			z.Queue = append(slices.Clone(z.Queue), n.Name)
		}
	}
	c.state.Zones[name] = z
}

func (c *nodeLifecycle) takeOff(in *monitorInput, n *corev1.Node) {
	var del []corev1.Taint
	for _, t := range []corev1.Taint{unreachable, notReady} {
		if hasTaint(n.Spec.Taints, t) {
			del = append(del, t)
		}
	}
	if len(del) > 0 {
		in.Taints = append(in.Taints, taintChange{Node: n, Del: del})
	}
}

// wakeTainter sees to the next NoExecute taint: one at a time in each zone, as fast as
// the zone's state allows.
func (c *nodeLifecycle) wakeTainter() {
	for _, name := range slices.Sorted(maps.Keys(c.state.Zones)) {
		if z := c.state.Zones[name]; len(z.Queue) > 0 && z.Rate > 0 {
			c.a.q.addAfter(taintKey, max(taintPeriod, z.Next.Sub(c.a.k.Now())))
		}
	}
}

// taintPeriod is how often upstream looks at its taint queues.
const taintPeriod = 100 * time.Millisecond

// takeTaints takes the nodes out of the queues whose turn it is.
func (c *nodeLifecycle) takeTaints() any {
	var in taintInput
	now := c.a.k.Now()
	for _, name := range slices.Sorted(maps.Keys(c.state.Zones)) {
		z := c.state.Zones[name]
		if z.Rate <= 0 || z.Next > now {
			continue
		}
		for len(z.Queue) > 0 {
			node := z.Queue[0]
			z.Queue = slices.Clone(z.Queue[1:])
			if ch, due := c.evicting(node); due {
				in.Nodes = append(in.Nodes, ch)
				z.Next = now.Add(time.Duration(float64(time.Second) / z.Rate))
				break
			}
		}
		c.state.Zones[name] = z
	}
	c.wakeTainter()
	if len(in.Nodes) == 0 {
		return nil
	}
	return in
}

// evicting returns the change that taints a node, unless it recovered meanwhile.
func (c *nodeLifecycle) evicting(node string) (taintChange, bool) {
	n, ok := c.nodes.Get("", node)
	if !ok {
		return taintChange{}, false
	}
	cond := readyCondition(n)
	switch {
	case cond == nil || cond.Status == corev1.ConditionTrue:
		return taintChange{}, false
	case cond.Status == corev1.ConditionFalse:
		return taintChange{n, []corev1.Taint{notReady}, []corev1.Taint{unreachable}}, true
	}
	return taintChange{n, []corev1.Taint{unreachable}, []corev1.Taint{notReady}}, true
}

// disruption sets the zones' eviction rates. If every node of every zone is not Ready, it
// is more likely that the control plane is cut off: then nothing is evicted.
func (c *nodeLifecycle) disruption(in *monitorInput, ready map[string][]corev1.ConditionStatus) {
	states := map[string]zoneState{}
	allFull, allWereFull := true, true
	for name, list := range ready {
		states[name] = c.zoneState(list)
		allFull = allFull && states[name] == zoneFull
	}
	for name, z := range c.state.Zones {
		if _, there := states[name]; !there {
			delete(c.state.Zones, name)
			continue
		}
		allWereFull = allWereFull && z.State == zoneFull
	}
	switch {
	case len(ready) == 0 || allFull && allWereFull:
	case allFull:
		in.Taints = nil
		c.nodes.Each("", func(n *corev1.Node) bool {
			c.takeOff(in, n)
			return true
		})
		for name, z := range c.state.Zones {
			z.State, z.Rate, z.Queue = zoneFull, 0, nil
			c.state.Zones[name] = z
		}
	default:
		if allWereFull { // the first sign of life: everybody gets a fresh grace period
			for name, h := range c.state.Health {
				h.Probe = c.a.k.Now()
				c.state.Health[name] = h
			}
		}
		for name, z := range c.state.Zones {
			if z.State != states[name] {
				z.State, z.Rate = states[name], c.evictionRate(states[name], len(ready[name]))
				c.state.Zones[name] = z
			}
		}
	}
}

func (c *nodeLifecycle) zoneState(list []corev1.ConditionStatus) zoneState {
	bad := 0
	for _, s := range list {
		if s != corev1.ConditionTrue {
			bad++
		}
	}
	switch {
	case bad == len(list) && bad > 0:
		return zoneFull
	case bad > 2 && float64(bad)/float64(len(list)) >= c.a.cfg.UnhealthyZoneThreshold:
		return zonePartial
	}
	return zoneNormal
}

func (c *nodeLifecycle) evictionRate(s zoneState, size int) float64 {
	if s != zonePartial {
		return c.a.cfg.NodeEvictionRate
	}
	if size > c.a.cfg.LargeClusterSize {
		return c.a.cfg.SecondaryEvictionRate
	}
	return 0
}
