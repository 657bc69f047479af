package controllers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// namespaces is the namespace controller: it empties a namespace that is being deleted
// and then takes its own finalizer off. Pods go first. Upstream: pkg/controller/namespace.
type namespaces struct {
	a     *actor
	cache *client.Cache[*corev1.Namespace]
}

const (
	// namespaceGrace gives other controllers and highly available API servers time to
	// notice a deletion before the content goes.
	namespaceGrace = 5 * time.Second
	// finalizerEstimate is the guess for objects that wait for a finalizer.
	finalizerEstimate = 15
)

func newNamespaces(a *actor) logic {
	c := &namespaces{a: a}
	c.cache = watch(a, func(ch client.Change[*corev1.Namespace]) {
		if ch.New != nil && ch.New.DeletionTimestamp != nil {
			a.q.addAfter(ch.New.Name, namespaceGrace)
		}
	})
	return c
}

func (c *namespaces) gather(key string) any {
	ns, ok := c.cache.Get("", key)
	if !ok || ns.DeletionTimestamp == nil {
		return nil
	}
	return ns
}

// emptying is one sync of a namespace.
type emptying struct {
	*run
	ns         *corev1.Namespace
	estimate   int64 // seconds until what remains should be gone
	remaining  map[schema.GroupVersionResource]int
	finalizers map[string]int
	errs       []error
}

func (c *namespaces) sync(r *run, input any) error {
	name := input.(*corev1.Namespace).Name
	ans, err := r.do(get(kube.Namespaces, "", name))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	e := &emptying{run: r, ns: ans.Object.(*corev1.Namespace).DeepCopy(), remaining: map[schema.GroupVersionResource]int{}, finalizers: map[string]int{}}
	if e.ns.DeletionTimestamp == nil || len(e.ns.Spec.Finalizers) == 0 {
		return nil
	}
	if e.ns.Status.Phase != corev1.NamespaceTerminating {
		e.ns.Status.Phase = corev1.NamespaceTerminating
		ans, err := r.do(updateStatus(e.ns.DeepCopy()))
		if err != nil {
			return err
		}
		e.ns = ans.Object.(*corev1.Namespace).DeepCopy()
	}
	r.hop(trace.Hop{
		Verb: "empty Namespace " + name, Object: trace.Ref{Kind: "Namespace", Name: name}, Background: platform(name),
		Message: fmt.Sprintf("Namespace %s is terminating: delete the Pods in it, then everything else, then take the finalizer %v off", name, e.ns.Spec.Finalizers),
	})
	if err := e.deleteContent(); err != nil {
		return err
	}
	if e.estimate > 0 {
		after := time.Duration(e.estimate/2+1) * time.Second
		r.once(func() { r.a.q.addAfter(name, after) })
		return nil
	}
	return e.finalize()
}

// deleteContent deletes Pods, and once they are gone everything else.
func (e *emptying) deleteContent() error {
	e.deleteAll(kube.Pods)
	if e.remaining[kube.Pods] == 0 {
		var rest []schema.GroupVersionResource
		for _, k := range kube.Kinds() {
			// The same objects under a second group or version are deleted once.
			if k.Namespaced && k.Resource != kube.Pods && k.Resource != kube.EventsV1 &&
				!(k.Resource.Group == "autoscaling" && k.Resource.Version == "v1") {
				rest = append(rest, k.Resource)
			}
		}
		e.deleteAll(rest...)
		e.contentConditions()
	} else {
		e.conditions(nil)
	}
	return errors.Join(e.errs...)
}

// deleteAll deletes the objects of some kinds and counts what is left of them.
func (e *emptying) deleteAll(kinds ...schema.GroupVersionResource) {
	background := metav1.DeletePropagationBackground
	estimate := int64(0)
	if slices.Contains(kinds, kube.Pods) {
		estimate = e.gracePeriods()
	}
	deletes, lists := make([]wire.Request, len(kinds)), make([]wire.Request, len(kinds))
	for i, gvr := range kinds {
		base := wire.Request{Resource: gvr, Namespace: e.ns.Name, Background: gvr != kube.Pods}
		deletes[i], lists[i] = base, base
		deletes[i].Verb, deletes[i].Options.Delete = wire.DeleteCollection, &metav1.DeleteOptions{PropagationPolicy: &background}
		lists[i].Verb, lists[i].Background = wire.List, true
	}
	for _, ans := range e.all(deletes...) {
		if err := ans.Err(); err != nil && !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
			e.errs = append(e.errs, err)
		}
	}
	for i, ans := range e.all(lists...) {
		if err := ans.Err(); err != nil {
			if !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
				e.errs = append(e.errs, err)
			}
			continue
		}
		e.count(kinds[i], ans, estimate)
	}
}

