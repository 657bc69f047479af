package controllers

import (
	"strings"

	"github.com/tidwall/btree"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
)

// garbage is the garbage collector: it keeps a graph of who owns whom and deletes what
// has lost its last owner; it empties out an owner that is deleted in the foreground
// before it goes, and cuts the ties of one that is deleted with --cascade=orphan.
// Upstream: pkg/controller/garbagecollector.
//
// Left out: kinds that no controller here gives owners to, and the detection of circles
// of owners that all wait for each other.
type garbage struct {
	a     *actor
	graph graph
}

// graph is upstream's uidToNode. Both trees are copied in constant time.
type graph struct {
	nodes      btree.Map[types.UID, gcNode]
	dependents btree.Set[string] // "ownerUID dependentUID"
}

// HashState hashes the trees by their items.
func (g graph) HashState() any {
	return []any{g.nodes.Keys(), g.nodes.Values(), g.dependents.Keys()}
}

func (g *graph) copy() graph { return graph{*g.nodes.Copy(), *g.dependents.Copy()} }

// gcNode is one object of the graph.
type gcNode struct {
	Kind       schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespace  string
	Name       string
	UID        types.UID
	Owners     []metav1.OwnerReference
	Deleting   bool // has a deletion timestamp
	Foreground bool // and waits until its dependents are gone
	Orphaning  bool // and waits until it has no dependents
}

// The keys of the queue.
const (
	deletePrefix = "delete/"
	orphanPrefix = "orphan/"
)

func newGarbage(a *actor) logic {
	c := &garbage{a: a}
	watchOwned[*corev1.Pod](c)
	watchOwned[*corev1.Node](c)
	watchOwned[*corev1.Namespace](c)
	watchOwned[*corev1.Service](c)
	watchOwned[*corev1.Endpoints](c)
	watchOwned[*corev1.ConfigMap](c)
	watchOwned[*corev1.Secret](c)
	watchOwned[*corev1.ServiceAccount](c)
	watchOwned[*corev1.PersistentVolumeClaim](c)
	watchOwned[*corev1.PersistentVolume](c)
	watchOwned[*corev1.ReplicationController](c)
	watchOwned[*appsv1.Deployment](c)
	watchOwned[*appsv1.ReplicaSet](c)
	watchOwned[*appsv1.DaemonSet](c)
	watchOwned[*appsv1.StatefulSet](c)
	watchOwned[*appsv1.ControllerRevision](c)
	watchOwned[*batchv1.Job](c)
	watchOwned[*batchv1.CronJob](c)
	watchOwned[*discoveryv1.EndpointSlice](c)
	watchOwned[*coordinationv1.Lease](c)
	watchOwned[*policyv1.PodDisruptionBudget](c)
	watchOwned[*networkingv1.NetworkPolicy](c)
	watchOwned[*networkingv1.Ingress](c)
	watchOwned[*autoscalingv2.HorizontalPodAutoscaler](c)
	watchOwned[*rbacv1.Role](c)
	watchOwned[*rbacv1.RoleBinding](c)
	watchOwned[*storagev1.CSINode](c)
	return c
}

func watchOwned[T kube.Object](c *garbage) {
	watch(c.a, func(ch client.Change[T]) {
		if ch.Type == wire.Deleted {
			c.removed(ch.Old.GetUID())
			return
		}
		c.seen(ch.New)
	})
}

// seen brings the graph up to date with an object.
func (c *garbage) seen(obj kube.Object) {
	k, _ := kube.KindOf(obj)
	n := gcNode{
		Kind: k.Kind, Resource: k.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		Owners: obj.GetOwnerReferences(), Deleting: obj.GetDeletionTimestamp() != nil,
	}
	for _, f := range obj.GetFinalizers() {
		n.Foreground = n.Foreground || n.Deleting && f == metav1.FinalizerDeleteDependents
		n.Orphaning = n.Orphaning || n.Deleting && f == metav1.FinalizerOrphanDependents
	}
	was, _ := c.graph.nodes.Set(n.UID, n)
	c.setOwners(was, n)
	if n.Orphaning && !was.Orphaning {
		c.a.q.add(orphanPrefix + string(n.UID))
	}
	if n.Foreground && !was.Foreground {
		c.a.q.add(deletePrefix + string(n.UID))
		c.enqueueDependents(n.UID)
	}
}

// setOwners changes the edges of the graph. An owner that is not known may never have
// existed: the dependent is looked at.
func (c *garbage) setOwners(was, n gcNode) {
	for _, o := range was.Owners {
		if i := indexOwner(n.Owners, o.UID); i < 0 {
			c.graph.dependents.Delete(edge(o.UID, n.UID))
			c.wakeForeground(o.UID)
		} else if !blocks(n.Owners[i]) && blocks(o) {
			c.wakeForeground(o.UID)
		}
	}
	for _, o := range n.Owners {
		c.graph.dependents.Insert(edge(o.UID, n.UID))
		if indexOwner(was.Owners, o.UID) >= 0 {
			continue
		}
		if owner, known := c.graph.nodes.Get(o.UID); !known || owner.Foreground {
			c.a.q.add(deletePrefix + string(n.UID))
		}
	}
}

func (c *garbage) removed(uid types.UID) {
	n, ok := c.graph.nodes.Delete(uid)
	if !ok {
		return
	}
	for _, o := range n.Owners {
		c.graph.dependents.Delete(edge(o.UID, uid))
		c.wakeForeground(o.UID)
	}
	c.enqueueDependents(uid)
}

func (c *garbage) wakeForeground(owner types.UID) {
	if n, ok := c.graph.nodes.Get(owner); ok && n.Foreground {
		c.a.q.add(deletePrefix + string(owner))
	}
}

func (c *garbage) enqueueDependents(owner types.UID) {
	for _, d := range c.dependentsOf(owner) {
		c.a.q.add(deletePrefix + string(d.UID))
	}
}

// dependentsOf returns the objects that name an owner, by UID.
func (c *garbage) dependentsOf(owner types.UID) []gcNode {
	var out []gcNode
	prefix := string(owner) + " "
	c.graph.dependents.Ascend(prefix, func(e string) bool {
		if !strings.HasPrefix(e, prefix) {
			return false
		}
		if n, ok := c.graph.nodes.Get(types.UID(e[len(prefix):])); ok {
			out = append(out, n)
		}
		return true
	})
	return out
}

func edge(owner, dependent types.UID) string { return string(owner) + " " + string(dependent) }

func indexOwner(owners []metav1.OwnerReference, uid types.UID) int {
	for i := range owners {
		if owners[i].UID == uid {
			return i
		}
	}
	return -1
}

func blocks(o metav1.OwnerReference) bool {
	return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
}

func (c *garbage) forget() { c.graph = graph{} }

func (c *garbage) snapshot() any { return c.graph.copy() }

func (c *garbage) restore(s any) {
	g := s.(graph)
	c.graph = g.copy()
}
