// Package authz tells what a user may do: the Node and RBAC authorizers of the API
// server, in that order, as --authorization-mode=Node,RBAC. Rules are matched by
// upstream's own code (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac).
//
// Decisions are remembered until an RBAC object changes: components ask the same
// questions all the time.
//
// Left out: the Webhook and ABAC modes, resource claims and Pod certificate requests of
// the Node authorizer.
package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/kube"
)

// Authorizer decides. It holds no state of the run: what it remembers follows from the
// cluster's RBAC objects.
type Authorizer struct {
	nodeRules []rbacv1.PolicyRule
	decisions map[question]decision
	// named are the objects' names that rules mention, nil where it is not known: to RBAC
	// all other names are alike.
	named map[string]bool
	// witness is, for each object that a node was found to have to do with, the Pod that
	// refers to it; it is looked at again before it counts.
	witness map[reference]string
}

// question is everything that a decision depends on.
type question struct {
	user, groups                               string
	verb, group, resource, sub, ns, name, path string
}

type decision struct {
	allowed bool
	reason  string
}

// decisionsMax bounds what is remembered.
const decisionsMax = 50_000

// New returns an authorizer that has not been asked anything yet.
func New() *Authorizer {
	return &Authorizer{nodeRules: bootstrappolicy.NodeRules(), decisions: map[question]decision{}, witness: map[reference]string{}}
}

// Invalidate forgets all decisions: an RBAC object has changed.
func (z *Authorizer) Invalidate() {
	clear(z.decisions)
	z.named = nil
}

// Authorize answers for one request. The reason names the binding that allows it.
func (z *Authorizer) Authorize(a authorizer.Attributes, c admission.Cluster) (bool, string) {
	u := a.GetUser()
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return true, "" // system:masters is not asked for rules at all
	}
	refused := ""
	if node, ok := nodeOf(u); ok {
		verdict, reason := z.node(node, a, c)
		if verdict == allow || verdict == noRule && rbac.RulesAllow(a, z.nodeRules...) {
			return true, ""
		}
		if reason != "" {
			refused = "node: " + reason
		}
	}
	d := z.byRules(a, c)
	if !d.allowed && d.reason == "" {
		return false, refused
	}
	return d.allowed, d.reason
}

// byRules asks RBAC, or remembers its answer.
func (z *Authorizer) byRules(a authorizer.Attributes, c admission.Cluster) decision {
	u := a.GetUser()
	q := question{
		u.GetName(), strings.Join(u.GetGroups(), ","), a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(),
		a.GetNamespace(), "", a.GetPath(),
	}
	if z.isNamed(a.GetName(), c) {
		q.name = a.GetName()
	}
	if d, ok := z.decisions[q]; ok {
		return d
	}
	verdict, reason, _ := newRBAC(c).Authorize(context.Background(), a)
	d := decision{verdict == authorizer.DecisionAllow, reason}
	if len(z.decisions) >= decisionsMax {
		clear(z.decisions)
	}
	z.decisions[q] = d
	return d
}

// isNamed reports whether a rule is about the objects of that name alone.
func (z *Authorizer) isNamed(name string, c admission.Cluster) bool {
	if z.named == nil {
		z.named = map[string]bool{}
		for _, r := range typed[*rbacv1.ClusterRole](c.List(kube.ClusterRoles, "")) {
			z.note(r.Rules)
		}
		for _, r := range typed[*rbacv1.Role](c.List(kube.Roles, "")) {
			z.note(r.Rules)
		}
	}
	return z.named[name]
}

func (z *Authorizer) note(rules []rbacv1.PolicyRule) {
	for _, r := range rules {
		for _, name := range r.ResourceNames {
			z.named[name] = true
		}
	}
}

// Rules lists what a user may do in a namespace.
func (z *Authorizer) Rules(u user.Info, namespace string, c admission.Cluster) authorizationv1.SubjectRulesReviewStatus {
	resources, paths, incomplete, err := newRBAC(c).RulesFor(context.Background(), u, namespace)
	out := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}, Incomplete: incomplete}
	if err != nil {
		out.EvaluationError = err.Error()
	}
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		all := []string{"*"}
		out.ResourceRules = append(out.ResourceRules, authorizationv1.ResourceRule{Verbs: all, APIGroups: all, Resources: all})
		out.NonResourceRules = append(out.NonResourceRules, authorizationv1.NonResourceRule{Verbs: all, NonResourceURLs: all})
	}
	for _, r := range resources {
		out.ResourceRules = append(out.ResourceRules, authorizationv1.ResourceRule{
			Verbs: r.GetVerbs(), APIGroups: r.GetAPIGroups(), Resources: r.GetResources(), ResourceNames: r.GetResourceNames(),
		})
	}
	for _, r := range paths {
		out.NonResourceRules = append(out.NonResourceRules, authorizationv1.NonResourceRule{Verbs: r.GetVerbs(), NonResourceURLs: r.GetNonResourceURLs()})
	}
	return out
}

func newRBAC(c admission.Cluster) *rbac.RBACAuthorizer {
	l := lister{c}
	return rbac.New(l, l, l, l)
}

// lister shows the cluster's RBAC objects to upstream's resolver.
type lister struct{ c admission.Cluster }

func (l lister) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	return find[*rbacv1.Role](l.c, kube.Roles, namespace, name)
}

func (l lister) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	return find[*rbacv1.ClusterRole](l.c, kube.ClusterRoles, "", name)
}

func (l lister) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return typed[*rbacv1.RoleBinding](l.c.List(kube.RoleBindings, namespace)), nil
}

func (l lister) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return typed[*rbacv1.ClusterRoleBinding](l.c.List(kube.ClusterBindings, "")), nil
}

func find[T runtime.Object](c admission.Cluster, gvr schema.GroupVersionResource, namespace, name string) (T, error) {
	o, ok := c.Get(gvr, namespace, name)
	if !ok {
		var none T
		return none, apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	t, ok := o.(T)
	if !ok {
		return t, fmt.Errorf("%s %s is a %T", gvr.Resource, name, o)
	}
	return t, nil
}

func typed[T runtime.Object](objs []runtime.Object) []T {
	out := make([]T, 0, len(objs))
	for _, o := range objs {
		out = append(out, o.(T))
	}
	return out
}