func (e *emptying) count(gvr schema.GroupVersionResource, ans wire.Answer, estimate int64) {
	if len(ans.Items) == 0 {
		return
	}
	e.remaining[gvr] = len(ans.Items)
	held := false
	for _, it := range ans.Items {
		for _, f := range kube.Meta(it).GetFinalizers() {
			e.finalizers[f]++
			held = true
		}
	}
	switch {
	case estimate > 0:
	case held:
		estimate = finalizerEstimate
	default:
		e.errs = append(e.errs, fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", e.ns.Name, gvr))
	}
	e.estimate = max(e.estimate, estimate)
}

// gracePeriods returns the longest grace period of the Pods, or 0 when it is over.
func (e *emptying) gracePeriods() int64 {
	ans, err := e.do(wire.Request{Verb: wire.List, Resource: kube.Pods, Namespace: e.ns.Name, Background: true})
	if err != nil {
		e.errs = append(e.errs, err)
		return 0
	}
	longest := int64(0)
	for _, it := range ans.Items {
		p := it.(*corev1.Pod)
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Spec.TerminationGracePeriodSeconds == nil {
			continue
		}
		longest = max(longest, *p.Spec.TerminationGracePeriodSeconds)
	}
	if e.state.Started.Wall().Sub(e.ns.DeletionTimestamp.Time) >= time.Duration(longest)*time.Second {
		return 0
	}
	return longest
}

// namespaceOK are the reasons and messages of conditions that say that nothing is wrong.
var namespaceOK = []corev1.NamespaceCondition{
	{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
	{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
	{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
	{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
	{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
}

func (e *emptying) contentConditions() {
	var bad []corev1.NamespaceCondition
	if len(e.remaining) > 0 {
		var parts []string
		for gvr, n := range e.remaining {
			parts = append(parts, fmt.Sprintf("%s.%s has %d resource instances", gvr.Resource, gvr.Group, n))
		}
		sort.Strings(parts)
		bad = append(bad, corev1.NamespaceCondition{
			Type: corev1.NamespaceContentRemaining, Reason: "SomeResourcesRemain",
			Message: "Some resources are remaining: " + strings.Join(parts, ", "),
		})
	}
	if len(e.finalizers) > 0 {
		var parts []string
		for _, f := range slices.Sorted(maps.Keys(e.finalizers)) {
			parts = append(parts, fmt.Sprintf("%s in %d resource instances", f, e.finalizers[f]))
		}
		bad = append(bad, corev1.NamespaceCondition{
			Type: corev1.NamespaceFinalizersRemaining, Reason: "SomeFinalizersRemain",
			Message: "Some content in the namespace has finalizers remaining: " + strings.Join(parts, ", "),
		})
	}
	e.conditions(bad)
}

// conditions writes the five conditions of a namespace that is being emptied.
func (e *emptying) conditions(bad []corev1.NamespaceCondition) {
	if len(e.errs) > 0 {
		var parts []string
		for _, err := range e.errs {
			parts = append(parts, err.Error())
		}
		sort.Strings(parts)
		bad = append(bad, corev1.NamespaceCondition{
			Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeletionFailed",
			Message: fmt.Sprintf("Failed to delete all resource types, %d remaining: %v", len(e.errs), strings.Join(parts, ", ")),
		})
	}
	changed := false
	for _, want := range namespaceOK {
		want.Status = corev1.ConditionFalse
		for _, b := range bad {
			if b.Type == want.Type {
				want, want.Status = b, corev1.ConditionTrue
			}
		}
		want.LastTransitionTime = e.now()
		i := slices.IndexFunc(e.ns.Status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Type == want.Type })
		if i < 0 {
			e.ns.Status.Conditions = append(e.ns.Status.Conditions, want)
			changed = true
			continue
		}
		was := &e.ns.Status.Conditions[i]
		if was.Status == want.Status {
			want.LastTransitionTime = was.LastTransitionTime
		}
		if was.Status != want.Status || was.Reason != want.Reason || was.Message != want.Message {
			*was, changed = want, true
		}
	}
	if !changed {
		return
	}
	if ans, err := e.do(updateStatus(e.ns.DeepCopy())); err == nil {
		e.ns = ans.Object.(*corev1.Namespace).DeepCopy()
	}
}

// finalize takes the finalizer "kubernetes" off; the API server then removes the object.
func (e *emptying) finalize() error {
	ns := &corev1.Namespace{ObjectMeta: *e.ns.ObjectMeta.DeepCopy(), Spec: *e.ns.Spec.DeepCopy()}
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	req := update(ns)
	req.Subresource = "finalize"
	_, err := e.do(req)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
