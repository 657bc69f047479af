package admission

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"podwalk/engine/kube"
)

// DefaultTolerationSeconds lets a Pod stay for five minutes on a node that is not ready or
// cannot be reached, unless the Pod says otherwise. Upstream:
// plugin/pkg/admission/defaulttolerationseconds.
type DefaultTolerationSeconds struct{}

// Name implements Plugin.
func (*DefaultTolerationSeconds) Name() string { return "DefaultTolerationSeconds" }

// Admit implements Mutator.
func (*DefaultTolerationSeconds) Admit(a *Attributes, _ Cluster) error {
	if !a.isPod(Create) && !a.isPod(Update) {
		return nil
	}
	pod := a.Object.(*corev1.Pod)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if tolerates(pod, key) {
			continue
		}
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300),
		})
	}
	return nil
}

func tolerates(pod *corev1.Pod, key string) bool {
	for _, t := range pod.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

// TaintNodesByCondition makes every new node start as not ready; the node lifecycle
// controller takes the taint away. Upstream: plugin/pkg/admission/nodetaint.
type TaintNodesByCondition struct{}

// Name implements Plugin.
func (*TaintNodesByCondition) Name() string { return "TaintNodesByCondition" }

// Admit implements Mutator.
func (*TaintNodesByCondition) Admit(a *Attributes, _ Cluster) error {
	if a.Resource != kube.Nodes || a.Subresource != "" || a.Operation != Create {
		return nil
	}
	node := a.Object.(*corev1.Node)
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for _, t := range node.Spec.Taints {
		if t.MatchTaint(&taint) {
			return nil
		}
	}
	node.Spec.Taints = append(node.Spec.Taints, taint)
	return nil
}

// PodTopologyLabels copies the node's zone and region onto a Pod when it is bound.
// Upstream: plugin/pkg/admission/podtopologylabels.
type PodTopologyLabels struct{}

// Name implements Plugin.
func (*PodTopologyLabels) Name() string { return "PodTopologyLabels" }

// Admit implements Mutator.
func (*PodTopologyLabels) Admit(a *Attributes, c Cluster) error {
	if a.Resource != kube.Pods || a.Operation != Create {
		return nil
	}
	switch o := a.Object.(type) {
	case *corev1.Binding:
		if o.Target.Kind == "Node" {
			o.Labels = withTopology(o.Labels, o.Target.Name, c)
		}
	case *corev1.Pod:
		if a.Subresource == "" && o.Spec.NodeName != "" {
			o.Labels = withTopology(o.Labels, o.Spec.NodeName, c)
		}
	}
	return nil
}

func withTopology(labels map[string]string, node string, c Cluster) map[string]string {
	o, ok := c.Get(kube.Nodes, "", node)
	if !ok {
		return labels
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		v, ok := o.(*corev1.Node).Labels[key]
		if !ok {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = v
	}
	return labels
}

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
