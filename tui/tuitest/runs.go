package tuitest

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
)

const podsPath = "/api/v1/namespaces/default/pods?fieldManager=kubectl-run"

// gates takes the Pod through steps 0 to 4.
func (b *builder) gates() {
	kubectl := stage.Kubectl
	b.hop(0, trace.Hop{Stage: stage.Client, From: kubectl, To: kubectl, Verb: "run", Message: "kubectl run nginx --image=nginx"})
	b.hop(12*ms, trace.Hop{
		Stage: stage.Request, From: kubectl, To: stage.APIServer, Verb: "POST",
		Detail: trace.HTTP{Method: "POST", Path: podsPath, User: "kubernetes-admin"},
	})
	b.hop(ms, gate(stage.Authentication, "x509", "kubernetes-admin"))
	b.hop(ms, gate(stage.Authorization, "RBAC", "allowed"))
	p := pod1(b.obj.Name, "nginx")
	b.hop(ms, trace.Hop{Stage: stage.Decode, From: stage.APIServer, To: stage.APIServer, Verb: "defaulting", Detail: trace.Change{After: p}})
	q := p.DeepCopy()
	q.Spec.ServiceAccountName = "default"
	q.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-zx9wk"}}
	q.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-zx9wk", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}}
	b.hop(ms, trace.Hop{Stage: stage.MutatingAdmission, From: stage.APIServer, To: stage.APIServer, Verb: "ServiceAccount", Reason: "ServiceAccount", Detail: trace.Change{Before: p, After: q}})
	r := q.DeepCopy()
	s := int64(300)
	r.Spec.Tolerations = []corev1.Toleration{
		{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &s},
		{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &s},
	}
	b.hop(ms, trace.Hop{Stage: stage.MutatingAdmission, From: stage.APIServer, To: stage.APIServer, Verb: "DefaultTolerationSeconds", Reason: "DefaultTolerationSeconds", Detail: trace.Change{Before: q, After: r}})
	b.hop(ms, gate(stage.SchemaValidation, "Validate", ""))
	b.hop(ms, trace.Hop{Stage: stage.ValidatingAdmission, From: stage.APIServer, To: stage.APIServer, Verb: "Validate", Detail: trace.Admission{Plugins: []trace.PluginVerdict{
		{Plugin: "LimitRanger", Verdict: "ok"}, {Plugin: "PodSecurity", Verdict: "ok"}, {Plugin: "ResourceQuota", Verdict: "ok"},
	}}})
	r = r.DeepCopy()
	r.CreationTimestamp = metav1.NewTime(b.now.at.Wall())
	b.put(frame.Pods, r)
	b.rev++
	b.hop(4*ms, trace.Hop{Stage: stage.Persist, From: stage.APIServer, To: stage.Etcd, Verb: "put", Revision: b.rev, Detail: trace.Change{After: r}})
	b.hop(ms, trace.Hop{Stage: stage.Request, From: stage.APIServer, To: kubectl, Verb: "201 Created", Message: "pod/" + b.obj.Name + " created", Detail: trace.HTTP{Method: "POST", Path: podsPath, Code: 201, User: "kubernetes-admin"}})
}

func (b *builder) queued() {
	d := trace.Queue{Active: []string{"default/" + b.obj.Name}}
	h := sched(stage.PreEnqueue, "PreEnqueue")
	h.From, h.Verb, h.Detail = stage.APIServer, "watch", d
	b.hop(6*ms, h)
	h = sched(stage.QueueSort, "PrioritySort")
	h.Detail = d
	b.hop(ms, h)
	b.hop(ms, sched(stage.PreFilter, "PreFilter"))
}

func table(refuse map[string][2]string) trace.SchedulingCycle {
	c := trace.SchedulingCycle{Plugins: plugins}
	for _, n := range []string{"controlplane", "node01", "node02"} {
		row := trace.NodeRow{Node: n, Status: make([]string, len(plugins))}
		if r, ok := refuse[n]; ok {
			hit := false
			for i, p := range plugins {
				switch {
				case hit:
					row.Status[i] = "-"
				case p == r[0]:
					row.Status[i], hit = r[1], true
				}
			}
		}
		c.Nodes = append(c.Nodes, row)
	}
	return c
}

