package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // Pods are converted for LimitRanger

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

// Plugins are the plugins of one API server, in the order in which they run.
type Plugins struct {
	Mutators   []Mutator
	Validators []Validator
}

// Default returns the plugins that are on by default and modelled, in upstream's order
// (k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go). names is the stream from which
// generated names are drawn.
func Default(names *kernel.Rand) Plugins {
	all := []Plugin{
		&NamespaceLifecycle{},
		&LimitRanger{},
		&ServiceAccount{names: names},
		&NodeRestriction{}, // not on by default, but every kubeadm cluster has it
		&TaintNodesByCondition{},
		&PodSecurity{},
		&Priority{},
		&DefaultTolerationSeconds{},
		&DefaultStorageClass{},
		&StorageObjectInUseProtection{},
		&RuntimeClass{},
		&PodTopologyLabels{},
		&ResourceQuota{},
	}
	var p Plugins
	for _, x := range all {
		if m, ok := x.(Mutator); ok {
			p.Mutators = append(p.Mutators, m)
		}
		if v, ok := x.(Validator); ok {
			p.Validators = append(p.Validators, v)
		}
	}
	return p
}

// isPod reports whether the request creates a Pod itself, not one of its subresources.
func (a *Attributes) isPod(op Operation) bool {
	return a.Resource == kube.Pods && a.Subresource == "" && a.Operation == op
}

// internal converts a k8s.io/api object to the version that upstream's functions take.
func internal(obj runtime.Object) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	out, err := legacyscheme.Scheme.ConvertToVersion(obj.DeepCopyObject(), runtime.InternalGroupVersioner)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	return out, nil
}

// external converts back, into an object of the version it came from.
func external(obj, into runtime.Object) error {
	return legacyscheme.Scheme.Convert(obj, into, nil)
}

// record is the request as upstream's functions see it; they take objects of k8s.io/api.
func (a *Attributes) record() upstream.Attributes {
	return upstream.NewAttributesRecord(a.Object, a.OldObject, a.Kind, a.Namespace, a.Name, a.Resource, a.Subresource,
		upstream.Operation(a.Operation), nil, a.DryRun, a.User)
}

// forbid refuses as upstream's admission.NewForbidden does: the name is that of the
// object, or what its name is generated from.
func (a *Attributes) forbid(err error) error {
	obj, resource := a.Object, a.Resource.GroupResource()
	if obj == nil {
		obj = a.OldObject
	}
	r := upstream.NewAttributesRecord(obj, a.OldObject, a.Kind, a.Namespace, a.Name, schema.GroupVersionResource{Group: resource.Group, Version: a.Resource.Version, Resource: resource.Resource},
		a.Subresource, upstream.Operation(a.Operation), nil, a.DryRun, a.User)
	return upstream.NewForbidden(r, err)
}
