package admission_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

// cluster is what the API server would hold.
type cluster []kube.Object

func (c cluster) Get(gvr schema.GroupVersionResource, ns, name string) (runtime.Object, bool) {
	for _, o := range c {
		if kube.ResourceOf(o) == gvr && o.GetNamespace() == ns && o.GetName() == name {
			return o, true
		}
	}
	return nil, false
}

func (c cluster) List(gvr schema.GroupVersionResource, ns string) []runtime.Object {
	var out []runtime.Object
	for _, o := range c {
		if kube.ResourceOf(o) == gvr && (ns == "" || o.GetNamespace() == ns) {
			out = append(out, o)
		}
	}
	return out
}

func base(extra ...kube.Object) cluster {
	return append(cluster{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "default"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node01", Labels: map[string]string{corev1.LabelTopologyZone: "zone-a"}}},
	}, extra...)
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// pod is a Pod with one container, app.
func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func resources(requests, limits corev1.ResourceList) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
}

func create(obj kube.Object) *admission.Attributes {
	kind, _ := kube.KindOf(obj)
	return &admission.Attributes{
		Operation: admission.Create, Kind: kind.Kind, Resource: kube.ResourceOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		Object: obj, User: &user.DefaultInfo{Name: "jane"}, Now: time.Unix(1e9, 0),
	}
}

