package admission

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"podwalk/engine/kube"
)

// DefaultStorageClass gives a claim without a class the default one. Upstream:
// plugin/pkg/admission/storage/storageclass/setdefault.
type DefaultStorageClass struct{}

// Name implements Plugin.
func (*DefaultStorageClass) Name() string { return "DefaultStorageClass" }

// Admit implements Mutator.
func (*DefaultStorageClass) Admit(a *Attributes, c Cluster) error {
	if a.Resource != kube.PVCs || a.Subresource != "" || a.Operation != Create {
		return nil
	}
	claim := a.Object.(*corev1.PersistentVolumeClaim)
	if claim.Spec.StorageClassName != nil || claim.Annotations[corev1.BetaStorageClassAnnotation] != "" {
		return nil
	}
	var found *storagev1.StorageClass
	for _, o := range c.List(kube.StorageClasses, "") {
		sc := o.(*storagev1.StorageClass)
		if sc.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&sc.CreationTimestamp) {
			found = sc // the newest wins
		}
	}
	if found != nil {
		claim.Spec.StorageClassName = &found.Name
	}
	return nil
}
