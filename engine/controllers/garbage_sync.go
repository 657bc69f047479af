package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// garbageInput is what a sync of one object looks at.
type garbageInput struct {
	Node       gcNode
	Dependents []gcNode
	Orphan     bool // cut the dependents off rather than delete
}

func (c *garbage) gather(key string) any {
	uid, orphan := strings.CutPrefix(key, orphanPrefix)
	if !orphan {
		uid = strings.TrimPrefix(key, deletePrefix)
	}
	n, ok := c.graph.nodes.Get(types.UID(uid))
	if !ok || !orphan && n.Deleting && !n.Foreground || orphan && !n.Orphaning {
		return nil // "being deleted" ends in a deletion by itself
	}
	if !orphan && !n.Foreground && len(n.Owners) == 0 {
		return nil
	}
	return garbageInput{n, c.dependentsOf(n.UID), orphan}
}

func (c *garbage) sync(r *run, input any) error {
	in := input.(garbageInput)
	n := in.Node
	if in.Orphan {
		return c.orphan(r, in)
	}
	ans, err := r.do(get(n.Resource, n.Namespace, n.Name))
	if apierrors.IsNotFound(err) || err == nil && kube.Meta(ans.Object).GetUID() != n.UID {
		r.once(func() { c.removed(n.UID) })
		return nil
	}
	if err != nil {
		return err
	}
	latest := ans.Object.(kube.Object)
	if n.Foreground {
		return c.foreground(r, in, latest)
	}
	refs, err := c.classify(r, n.Namespace, latest.GetOwnerReferences())
	if err != nil || len(refs.solid)+len(refs.dangling)+len(refs.waiting) == 0 {
		return err
	}
	switch {
	case len(refs.solid) > 0:
		if len(refs.dangling)+len(refs.waiting) == 0 {
			return nil
		}
		return dropOwners(r, n, append(refs.dangling, refs.waiting...))
	case len(refs.waiting) > 0 && len(in.Dependents) > 0:
		return collect(r, n, latest, metav1.DeletePropagationForeground, refs.waiting[0], "is being deleted")
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case slices.Contains(latest.GetFinalizers(), metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(latest.GetFinalizers(), metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	if len(refs.waiting) > 0 {
		return collect(r, n, latest, policy, refs.waiting[0], "is being deleted")
	}
	return collect(r, n, latest, policy, refs.dangling[0], "is gone")
}

// owners are the owner references of an object by what the API server says about them.
type owners struct{ solid, dangling, waiting []metav1.OwnerReference }

func (c *garbage) classify(r *run, namespace string, refs []metav1.OwnerReference) (owners, error) {
	var out owners
	for _, o := range refs {
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil {
			return out, err
		}
		k, known := kube.ByKind(gv.WithKind(o.Kind))
		if !known {
			return out, fmt.Errorf("unable to get REST mapping for %s/%s", o.APIVersion, o.Kind)
		}
		ns := namespace
		if !k.Namespaced {
			ns = ""
		} else if namespace == "" {
			return owners{}, nil // an error that no retry resolves
		}
		ans, err := r.do(get(k.Resource, ns, o.Name))
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if err != nil || kube.Meta(ans.Object).GetUID() != o.UID {
			out.dangling = append(out.dangling, o)
			continue
		}
		owner := kube.Meta(ans.Object)
		if owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			out.waiting = append(out.waiting, o)
		} else {
			out.solid = append(out.solid, o)
		}
	}
	return out, nil
}

// collect deletes an object that has no owner any more.
func collect(r *run, n gcNode, latest kube.Object, policy metav1.DeletionPropagation, owner metav1.OwnerReference, why string) error {
	r.hop(trace.Hop{
		Verb: fmt.Sprintf("collect %s %s", n.Kind.Kind, n.Name), Object: trace.Ref{Kind: n.Kind.Kind, Namespace: n.Namespace, Name: n.Name},
		Message: fmt.Sprintf("%s %s is owned by %s %s, which %s: delete it", n.Kind.Kind, n.Name, owner.Kind, owner.Name, why),
	})
	rv, uid := latest.GetResourceVersion(), n.UID
	req := n.request(wire.Delete)
	req.Options.Delete = &metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rv}}
	_, err := r.do(req)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// request is a request about an object of the graph. Only what people make and see is in
// the foreground of the story.
func (n gcNode) request(verb wire.Verb) wire.Request {
	return wire.Request{
		Verb: verb, Resource: n.Resource, Namespace: n.Namespace, Name: n.Name,
		Background: n.Resource == kube.EndpointSlices || n.Resource == kube.Leases || n.Resource.Resource == "endpoints",
	}
}

// foreground waits until nothing blocks an owner that is deleted in the foreground.
func (c *garbage) foreground(r *run, in garbageInput, latest kube.Object) error {
	blocked := false
	for _, d := range in.Dependents {
		if i := indexOwner(d.Owners, in.Node.UID); i < 0 || !blocks(d.Owners[i]) {
			continue
		}
		blocked = true
		if !d.Foreground {
			r.once(func() { r.a.q.add(deletePrefix + string(d.UID)) })
		}
	}
	if blocked {
		return nil
	}
	return dropFinalizer(r, in.Node, latest, metav1.FinalizerDeleteDependents)
}

// orphan takes the reference to an owner out of its dependents and lets the owner go.
func (c *garbage) orphan(r *run, in garbageInput) error {
	var failed error
	for _, d := range in.Dependents {
		i := indexOwner(d.Owners, in.Node.UID)
		if err := dropOwners(r, d, d.Owners[i:i+1]); err != nil && !apierrors.IsNotFound(err) {
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return failed
	}
	ans, err := r.do(get(in.Node.Resource, in.Node.Namespace, in.Node.Name))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return dropFinalizer(r, in.Node, ans.Object.(kube.Object), metav1.FinalizerOrphanDependents)
}

func dropOwners(r *run, n gcNode, refs []metav1.OwnerReference) error {
	var deletes []any
	for _, o := range refs {
		deletes = append(deletes, map[string]any{"$patch": "delete", "uid": o.UID})
	}
	return patchNode(r, n, types.StrategicMergePatchType, map[string]any{"uid": n.UID, "ownerReferences": deletes})
}

func dropFinalizer(r *run, n gcNode, latest kube.Object, finalizer string) error {
	left := slices.DeleteFunc(slices.Clone(latest.GetFinalizers()), func(f string) bool { return f == finalizer })
	if len(left) == len(latest.GetFinalizers()) {
		return nil
	}
	err := patchNode(r, n, types.MergePatchType, map[string]any{"resourceVersion": latest.GetResourceVersion(), "finalizers": left})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func patchNode(r *run, n gcNode, pt types.PatchType, metadata map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	req := n.request(wire.Patch)
	req.PatchType, req.MediaType, req.Body = pt, string(pt), body
	_, err = r.do(req)
	return err
}