var (
	tainted = [2]string{"TaintToleration", "node(s) had untolerated taint(s)"}
	fullCPU = [2]string{"NodeResourcesFit", "Insufficient cpu"}
)

func (b *builder) scheduled() {
	h := sched(stage.Filter, "Filter")
	c := table(map[string][2]string{"controlplane": tainted, "node01": fullCPU})
	h.Detail = c
	b.hop(2*ms, h)
	b.hop(ms, sched(stage.PreScore, "PreScore"))
	h = sched(stage.Score, "Score")
	c = table(map[string][2]string{"controlplane": tainted, "node01": fullCPU})
	c.Nodes[2].Scores = []trace.NodeScore{
		{Plugin: "TaintToleration", Raw: 100, Weight: 3}, {Plugin: "NodeResourcesFit", Raw: 87, Weight: 1},
		{Plugin: "NodeResourcesBalancedAllocation", Raw: 95, Weight: 1}, {Plugin: "ImageLocality", Raw: 0, Weight: 1},
	}
	c.Nodes[2].Total, c.Nodes[2].Chosen = 482, true
	c.Nodes[1].Scores = []trace.NodeScore{
		{Plugin: "TaintToleration", Raw: 100, Weight: 3}, {Plugin: "NodeResourcesFit", Raw: 12, Weight: 1},
		{Plugin: "NodeResourcesBalancedAllocation", Raw: 40, Weight: 1}, {Plugin: "ImageLocality", Raw: 0, Weight: 1},
	}
	c.Nodes[1].Total = 352
	h.Detail = c
	b.hop(ms, h)
	for _, id := range []stage.ID{stage.Reserve, stage.Permit, stage.PreBind} {
		b.hop(ms, sched(id, string(id)))
	}
	b.hop(ms, trace.Hop{Stage: stage.Bind, From: stage.Scheduler, To: stage.APIServer, Verb: "POST binding", Detail: trace.HTTP{Method: "POST", Path: "/api/v1/namespaces/default/pods/nginx/binding", User: "system:kube-scheduler"}})
	b.event("Normal", "Scheduled", "default-scheduler", "Successfully assigned default/"+b.obj.Name+" to node02")
	b.change(4*ms, trace.Hop{Stage: stage.BindingSaved, From: stage.APIServer, To: stage.Etcd, Verb: "put"}, func(p *corev1.Pod) {
		p.Spec.NodeName = "node02"
		conditions(p, "PodScheduled")
		p.Status.Conditions = p.Status.Conditions[4:]
	})
	b.hop(ms, sched(stage.PostBind, "PostBind"))
	k := stage.On(stage.Kubelet, "node02")
	b.hop(5*ms, trace.Hop{Stage: stage.NodeWatch, From: stage.APIServer, To: k, Verb: "watch"})
	b.hop(ms, trace.Hop{Stage: stage.NodeAdmission, From: k, To: k, Verb: "admit"})
	b.change(8*ms, trace.Hop{Stage: stage.Status, From: k, To: stage.APIServer, Verb: "PATCH status"}, func(p *corev1.Pod) {
		waiting(p, "ContainerCreating")
		conditions(p, "Initialized", "PodScheduled")
	})
	b.hop(40*ms, trace.Hop{Stage: stage.Volumes, From: k, To: stage.On(stage.CSI, "node02"), Verb: "SetUp"})
	cd := stage.On(stage.Containerd, "node02")
	b.hop(9*ms, trace.Hop{Stage: stage.Sandbox, From: k, To: cd, Verb: "RunPodSandbox"})
	b.hop(50*ms, trace.Hop{Stage: stage.Sandbox, From: cd, To: stage.On(stage.CNI, "node02"), Verb: "ADD", Message: "10.244.2.7"})
}