// admit runs all plugins as the API server does.
func admit(a *admission.Attributes, c cluster) (warnings []string, err error) {
	p := admission.Default(kernel.New(1).Rand("admission"))
	for _, m := range p.Mutators {
		if err := m.Admit(a, c); err != nil {
			return nil, err
		}
	}
	for _, v := range p.Validators {
		if w, ok := v.(admission.Warner); ok {
			warnings = append(warnings, w.Warn(a, c)...)
		}
		if err := v.Validate(a, c); err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

func quota(name string, hard, used corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func limitRange(items ...corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: items}}
}

// bounds are those of the recording of LimitRange violations.
func bounds() *corev1.LimitRange {
	return limitRange(
		corev1.LimitRangeItem{Type: "Container", Min: list("cpu", "100m", "memory", "64Mi"), Max: list("cpu", "1", "memory", "512Mi"), MaxLimitRequestRatio: list("cpu", "2")},
		corev1.LimitRangeItem{Type: "Pod", Max: list("cpu", "1500m", "memory", "768Mi")},
	)
}

func small() *corev1.ResourceQuota {
	return quota("small", list("limits.cpu", "2", "limits.memory", "2Gi", "requests.cpu", "1", "requests.memory", "1Gi", "pods", "2"),
		list("limits.cpu", "500m", "limits.memory", "256Mi", "requests.cpu", "500m", "requests.memory", "256Mi", "pods", "1"))
}

func restricted(labels map[string]string) cluster {
	c := base()
	ns := c[0].DeepCopyObject().(*corev1.Namespace)
	ns.Labels = labels
	c[0] = ns
	return c
}

// TestRefusals has the literal messages of real clusters.
func TestRefusals(t *testing.T) {
	terminating := base()
	gone := terminating[0].DeepCopyObject().(*corev1.Namespace)
	gone.Status.Phase = corev1.NamespaceTerminating
	terminating[0] = gone
	five := int32(5)
	for _, c := range []struct {
		name string
		in   cluster
		obj  kube.Object
		want string
	}{
		{"namespace missing", nil, pod(), `namespaces "a" not found`},
		{"namespace terminating", terminating, pod(), `pods "web" is forbidden: unable to create new content in namespace a because it is being terminated`},
		{"limit too big", base(bounds()), pod(resources(list("cpu", "1", "memory", "512Mi"), list("cpu", "2", "memory", "1Gi"))),
			`pods "web" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 512Mi, but limit is 1Gi, maximum cpu usage per Pod is 1500m, but limit is 2, maximum memory usage per Pod is 768Mi, but limit is 1Gi]`},
		{"request too small", base(bounds()), pod(resources(list("cpu", "10m", "memory", "16Mi"), list("cpu", "20m", "memory", "64Mi"))),
			`pods "web" is forbidden: [minimum cpu usage per Container is 100m, but request is 10m, minimum memory usage per Container is 64Mi, but request is 16Mi]`},
		{"ratio", base(bounds()), pod(resources(list("cpu", "100m", "memory", "64Mi"), list("cpu", "500m", "memory", "64Mi"))),
			`pods "web" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000`},
		{"quota: nothing specified", base(small()), pod(),
			`pods "web" is forbidden: failed quota: small: must specify limits.cpu for: app; limits.memory for: app; requests.cpu for: app; requests.memory for: app`},
		{"quota exceeded", base(small()), pod(resources(list("cpu", "600m", "memory", "900Mi"), list("cpu", "2", "memory", "2Gi"))),
			`pods "web" is forbidden: exceeded quota: small, requested: limits.cpu=2,limits.memory=2Gi,requests.cpu=600m,requests.memory=900Mi, used: limits.cpu=500m,limits.memory=256Mi,requests.cpu=500m,requests.memory=256Mi, limited: limits.cpu=2,limits.memory=2Gi,requests.cpu=1,requests.memory=1Gi`},
		{"quota not counted yet", base(quota("new", list("pods", "2"), nil)), pod(),
			`pods "web" is forbidden: status unknown for quota: new, resources: pods`},
		{"quota of objects", base(quota("objects", list("configmaps", "1"), list("configmaps", "1"))), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}},
			`configmaps "c" is forbidden: exceeded quota: objects, requested: configmaps=1, used: configmaps=1, limited: configmaps=1`},
		{"priority class missing", base(), pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "gold" }),
			`pods "web" is forbidden: no PriorityClass with name gold was found`},
		{"priority given", base(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Value: 1000000}),
			pod(func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = "gold", &five }),
			`pods "web" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000000 from the given PriorityClass name`},
		{"service account missing", base(), pod(func(p *corev1.Pod) {
			p.Name, p.GenerateName, p.Spec.ServiceAccountName = "", "web-69d89dfdcd-", "builder"
		}),
			`pods "web-69d89dfdcd-" is forbidden: error looking up service account a/builder: serviceaccount "builder" not found`},
		{"runtime class missing", base(), pod(func(p *corev1.Pod) { gvisor := "gvisor"; p.Spec.RuntimeClassName = &gvisor }),
			`pods "web" is forbidden: pod rejected: RuntimeClass "gvisor" not found`},
		{"restricted", restricted(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}), pod(),
			`pods "web" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "app" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "app" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 3 { // maps must not show
				obj := c.obj.DeepCopyObject().(kube.Object)
				_, err := admit(create(obj), c.in)
				if err == nil {
					t.Fatal("admitted")
				}
				if err.Error() != c.want {
					t.Fatalf("got  %s\nwant %s", err, c.want)
				}
			}
		})
	}
}

func TestPodIsFilledIn(t *testing.T) {
	p := pod(resources(list("cpu", "1"), list("cpu", "1")))
	p.Spec.NodeName = "node01"
	c := base(limitRange(corev1.LimitRangeItem{Type: "Container", Default: list("cpu", "500m", "memory", "256Mi"), DefaultRequest: list("cpu", "250m", "memory", "128Mi")}))
	if _, err := admit(create(p), c); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Annotations["kubernetes.io/limit-ranger"], "LimitRanger plugin set: memory request for container app; memory limit for container app"; got != want {
		t.Errorf("annotation %q, want %q", got, want)
	}
	if p.Spec.ServiceAccountName != "default" || len(p.Spec.Volumes) != 1 || !strings.HasPrefix(p.Spec.Volumes[0].Name, "kube-api-access-") ||
		len(p.Spec.Containers[0].VolumeMounts) != 1 {
		t.Errorf("service account: %+v", p.Spec)
	}
	if len(p.Spec.Tolerations) != 2 || p.Spec.Priority == nil || *p.Spec.Priority != 0 || *p.Spec.PreemptionPolicy != corev1.PreemptLowerPriority {
		t.Errorf("tolerations and priority: %+v", p.Spec)
	}
	if p.Labels[corev1.LabelTopologyZone] != "zone-a" {
		t.Errorf("labels %v", p.Labels)
	}
}

func TestWorkloadIsOnlyWarned(t *testing.T) {
	c := restricted(map[string]string{"pod-security.kubernetes.io/warn": "restricted"})
	w, err := admit(create(pod()), c)
	if err != nil || len(w) != 1 || !strings.HasPrefix(w[0], `would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "app"`) {
		t.Errorf("warnings %q, error %v", w, err)
	}
}

func TestQuotaIsCharged(t *testing.T) {
	c := base(quota("two", list("pods", "2"), list("pods", "1")))
	var q admission.ResourceQuota
	got := q.Charge(create(pod()), c)
	if len(got) != 1 {
		t.Fatalf("%d quotas charged", len(got))
	}
	used := got[0].(*corev1.ResourceQuota).Status.Used["pods"]
	if used.Value() != 2 {
		t.Errorf("used %s", used.String())
	}
	before := c[len(c)-1].(*corev1.ResourceQuota).Status.Used["pods"]
	if before.Value() != 1 {
		t.Error("the stored quota was changed in place")
	}
}

func TestNodeRestriction(t *testing.T) {
	kubelet := &user.DefaultInfo{Name: "system:node:real01", Groups: []string{user.NodesGroup}}
	bound := pod(func(p *corev1.Pod) { p.Spec.NodeName = "node01" })
	moved := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real01", Labels: map[string]string{"node-role.kubernetes.io/x": "y"}}}
	status := create(bound)
	status.Operation, status.Subresource, status.OldObject = admission.Update, "status", bound
	relabel := create(moved)
	relabel.Operation, relabel.OldObject = admission.Update, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real01"}}
	for _, c := range []struct {
		a    *admission.Attributes
		want string
	}{
		{create(pod()), `pods "web" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "real01" can only create mirror pods`},
		{status, `pods "web" is forbidden: node "real01" can only update pod status for pods with spec.nodeName set to itself`},
		{create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node02"}}), `nodes "node02" is forbidden: node "real01" is not allowed to modify node "node02"`},
		{relabel, `nodes "real01" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/x`},
	} {
		c.a.User = kubelet
		if err := (&admission.NodeRestriction{}).Admit(c.a, base()); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestOrder(t *testing.T) {
	var names []string
	for _, m := range admission.Default(kernel.New(1).Rand("x")).Mutators {
		names = append(names, m.Name())
	}
	want := []string{"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "NodeRestriction", "TaintNodesByCondition", "Priority",
		"DefaultTolerationSeconds", "DefaultStorageClass", "StorageObjectInUseProtection", "RuntimeClass", "PodTopologyLabels"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v", names)
	}
}
