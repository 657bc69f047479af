// Package admission holds the API server's admission plugins, one file each: code that
// may change (mutating) and then refuse (validating) what somebody asks to write. Reads
// never come here. Upstream: plugin/pkg/admission and k8s.io/apiserver/pkg/admission.
//
// Left out: what a cluster brings along itself, webhooks and ValidatingAdmissionPolicies
// (both are stored, and nobody is asked), and the plugins that kubeadm does not switch on,
// such as ImagePolicyWebhook.
package admission

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Operation is what the request does to the object.
type Operation string

// The operations.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes is the request as a plugin sees it.
type Attributes struct {
	Operation   Operation
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	Name        string         // empty while a name is still to be generated
	Object      runtime.Object // k8s.io/api type; a mutating plugin may change it in place; nil for delete
	OldObject   runtime.Object // immutable; nil for create
	User        user.Info
	DryRun      bool
	Now         time.Time // simulated wall clock
}

// Cluster is what the API server's own informers hold: what a plugin may look at.
// Objects are immutable.
type Cluster interface {
	Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, bool)
	// List returns the objects of one namespace ("" for all), ordered by key.
	List(gvr schema.GroupVersionResource, namespace string) []runtime.Object
}

// Plugin is one admission plugin. It implements Mutator, Validator or both.
type Plugin interface {
	Name() string
}

// Mutator may change a.Object. An error refuses the request; errors are those of
// k8s.io/apimachinery/pkg/api/errors with upstream's exact text.
type Mutator interface {
	Plugin
	Admit(a *Attributes, c Cluster) error
}

// Validator may refuse.
type Validator interface {
	Plugin
	Validate(a *Attributes, c Cluster) error
}

// Warner may add warnings to the answer (PodSecurity's "would violate …").
type Warner interface {
	Warn(a *Attributes, c Cluster) []string
}

// Charger counts what a request that it has let pass will use: it returns the
// ResourceQuotas with that usage added, which are written before the object is.
type Charger interface {
	Charge(a *Attributes, c Cluster) []runtime.Object
}
