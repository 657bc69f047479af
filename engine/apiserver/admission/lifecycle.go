package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/kube"
)

// NamespaceLifecycle refuses objects in namespaces that do not exist or are going away,
// and protects the namespaces that a cluster cannot do without. Upstream:
// k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle.
type NamespaceLifecycle struct{}

// Name implements Plugin.
func (*NamespaceLifecycle) Name() string { return "NamespaceLifecycle" }

// Admit implements Mutator: upstream runs it there, so that it is the first to refuse.
func (*NamespaceLifecycle) Admit(a *Attributes, c Cluster) error {
	if a.Operation == Delete && a.Resource == kube.Namespaces {
		switch a.Name {
		case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
			return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf("this namespace may not be deleted"))
		}
	}
	if a.Namespace == "" || a.Resource == kube.Namespaces || a.Operation == Delete {
		return nil
	}
	if a.Resource.Resource == "localsubjectaccessreviews" {
		return nil // asking is always allowed
	}
	o, ok := c.Get(kube.Namespaces, "", a.Namespace)
	if !ok {
		return apierrors.NewNotFound(kube.Namespaces.GroupResource(), a.Namespace)
	}
	ns := o.(*corev1.Namespace)
	if a.Operation != Create || ns.Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	err := apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.Namespace))
	if e, ok := a.forbid(fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.Namespace)).(*apierrors.StatusError); ok {
		err = e
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", a.Namespace), Field: "metadata.namespace",
	})
	return err
}
