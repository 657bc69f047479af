package framework

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// PodAffinity is a Pod's pod affinity and anti-affinity with its selectors parsed.
type PodAffinity struct {
	Required, RequiredAnti   []AffinityTerm
	Preferred, PreferredAnti []AffinityTerm
}

// AffinityTerm is one term: which Pods count, and by which node label nodes count as one
// place.
type AffinityTerm struct {
	Namespaces        map[string]bool
	NamespaceSelector labels.Selector // matches nothing where the term has none
	Selector          labels.Selector
	TopologyKey       string
	Weight            int32 // of a preferred term
}

// Matches reports whether a Pod counts for the term; nsLabels are those of the Pod's
// namespace.
func (t *AffinityTerm) Matches(pod *corev1.Pod, nsLabels labels.Set) bool {
	if !t.Namespaces[pod.Namespace] && !t.NamespaceSelector.Matches(nsLabels) {
		return false
	}
	return t.Selector.Matches(labels.Set(pod.Labels))
}

func newPodAffinity(pod *corev1.Pod) *PodAffinity {
	a := pod.Spec.Affinity
	if a == nil || a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return nil
	}
	out := &PodAffinity{}
	if p := a.PodAffinity; p != nil {
		out.Required = requiredTerms(pod, p.RequiredDuringSchedulingIgnoredDuringExecution)
		out.Preferred = preferredTerms(pod, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		out.RequiredAnti = requiredTerms(pod, p.RequiredDuringSchedulingIgnoredDuringExecution)
		out.PreferredAnti = preferredTerms(pod, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

func requiredTerms(pod *corev1.Pod, terms []corev1.PodAffinityTerm) []AffinityTerm {
	var out []AffinityTerm
	for i := range terms {
		out = append(out, newTerm(pod, &terms[i], 0))
	}
	return out
}

func preferredTerms(pod *corev1.Pod, terms []corev1.WeightedPodAffinityTerm) []AffinityTerm {
	var out []AffinityTerm
	for i := range terms {
		out = append(out, newTerm(pod, &terms[i].PodAffinityTerm, terms[i].Weight))
	}
	return out
}

// newTerm parses a term. The API server has validated the selectors; one that cannot be
// parsed matches nothing.
func newTerm(pod *corev1.Pod, t *corev1.PodAffinityTerm, weight int32) AffinityTerm {
	out := AffinityTerm{TopologyKey: t.TopologyKey, Weight: weight, Namespaces: map[string]bool{}}
	out.Selector = parse(t.LabelSelector)
	out.NamespaceSelector = parse(t.NamespaceSelector)
	for _, ns := range t.Namespaces {
		out.Namespaces[ns] = true
	}
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		out.Namespaces[pod.Namespace] = true
	}
	return out
}

func parse(s *metav1.LabelSelector) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return sel
}
