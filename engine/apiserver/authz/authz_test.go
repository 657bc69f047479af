package authz_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"podwalk/engine/apiserver/authz"
	"podwalk/engine/kube"
)

type cluster []runtime.Object

func (c cluster) Get(gvr schema.GroupVersionResource, ns, name string) (runtime.Object, bool) {
	for _, o := range c {
		if m := kube.Meta(o); kube.ResourceOf(o) == gvr && m.GetNamespace() == ns && m.GetName() == name {
			return o, true
		}
	}
	return nil, false
}

func (c cluster) List(gvr schema.GroupVersionResource, ns string) []runtime.Object {
	var out []runtime.Object
	for _, o := range c {
		if kube.ResourceOf(o) == gvr && (ns == "" || kube.Meta(o).GetNamespace() == ns) {
			out = append(out, o)
		}
	}
	return out
}

func subject(name string, groups ...string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
}

func ask(u user.Info, verb, resource, namespace, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{User: u, Verb: verb, Resource: resource, Namespace: namespace, Name: name, APIVersion: "v1", ResourceRequest: true}
}

func TestRBAC(t *testing.T) {
	z := authz.New()
	c := append(cluster{}, authz.Bootstrap()...)
	jane := subject("jane")
	get := ask(jane, "get", "pods", "b02", "nginx")
	if ok, _ := z.Authorize(get, c); ok {
		t.Fatal("jane may read Pods without any role")
	}
	c = append(c,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "b02", Name: "pod-reader"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "b02", Name: "jane-reads"}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "pod-reader"}},
	)
	z.Invalidate()
	ok, reason := z.Authorize(get, c)
	if want := `RBAC: allowed by RoleBinding "jane-reads/b02" of Role "pod-reader" to User "jane"`; !ok || reason != want {
		t.Errorf("got %v %q, want %q", ok, reason, want)
	}
	for _, x := range []struct {
		a    authorizer.AttributesRecord
		want bool
	}{
		{ask(jane, "create", "pods", "b02", ""), false},
		{ask(jane, "get", "pods", "default", "nginx"), false},
		{ask(subject("kubernetes-admin", "system:masters"), "delete", "nodes", "", "node01"), true},
		{ask(subject("system:kube-scheduler"), "list", "pods", "", ""), true},
		{ask(subject("system:serviceaccount:kube-system:replicaset-controller"), "create", "pods", "b02", ""), true},
		{ask(subject("system:kube-scheduler"), "create", "pods", "b02", ""), false},
	} {
		if ok, _ := z.Authorize(x.a, c); ok != x.want {
			t.Errorf("%s may %s %s in %q: %v", x.a.User.GetName(), x.a.Verb, x.a.Resource, x.a.Namespace, ok)
		}
	}
}

// TestNode has the literal reasons of a real cluster.
func TestNode(t *testing.T) {
	z := authz.New()
	c := append(cluster{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "b17", Name: "web"},
		Spec: corev1.PodSpec{NodeName: "real01", ServiceAccountName: "default", Volumes: []corev1.Volume{
			{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}},
		}},
	}}, authz.Bootstrap()...)
	kubelet := subject("system:node:real01", user.NodesGroup)
	own := ask(kubelet, "list", "pods", "", "")
	own.FieldSelectorRequirements = fields.OneTermEqualSelector("spec.nodeName", "real01").Requirements()
	token := ask(kubelet, "create", "serviceaccounts", "b17", "default")
	token.Subresource = "token"
	for _, x := range []struct {
		a      authorizer.AttributesRecord
		want   bool
		reason string
	}{
		{ask(kubelet, "list", "nodes", "", ""), false, "node: node 'real01' cannot read all nodes, only its own Node object"},
		{ask(kubelet, "get", "nodes", "", "real01"), true, ""},
		{ask(kubelet, "get", "nodes", "", "node01"), false, "node: node 'real01' cannot read 'node01', only its own Node object"},
		{ask(kubelet, "list", "secrets", "", ""), false, "node: can only read namespaced object of this type"},
		{ask(kubelet, "list", "pods", "b17", ""), false, "node: can only list/watch pods with spec.nodeName field selector"},
		{own, true, ""},
		{ask(kubelet, "get", "secrets", "b17", "db"), true, ""},
		{ask(kubelet, "get", "secrets", "b17", "other"), false, "node: no relationship found between node 'real01' and this object"},
		{ask(subject("system:node:node02", user.NodesGroup), "get", "secrets", "b17", "db"), false, "node: no relationship found between node 'node02' and this object"},
		{token, true, ""},
		{ask(kubelet, "list", "services", "", ""), true, ""},
	} {
		ok, reason := z.Authorize(x.a, c)
		if ok != x.want || reason != x.reason {
			t.Errorf("%s %s %s/%s: got %v %q, want %v %q", x.a.Verb, x.a.Resource, x.a.Namespace, x.a.Name, ok, reason, x.want, x.reason)
		}
	}
	if ok, _ := z.Authorize(ask(kubelet, "get", "secrets", "b17", "db"), c[1:]); ok {
		t.Error("the Pod is gone, and its Secret can still be read")
	}
}

func BenchmarkAuthorize(b *testing.B) {
	z := authz.New()
	c := append(cluster{}, authz.Bootstrap()...)
	a := ask(subject("system:kube-scheduler"), "update", "pods", "default", "web")
	b.ReportAllocs()
	for b.Loop() {
		z.Authorize(a, c)
	}
}
