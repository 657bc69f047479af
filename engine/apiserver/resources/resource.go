// Package resources is the API server's registry of kinds: for each resource its place in
// etcd and the strategies that prepare and validate it, which are those of
// k8s.io/kubernetes/pkg/registry. Objects are kept in their external version (the Go types
// of k8s.io/api); strategies want the internal one, so the schema-validation gate converts
// there and back.
//
// Also here: what needs a kind's own knowledge, such as scale, binding, the allocation of
// Service addresses, selectable fields and the columns of a Table.
package resources

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"

	"podwalk/engine/kube"
)

// Strategy is how a kind is created and updated.
type Strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// Resource is one row of the registry.
type Resource struct {
	kube.Kind
	// Storage is the kind as which objects are kept: events.k8s.io/v1 events are kept as
	// core/v1 events, horizontal Pod autoscalers as autoscaling/v2.
	Storage  kube.Kind
	Prefix   string // of the keys in etcd, with a slash at the end
	Strategy Strategy
	// Subresources that are updates of the same object under rules of their own.
	Subresources map[string]rest.RESTUpdateStrategy
	// ReturnsDeleted: the answer to a DELETE is the object and not a Status.
	ReturnsDeleted bool

	// Deprecation is the warning that every use of the resource brings, mostly "".
	Deprecation string

	internal   schema.GroupVersionKind
	selectable map[string]bool
}

var byResource = map[schema.GroupVersionResource]*Resource{}

// aliases are second versions of a resource that is kept in another one.
var aliases = map[schema.GroupVersionResource]schema.GroupVersionResource{
	kube.EventsV1: kube.Events,
	{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}: {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

func init() {
	capabilities.Setup(true, 0) // --allow-privileged, as kubeadm sets it
	rows := map[string]row{}
	for _, r := range table {
		rows[r.resource] = r
	}
	for _, k := range kube.Kinds() {
		storage := k
		if to, ok := aliases[k.Resource]; ok {
			storage, _ = kube.ByResource(to)
		}
		gr := storage.Resource.GroupResource().String()
		r, ok := rows[gr]
		if !ok {
			panic("resources: no row for " + gr)
		}
		prefix := r.prefix
		if prefix == "" {
			prefix = k.Resource.Resource
		}
		row := &Resource{
			Kind: k, Storage: storage, Prefix: "/registry/" + prefix + "/",
			Strategy: r.strategy, Subresources: r.subresources, ReturnsDeleted: r.returnsDeleted,
			internal: schema.GroupVersionKind{Group: storage.Kind.Group, Version: runtime.APIVersionInternal, Kind: k.Kind.Kind},
		}
		row.selectable = selectableFields(row)
		if obj := k.New(); deprecation.IsDeprecated(obj, 1, 37) {
			obj.GetObjectKind().SetGroupVersionKind(k.Kind)
			row.Deprecation = deprecation.WarningMessage(obj)
		}
		byResource[k.Resource] = row
	}
}

// Get returns the row of a resource.
func Get(gvr schema.GroupVersionResource) (*Resource, bool) {
	r, ok := byResource[gvr]
	return r, ok
}

// Key returns an object's key in etcd.
func (r *Resource) Key(namespace, name string) string {
	if r.Namespaced {
		return r.Prefix + namespace + "/" + name
	}
	return r.Prefix + name
}

// KeyPrefix returns the prefix of the keys of one namespace ("" for all).
func (r *Resource) KeyPrefix(namespace string) string {
	if r.Namespaced && namespace != "" {
		return r.Prefix + namespace + "/"
	}
	return r.Prefix
}

// KeyOf returns the key of an object.
func (r *Resource) KeyOf(obj runtime.Object) string {
	m := obj.(metav1.Object)
	return r.Key(m.GetNamespace(), m.GetName())
}

// Internal converts an object of this resource to the internal version. The result may
// share memory with obj.
func (r *Resource) Internal(obj runtime.Object) (runtime.Object, error) {
	in, err := legacyscheme.Scheme.New(r.internal)
	if err != nil {
		return nil, err
	}
	return in, legacyscheme.Scheme.Convert(obj, in, nil)
}

// External converts an internal object to the version in which this resource is kept.
func (r *Resource) External(in runtime.Object) (runtime.Object, error) {
	out := r.Storage.New()
	return out, legacyscheme.Scheme.Convert(in, out, nil)
}

// Stored converts an object of this resource's version to the stored one; Served is the
// way back. Both return the object itself where the two are the same.
func (r *Resource) Stored(obj runtime.Object) (runtime.Object, error) {
	if r.Storage.Kind == r.Kind.Kind {
		return obj, nil
	}
	in, err := r.Internal(obj)
	if err != nil {
		return nil, err
	}
	return r.External(in)
}

// Served converts a stored object to this resource's version.
func (r *Resource) Served(obj runtime.Object) runtime.Object {
	if r.Storage.Kind == r.Kind.Kind {
		return obj
	}
	in, err := r.Internal(obj.DeepCopyObject())
	if err != nil {
		panic(fmt.Sprintf("resources: %s as %s: %v", r.Storage.Kind, r.Kind.Kind, err))
	}
	out := r.Kind.New()
	if err := legacyscheme.Scheme.Convert(in, out, nil); err != nil {
		panic(fmt.Sprintf("resources: %s as %s: %v", r.Storage.Kind, r.Kind.Kind, err))
	}
	return out
}

// Singular is the resource's name in the singular.
func (r *Resource) Singular() string { return strings.ToLower(r.Kind.Kind.Kind) }
