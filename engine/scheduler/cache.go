package scheduler

import (
	"maps"

	"github.com/tidwall/btree"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/scheduler/framework"
)

// nodeCache is the scheduler's own picture of the nodes: what the API server has told,
// plus the Pods that were assumed to run on a node before their binding is confirmed.
// All it holds is immutable, so a copy of it is cheap.
type nodeCache struct {
	// nodes are all nodes by name, and those that are only named by Pods (Node is nil).
	nodes btree.Map[string, *framework.NodeInfo]
	// pods says on which node each Pod counts.
	pods btree.Map[types.UID, podPlace]

	// view is what a scheduling cycle gets; it is brought up to date by the next snapshot
	// once stale is set, and node by node otherwise.
	view  framework.Snapshot
	stale bool
}

type podPlace struct {
	Node    string
	Info    *framework.PodInfo
	Assumed bool
}

func (c *nodeCache) copy() nodeCache {
	out := *c
	out.nodes, out.pods = *c.nodes.Copy(), *c.pods.Copy()
	return out
}

// set stores a new version of a node.
func (c *nodeCache) set(n *framework.NodeInfo) {
	was, _ := c.nodes.Set(n.Name, n)
	if n.Node == nil && len(n.Pods) == 0 {
		c.nodes.Delete(n.Name)
	}
	if c.stale || (was == nil || was.Node == nil) != (n.Node == nil) {
		c.stale = true
		return
	}
	if n.Node == nil {
		return
	}
	i, ok := c.view.Index[n.Name]
	if !ok || zoneKey(was.Node) != zoneKey(n.Node) {
		c.stale = true
		return
	}
	if !maps.Equal(was.Images, n.Images) {
		c.view.ImageNodes = recount(c.view.ImageNodes, was.Images, n.Images)
	}
	c.view.Nodes = c.view.Nodes.With(i, n)
	c.view.WithAffinity += count(n.WithAffinity) - count(was.WithAffinity)
	c.view.WithAntiAffinity += count(n.WithAntiAffinity) - count(was.WithAntiAffinity)
}

// recount returns the counts after one node's images have changed.
func recount(counts map[string]int, was, now map[string]int64) map[string]int {
	counts = maps.Clone(counts)
	for name := range was {
		counts[name]--
	}
	for name := range now {
		counts[name]++
	}
	return counts
}

func count(pods []*framework.PodInfo) int {
	if len(pods) > 0 {
		return 1
	}
	return 0
}

func (c *nodeCache) get(name string) *framework.NodeInfo {
	if n, ok := c.nodes.Get(name); ok {
		return n
	}
	return &framework.NodeInfo{Name: name}
}

func (c *nodeCache) setNode(node *corev1.Node) { c.set(c.get(node.Name).WithNode(node)) }

func (c *nodeCache) removeNode(name string) { c.set(c.get(name).WithNode(nil)) }

// addPod counts a Pod on its node; a known one is moved or brought up to date.
func (c *nodeCache) addPod(p *framework.PodInfo, assumed bool) {
	node := p.Pod.Spec.NodeName
	if was, ok := c.pods.Get(p.UID()); ok && was.Node != node {
		c.removePod(p.UID())
	}
	c.pods.Set(p.UID(), podPlace{node, p, assumed})
	c.set(c.get(node).Replaced(p))
}

func (c *nodeCache) removePod(uid types.UID) {
	was, ok := c.pods.Delete(uid)
	if !ok {
		return
	}
	c.set(c.get(was.Node).WithoutPod(uid))
}

// info returns what is known about a Pod on a node, nil if it is on none.
func (c *nodeCache) info(uid types.UID) *framework.PodInfo {
	p, _ := c.pods.Get(uid)
	return p.Info
}

func (c *nodeCache) assumed(uid types.UID) bool {
	p, ok := c.pods.Get(uid)
	return ok && p.Assumed
}

// snapshot returns the nodes as they are now.
func (c *nodeCache) snapshot() framework.Snapshot {
	if c.stale {
		c.rebuild()
	}
	return c.view
}

// rebuild lists the nodes zone by zone, one of each in turn, as upstream's node tree
// does, so that neighbours in the list lie in different zones.
func (c *nodeCache) rebuild() {
	var zones []string
	byZone := map[string][]*framework.NodeInfo{}
	images := map[string]int{}
	v := framework.Snapshot{Index: map[string]int{}, ImageNodes: images}
	c.nodes.Scan(func(_ string, n *framework.NodeInfo) bool {
		if n.Node == nil {
			return true
		}
		z := zoneKey(n.Node)
		if byZone[z] == nil {
			zones = append(zones, z)
		}
		byZone[z] = append(byZone[z], n)
		for name := range n.Images {
			images[name]++
		}
		v.WithAffinity += count(n.WithAffinity)
		v.WithAntiAffinity += count(n.WithAntiAffinity)
		return true
	})
	var list []*framework.NodeInfo
	for i, more := 0, true; more; i++ {
		more = false
		for _, z := range zones {
			if i < len(byZone[z]) {
				v.Index[byZone[z][i].Name] = len(list)
				list = append(list, byZone[z][i])
				more = true
			}
		}
	}
	v.Nodes = framework.NewNodes(list)
	c.view, c.stale = v, false
}

// zoneKey names the region and zone of a node.
func zoneKey(n *corev1.Node) string {
	region, zone := n.Labels[corev1.LabelTopologyRegion], n.Labels[corev1.LabelTopologyZone]
	if region == "" && zone == "" {
		return ""
	}
	return region + ":\x00:" + zone
}
