package controllers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

// quotas is the resource quota controller: it counts what a namespace uses and writes it
// into the status of its ResourceQuotas. Admission only ever adds to that number; this
// controller gives back what was deleted. Upstream: pkg/controller/resourcequota, with
// upstream's evaluators.
//
// Left out: object counts of kinds outside the list below.
type quotas struct {
	a        *actor
	quotas   *client.Cache[*corev1.ResourceQuota]
	listers  map[schema.GroupVersionResource]lister
	registry quota.Registry
}

const quotaResync = "resync" // a key; quotas have a namespace and so a slash in theirs

func newQuotas(a *actor) logic {
	c := &quotas{a: a, listers: map[schema.GroupVersionResource]lister{}}
	c.quotas = watch(a, func(ch client.Change[*corev1.ResourceQuota]) {
		if ch.Type == wire.Modified && quota.Equals(ch.Old.Spec.Hard, ch.New.Spec.Hard) {
			return
		}
		a.q.add(kube.KeyOf(ch.Object()))
	})
	counted(c, func(old, p *corev1.Pod) bool { // a Pod that has finished uses nothing
		return !core.QuotaV1Pod(p, c.clock()) && core.QuotaV1Pod(old, c.clock())
	})
	counted(c, func(old, s *corev1.Service) bool { return !equality.Semantic.DeepEqual(old.Spec, s.Spec) })
	counted[*corev1.PersistentVolumeClaim](c, nil)
	counted[*corev1.ConfigMap](c, nil)
	counted[*corev1.Secret](c, nil)
	counted[*corev1.ReplicationController](c, nil)
	c.count(c.quotas.Resource(), each(c.quotas))
	c.registry = c.evaluators()
	return c
}

// counted watches a kind of which quotas count the objects. An object that is deleted, or
// whose change matters, makes its namespace's quotas be counted again.
func counted[T kube.Object](c *quotas, matters func(old, obj T) bool) {
	objs := watch(c.a, func(ch client.Change[T]) {
		if ch.Type == wire.Deleted || ch.Type == wire.Modified && matters != nil && matters(ch.Old, ch.New) {
			c.quotas.Each(ch.Object().GetNamespace(), func(q *corev1.ResourceQuota) bool {
				c.a.q.add(kube.KeyOf(q))
				return true
			})
		}
	})
	c.count(objs.Resource(), each(objs))
}

func (c *quotas) count(gvr schema.GroupVersionResource, list func(string) []runtime.Object) {
	c.listers[gvr] = lister{list: list}
}

func each[T kube.Object](objs *client.Cache[T]) func(namespace string) []runtime.Object {
	return func(namespace string) []runtime.Object {
		var out []runtime.Object
		objs.Each(namespace, func(o T) bool {
			out = append(out, o)
			return true
		})
		return out
	}
}

// evaluators are upstream's, on the simulated clock and over this controller's caches.
func (c *quotas) evaluators() quota.Registry {
	list := func(gvr schema.GroupVersionResource) (cache.GenericLister, error) {
		l, ok := c.listers[gvr]
		if !ok {
			return nil, apierrors.NewNotFound(gvr.GroupResource(), "")
		}
		return l, nil
	}
	evaluators := []quota.Evaluator{
		core.NewPodEvaluator(list, c.clock()), core.NewServiceEvaluator(list), core.NewPersistentVolumeClaimEvaluator(list),
	}
	for _, r := range []struct {
		resource string
		alias    corev1.ResourceName
	}{
		{"configmaps", corev1.ResourceConfigMaps}, {"resourcequotas", corev1.ResourceQuotas},
		{"replicationcontrollers", corev1.ResourceReplicationControllers}, {"secrets", corev1.ResourceSecrets},
	} {
		gvr := corev1.SchemeGroupVersion.WithResource(r.resource)
		evaluators = append(evaluators, generic.NewObjectCountEvaluator(gvr.GroupResource(), generic.ListResourceUsingListerFunc(list, gvr), r.alias))
	}
	return generic.NewRegistry(evaluators)
}

// wall is a clock that only tells the simulated time.
type wall struct {
	clock.Clock
	k *kernel.Kernel
}

func (w wall) Now() time.Time { return w.k.Now().Wall() }

func (w wall) Since(t time.Time) time.Duration { return w.Now().Sub(t) }

func (c *quotas) clock() clock.Clock { return wall{k: c.a.k} }

// lister gives upstream's evaluators what a cache holds.
type lister struct {
	namespace string
	list      func(namespace string) []runtime.Object
}

func (l lister) List(labels.Selector) ([]runtime.Object, error) { return l.list(l.namespace), nil }

func (l lister) Get(name string) (runtime.Object, error) {
	for _, o := range l.list(l.namespace) {
		if kube.Meta(o).GetName() == name {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (l lister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return lister{namespace, l.list}
}

func (c *quotas) start() { c.a.q.add(quotaResync) }

// gather counts; the sync only writes.
func (c *quotas) gather(key string) any {
	if key == quotaResync {
		c.a.q.addAfter(quotaResync, c.a.cfg.QuotaSyncPeriod)
		c.quotas.Each("", func(q *corev1.ResourceQuota) bool {
			c.a.q.add(kube.KeyOf(q))
			return true
		})
		return nil
	}
	ns, name := split(key)
	q, ok := c.quotas.Get(ns, name)
	if !ok {
		return nil
	}
	hard := quota.Add(corev1.ResourceList{}, q.Spec.Hard)
	used := quota.Add(corev1.ResourceList{}, q.Status.Used)
	counts, err := quota.CalculateUsage(ns, q.Spec.Scopes, hard, c.registry, q.Spec.ScopeSelector)
	if err != nil {
		c.a.q.addRateLimited(key)
	}
	for name, n := range counts {
		used[name] = n
	}
	used = quota.Mask(used, quota.ResourceNames(hard))
	if q.Status.Hard != nil && q.Status.Used != nil && equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) && quota.Equals(used, q.Status.Used) {
		return nil
	}
	fresh := q.DeepCopy()
	fresh.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used}
	return fresh
}

func (c *quotas) sync(r *run, input any) error {
	_, err := r.do(updateStatus(input.(*corev1.ResourceQuota)))
	return err
}