func (b *builder) pulled() {
	k, cd := stage.On(stage.Kubelet, "node02"), stage.On(stage.Containerd, "node02")
	pull := trace.Pull{Image: "docker.io/library/nginx:latest", Layers: 7, Cached: 2, SizeBytes: 70_400_000}
	b.event("Normal", "Pulling", "kubelet", `spec.containers{nginx}: Pulling image "nginx"`)
	b.hop(6*ms, trace.Hop{Stage: stage.Image, From: k, To: cd, Verb: "PullImage", Reason: "Pulling", Message: `Pulling image "nginx"`})
	b.hop(20*ms, trace.Hop{Stage: stage.Image, From: cd, To: stage.Registry, Verb: "GET", Outcome: trace.Waiting, Detail: pull})
	b.event("Normal", "Pulled", "kubelet", `spec.containers{nginx}: Successfully pulled image "nginx" in 2.153s (2.153s including waiting). Image size: 70400000 bytes.`)
	b.hop(2153*ms, trace.Hop{Stage: stage.Image, From: stage.Registry, To: cd, Verb: "layers", Reason: "Pulled", Message: `Successfully pulled image "nginx" in 2.153s`, Detail: pull})
	b.event("Normal", "Created", "kubelet", "spec.containers{nginx}: Container created")
	b.hop(30*ms, trace.Hop{Stage: stage.Create, From: k, To: cd, Verb: "CreateContainer", Reason: "Created", Message: "Container created"})
	b.event("Normal", "Started", "kubelet", "spec.containers{nginx}: Container started")
	b.hop(40*ms, trace.Hop{Stage: stage.Start, From: k, To: cd, Verb: "StartContainer", Reason: "Started", Message: "Container started"})
	b.hop(400*ms, trace.Hop{Stage: stage.Probes, From: k, To: k, Verb: "readiness", Detail: trace.Probe{Kind: "readiness", Container: "nginx", Success: true}})
	b.change(600*ms, trace.Hop{Stage: stage.Status, From: k, To: stage.APIServer, Verb: "PATCH status"}, func(p *corev1.Pod) { running(p, "10.244.2.7") })
}

// Happy is kubectl run nginx that comes to Ready.
func Happy() *Run {
	b := newBuilder("nginx")
	b.gates()
	b.queued()
	b.scheduled()
	b.pulled()
	return b.run
}

// NoTag is a run that ends in ImagePullBackOff.
func NoTag() *Run {
	b := newBuilder("nginx")
	b.run.twin = Happy().hops
	b.gates()
	b.queued()
	b.scheduled()
	k, cd := stage.On(stage.Kubelet, "node02"), stage.On(stage.Containerd, "node02")
	b.hop(6*ms, trace.Hop{Stage: stage.Image, From: k, To: cd, Verb: "PullImage", Reason: "Pulling", Message: `Pulling image "nginx:1.99"`})
	msg := `Failed to pull image "nginx:1.99": rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:1.99": failed to resolve reference "docker.io/library/nginx:1.99": docker.io/library/nginx:1.99: not found`
	b.event("Warning", "Failed", "kubelet", "spec.containers{nginx}: "+msg)
	b.hop(800*ms, trace.Hop{Stage: stage.Image, From: cd, To: stage.Registry, Verb: "GET", Outcome: trace.Failed, Reason: "ErrImagePull", Message: msg})
	b.change(100*ms, trace.Hop{Stage: stage.Status, From: k, To: stage.APIServer, Verb: "PATCH status"}, func(p *corev1.Pod) { waiting(p, "ErrImagePull") })
	b.hop(10_000*ms, trace.Hop{Stage: stage.Image, From: k, To: k, Verb: "back-off", Outcome: trace.Retry, Reason: "ImagePullBackOff", Message: `Back-off pulling image "nginx:1.99"`})
	b.change(100*ms, trace.Hop{Stage: stage.Status, From: k, To: stage.APIServer, Verb: "PATCH status"}, func(p *corev1.Pod) { waiting(p, "ImagePullBackOff") })
	return b.run
}

