package controllers

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"podwalk/engine/client"
)

// aggregation fills ClusterRoles such as admin, edit and view, which say with an
// aggregationRule whose rules they are made of. Upstream:
// pkg/controller/clusterroleaggregation.
type aggregation struct {
	a     *actor
	roles *client.Cache[*rbacv1.ClusterRole]
}

func newAggregation(a *actor) logic {
	c := &aggregation{a: a}
	c.roles = watch(a, func(client.Change[*rbacv1.ClusterRole]) {
		c.roles.Each("", func(r *rbacv1.ClusterRole) bool {
			if r.AggregationRule != nil {
				a.q.add(r.Name)
			}
			return true
		})
	})
	return c
}

// gather adds the rules up; the sync only writes.
func (c *aggregation) gather(key string) any {
	role, ok := c.roles.Get("", key)
	if !ok || role.AggregationRule == nil {
		return nil
	}
	rules := []rbacv1.PolicyRule{}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		sel, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil
		}
		c.roles.Each("", func(other *rbacv1.ClusterRole) bool {
			if other.Name == role.Name || !sel.Matches(labels.Set(other.Labels)) {
				return true
			}
			for _, rule := range other.Rules {
				if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) }) {
					rules = append(rules, rule)
				}
			}
			return true
		})
	}
	if equality.Semantic.DeepEqual(rules, role.Rules) {
		return nil
	}
	fresh := role.DeepCopy()
	fresh.Rules = rules
	return fresh
}

func (c *aggregation) sync(r *run, input any) error {
	req := update(input.(*rbacv1.ClusterRole))
	req.Background = true
	_, err := r.do(req)
	return err
}
