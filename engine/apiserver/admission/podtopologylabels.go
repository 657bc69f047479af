package admission

import (
	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
)

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
