package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/etcd"
	"podwalk/engine/kube"
)

// The read-only view: what is stored right now, without a request. Admission plugins and
// authorizers look through it (it implements admission.Cluster), and so do the screens.

// store is what a view reads: etcd itself, or its keys at one instant.
type store interface {
	Get(key string) (*etcd.KV, bool)
	Scan(prefix string, visit func(*etcd.KV) bool)
}

// View reads objects by kind and name.
type View struct{ store store }

// Get returns an object as it is stored; it must not be changed.
func (v View) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, bool) {
	row, ok := resources.Get(gvr)
	if !ok {
		return nil, false
	}
	kv, ok := v.store.Get(row.Key(namespace, name))
	if !ok {
		return nil, false
	}
	return row.Served(kv.Value), true
}

// List returns the objects of one namespace ("" for all) by key; they must not be changed.
func (v View) List(gvr schema.GroupVersionResource, namespace string) []runtime.Object {
	row, ok := resources.Get(gvr)
	if !ok {
		return nil
	}
	var out []runtime.Object
	v.store.Scan(row.KeyPrefix(namespace), func(kv *etcd.KV) bool {
		out = append(out, row.Served(kv.Value))
		return true
	})
	return out
}

// View returns what is stored now; later writes do not show in it.
func (s *Server) View() View { return View{s.etcd.Freeze()} }

// Get returns an object as it is stored; it must not be changed.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, bool) {
	return View{s.etcd}.Get(gvr, namespace, name)
}

// List returns the objects of one namespace ("" for all) by key; they must not be changed.
func (s *Server) List(gvr schema.GroupVersionResource, namespace string) []runtime.Object {
	return View{s.etcd}.List(gvr, namespace)
}

// Revision returns etcd's revision.
func (s *Server) Revision() int64 { return s.etcd.Revision() }

// Preload puts objects into etcd before a run: with defaults, a uid and a creation time,
// but without admission. It panics on an object that cannot be stored: a mistake in the
// bootstrap.
func (s *Server) Preload(objs ...runtime.Object) {
	for _, obj := range objs {
		row, ok := resources.Get(kube.ResourceOf(obj))
		if !ok {
			panic("apiserver: nothing is stored as " + obj.GetObjectKind().GroupVersionKind().String())
		}
		obj = obj.DeepCopyObject()
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		legacyscheme.Scheme.Default(obj)
		m := obj.(metav1.Object)
		if m.GetUID() == "" {
			m.SetUID(types.UID(s.uids.UUID()))
		}
		if t := m.GetCreationTimestamp(); t.IsZero() {
			m.SetCreationTimestamp(s.now())
		}
		if ns, ok := obj.(*corev1.Namespace); ok && len(ns.Spec.Finalizers) == 0 {
			ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
			ns.Status.Phase = corev1.NamespaceActive
		}
		stored, err := row.Stored(obj)
		if err != nil {
			panic("apiserver: " + err.Error())
		}
		s.etcd.Preload(row.KeyOf(stored), stored)
	}
	s.seen = s.etcd.Revision()
}
