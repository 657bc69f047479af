package admission

import (
	"strings"

	"podwalk/engine/kube"
)

// StorageObjectInUseProtection keeps claims and volumes until nobody uses them. Upstream:
// plugin/pkg/admission/storage/storageobjectinuseprotection.
type StorageObjectInUseProtection struct{}

// Name implements Plugin.
func (*StorageObjectInUseProtection) Name() string { return "StorageObjectInUseProtection" }

// Admit implements Mutator.
func (*StorageObjectInUseProtection) Admit(a *Attributes, _ Cluster) error {
	if a.Operation != Create || a.Subresource != "" {
		return nil
	}
	finalizer := map[string]string{"persistentvolumeclaims": "kubernetes.io/pvc-protection", "persistentvolumes": "kubernetes.io/pv-protection"}[a.Resource.Resource]
	if finalizer == "" {
		return nil
	}
	m := kube.Meta(a.Object)
	if strings.Contains(strings.Join(m.GetFinalizers(), " "), finalizer) {
		return nil
	}
	m.SetFinalizers(append(m.GetFinalizers(), finalizer))
	return nil
}
