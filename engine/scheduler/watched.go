package scheduler

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// watched is one of the kinds that plugins look up, besides Pods and nodes.
type watched interface {
	Start()
	Reset()
	Snapshot() any
	Restore(snap any)

	get(namespace, name string) (kube.Object, bool)
	each(namespace string, f func(kube.Object) bool)
	// handle passes an event on and returns what it means for waiting Pods.
	handle(ev any) (changes []happened, mine bool)
}

type watchedKind[T kube.Object] struct {
	*client.Cache[T]
	resource framework.EventResource // "" if no plugin waits for it
}

func watch[T kube.Object](into map[reflect.Type]watched, c *client.Client, r framework.EventResource) {
	var t T
	into[reflect.TypeOf(t)] = watchedKind[T]{client.NewCache[T](c, client.Selector{}), r}
}

// kindsWatched returns the caches of all these kinds, by Go type.
func kindsWatched(c *client.Client) map[reflect.Type]watched {
	m := map[reflect.Type]watched{}
	watch[*corev1.Namespace](m, c, "")
	watch[*corev1.Service](m, c, "")
	watch[*corev1.ReplicationController](m, c, "")
	watch[*appsv1.ReplicaSet](m, c, "")
	watch[*appsv1.StatefulSet](m, c, "")
	watch[*policyv1.PodDisruptionBudget](m, c, "")
	watch[*corev1.PersistentVolumeClaim](m, c, framework.PersistentVolumeClaim)
	watch[*corev1.PersistentVolume](m, c, framework.PersistentVolume)
	watch[*storagev1.StorageClass](m, c, framework.StorageClass)
	return m
}

func (w watchedKind[T]) get(namespace, name string) (kube.Object, bool) {
	o, ok := w.Get(namespace, name)
	if !ok {
		return nil, false
	}
	return o, true
}

func (w watchedKind[T]) each(namespace string, f func(kube.Object) bool) {
	w.Each(namespace, func(o T) bool { return f(o) })
}

func (w watchedKind[T]) handle(ev any) ([]happened, bool) {
	changes, mine := w.Handle(ev)
	if !mine || w.resource == "" {
		return nil, mine
	}
	var out []happened
	for _, c := range changes {
		h := happened{Event: framework.ClusterEvent{Resource: w.resource, Action: framework.Add}, Obj: c.New}
		switch c.Type {
		case wire.Modified:
			h.Event.Action, h.Old = framework.UpdateOther, c.Old
		case wire.Deleted:
			h = happened{Event: framework.ClusterEvent{Resource: w.resource, Action: framework.Delete}, Old: c.Old}
		}
		out = append(out, h)
	}
	return out, true
}

// Object implements framework.Lister.
func (s *Scheduler) Object(kind kube.Object, namespace, name string) (kube.Object, bool) {
	w, ok := s.others[reflect.TypeOf(kind)]
	if !ok {
		return nil, false
	}
	return w.get(namespace, name)
}

// Each implements framework.Lister.
func (s *Scheduler) Each(kind kube.Object, namespace string, f func(kube.Object) bool) {
	if w, ok := s.others[reflect.TypeOf(kind)]; ok {
		w.each(namespace, f)
	}
}