// NoRoom is a run that no node can take.
func NoRoom() *Run {
	b := newBuilder("big")
	b.gates()
	b.queued()
	c := table(map[string][2]string{"controlplane": tainted, "node01": fullCPU, "node02": fullCPU})
	c.Event = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	h := sched(stage.Filter, "Filter")
	h.Detail, h.Outcome, h.Reason, h.Message = c, trace.Failed, "FailedScheduling", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
	b.hop(2*ms, h)
	b.event("Warning", "FailedScheduling", "default-scheduler", c.Event)
	h = sched(stage.PostFilter, "DefaultPreemption")
	h.Outcome, h.Message = trace.Failed, "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	b.hop(ms, h)
	b.change(5*ms, trace.Hop{Stage: stage.Status, From: stage.Scheduler, To: stage.APIServer, Verb: "PATCH status"}, func(p *corev1.Pod) {
		conditions(p)
		p.Status.Conditions = p.Status.Conditions[4:]
	})
	return b.run
}

// Refused is a Pod that PodSecurity does not let in.
func Refused() *Run {
	b := newBuilder("nginx")
	b.gates()
	n := 8 // up to schema validation
	b.run.hops, b.run.views = b.run.hops[:n], b.run.views[:n]
	b.now = b.run.views[n-1]
	b.hop(ms, trace.Hop{
		Stage: stage.ValidatingAdmission, From: stage.APIServer, To: stage.APIServer, Verb: "PodSecurity", Outcome: trace.Denied, Reason: "PodSecurity",
		Message: `pods "nginx" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "nginx" must set securityContext.allowPrivilegeEscalation=false)`,
	})
	return b.run
}

// Deployment is a Deployment with one replica: three laps through the gates, then the
// Pod's own way.
func Deployment() *Run {
	b := newBuilder("web-5f6d9c7b4-x2x9z")
	kcm := stage.ControllerManager
	lap := func(from stage.Component, kind, name string, o frame.Object, put func()) {
		ref := trace.Ref{Kind: kind, Namespace: "default", Name: name}
		h := func(d trace.Hop) {
			d.Object = ref
			b.hop(2*ms, d)
		}
		path := "/apis/apps/v1/namespaces/default/" + strings.ToLower(kind) + "s"
		h(trace.Hop{Stage: stage.Request, From: from, To: stage.APIServer, Verb: "POST", Detail: trace.HTTP{Method: "POST", Path: path, User: "system:serviceaccount:kube-system"}})
		for _, id := range []stage.ID{stage.Authentication, stage.Authorization, stage.MutatingAdmission, stage.ValidatingAdmission} {
			h(trace.Hop{Stage: id, From: stage.APIServer, To: stage.APIServer, Verb: string(id)})
		}
		put()
		b.rev++
		h(trace.Hop{Stage: stage.Persist, From: stage.APIServer, To: stage.Etcd, Verb: "put", Revision: b.rev, Detail: trace.Change{After: o}})
	}
	yes, one := true, int32(1)
	dep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	dep.Spec.Replicas = &one
	lap(stage.Kubectl, "Deployment", "web", dep, func() { b.put(frame.Deployments, dep) })
	b.hop(3*ms, trace.Hop{Stage: stage.Controllers, From: stage.APIServer, To: kcm, Verb: "watch", Object: trace.Ref{Kind: "Deployment", Namespace: "default", Name: "web"}})
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-5f6d9c7b4", OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: &yes}}}}
	rs.Spec.Replicas = &one
	lap(kcm, "ReplicaSet", rs.Name, rs, func() { b.put(frame.ReplicaSets, rs) })
	b.hop(3*ms, trace.Hop{Stage: stage.Controllers, From: stage.APIServer, To: kcm, Verb: "watch", Object: trace.Ref{Kind: "ReplicaSet", Namespace: "default", Name: rs.Name}})
	p := pod1(b.obj.Name, "nginx")
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: rs.Name, Controller: &yes}}
	lap(kcm, "Pod", p.Name, p, func() { b.put(frame.Pods, p) })
	b.queued()
	b.scheduled()
	b.pulled()
	return b.run
}
