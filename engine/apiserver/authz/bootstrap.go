package authz

import (
	"sort"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// Bootstrap returns the RBAC objects that every cluster has from the beginning: upstream's
// bootstrap policy, with the aggregated roles (admin, edit, view) filled in.
func Bootstrap() []runtime.Object {
	roles := append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...)
	var out []runtime.Object
	for i := range roles {
		r := roles[i].DeepCopy()
		aggregate(r, roles)
		out = append(out, r)
	}
	bindings := append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...)
	for i := range bindings {
		out = append(out, bindings[i].DeepCopy())
	}
	nsRoles, nsBindings := bootstrappolicy.NamespaceRoles(), bootstrappolicy.NamespaceRoleBindings()
	for _, ns := range sortedKeys(nsRoles) {
		for i := range nsRoles[ns] {
			r := nsRoles[ns][i].DeepCopy()
			r.Namespace = ns
			out = append(out, r)
		}
	}
	for _, ns := range sortedKeys(nsBindings) {
		for i := range nsBindings[ns] {
			b := nsBindings[ns][i].DeepCopy()
			b.Namespace = ns
			out = append(out, b)
		}
	}
	return out
}

// aggregate fills in the rules of a role that is the sum of others.
func aggregate(r *rbacv1.ClusterRole, all []rbacv1.ClusterRole) {
	if r.AggregationRule == nil {
		return
	}
	for _, sel := range r.AggregationRule.ClusterRoleSelectors {
		s, err := metav1.LabelSelectorAsSelector(&sel)
		if err != nil {
			continue
		}
		for _, other := range all {
			if other.Name != r.Name && s.Matches(labels.Set(other.Labels)) {
				if other.AggregationRule != nil {
					inner := other.DeepCopy()
					aggregate(inner, all)
					other = *inner
				}
				r.Rules = append(r.Rules, other.Rules...)
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
