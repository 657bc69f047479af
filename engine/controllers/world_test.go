package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"

	"podwalk/engine/apiserver"
	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/authz"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/controllers"
	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

type wires struct{}

func (wires) Do(kernel.ActorID, network.Call) {}

// refusing is a validating admission plugin that the stories switch on.
type refusing struct{ message string }

func (*refusing) Name() string { return "Refusing" }

func (r *refusing) Validate(a *admission.Attributes, _ admission.Cluster) error {
	if r.message == "" || a.Operation != admission.Create || a.Resource != kube.Pods {
		return nil
	}
	return fmt.Errorf("%s", r.message)
}

// admin is kubectl: it keeps the last answer.
type admin struct{ answers []wire.Answer }

func (c *admin) Handle(ev kernel.Event) {
	if a, ok := ev.(wire.Answer); ok {
		c.answers = append(c.answers, a)
	}
}

// nodes plays the scheduler and the kubelets: it binds Pods to its nodes in turn, lets
// them run and be Ready, ends them when they are deleted, and renews the nodes' leases.
type nodes struct {
	k    *kernel.Kernel
	cl   *client.Client
	pods *client.Cache[*corev1.Pod]

	names []string
	state nodesState
}

type nodesState struct {
	Next    int
	IPs     int
	Down    map[string]bool
	Unready string // image whose Pods never become Ready
	Pods    any
}

type (
	beat  struct{}
	later struct{ Key, What string }
)

func newNodes(k *kernel.Kernel, names ...string) *nodes {
	n := &nodes{k: k, names: names, state: nodesState{Down: map[string]bool{}}}
	n.cl = client.New(k, "nodes", stage.On(stage.Kubelet, "node01"), wire.Credential{CommonName: "nodes", Orgs: []string{user.SystemPrivilegedGroup}})
	n.pods = client.NewCache[*corev1.Pod](n.cl, client.Selector{})
	k.Register("nodes", n)
	k.Send("nodes", 0, beat{})
	return n
}

func (n *nodes) Handle(ev kernel.Event) {
	switch e := ev.(type) {
	case beat:
		if n.pods.Len() == 0 && !n.pods.Synced() {
			n.pods.Start()
		}
		for _, name := range n.names {
			if !n.state.Down[name] {
				n.beat(name)
			}
		}
		for _, p := range n.pods.List("") {
			n.changed(p) // what was asked for in vain is asked for again
		}
		n.k.Send("nodes", 10*time.Second, beat{})
	case later:
		n.act(e)
	default:
		changes, _ := n.pods.Handle(ev)
		for _, ch := range changes {
			if ch.New != nil {
				n.changed(ch.New)
			}
		}
	}
}

func (n *nodes) beat(name string) {
	now := metav1.NewMicroTime(n.k.Now().Wall())
	n.cl.Do(wire.Request{Verb: wire.Patch, Resource: kube.Leases, Namespace: corev1.NamespaceNodeLease, Name: name, Background: true,
		PatchType: "application/merge-patch+json", MediaType: "application/merge-patch+json",
		Body: []byte(fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro)))})
}

func (n *nodes) changed(p *corev1.Pod) {
	key := kube.KeyOf(p)
	switch {
	case p.DeletionTimestamp != nil && (p.Spec.NodeName == "" || !n.state.Down[p.Spec.NodeName]):
		n.k.Send("nodes", 200*time.Millisecond, later{key, "end"})
	case p.Spec.NodeName == "" && p.DeletionTimestamp == nil:
		n.k.Send("nodes", 10*time.Millisecond, later{key, "bind"})
	case p.Status.Phase == corev1.PodPending && !n.state.Down[p.Spec.NodeName]:
		n.k.Send("nodes", 500*time.Millisecond, later{key, "run"})
	}
}

func (n *nodes) act(l later) {
	ns, name, _ := strings.Cut(l.Key, "/")
	p, ok := n.pods.Get(ns, name)
	if !ok {
		return
	}
	switch l.What {
	case "bind":
		if node, err := daemonutil.GetTargetNodeName(p); err == nil { // a DaemonSet's
			n.cl.Bind(p, node, nil)
			return
		}
		for range n.names {
			node := n.names[n.state.Next%len(n.names)]
			n.state.Next++
			if !n.state.Down[node] {
				n.cl.Bind(p, node, nil)
				return
			}
		}
	case "end":
		if p.DeletionTimestamp == nil {
			return // a namesake that came after it
		}
		zero := int64(0)
		n.cl.Delete(kube.Pods, ns, name, &metav1.DeleteOptions{GracePeriodSeconds: &zero}, nil)
	case "run":
		if p.Status.Phase != corev1.PodPending || p.Spec.NodeName == "" {
			return
		}
		p = p.DeepCopy()
		now := metav1.NewTime(n.k.Now().Wall()).Rfc3339Copy()
		ready := corev1.ConditionTrue
		if p.Spec.Containers[0].Image == n.state.Unready {
			ready = corev1.ConditionFalse
		}
		n.state.IPs++
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.244.1.%d", n.state.IPs)
		p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: ready, LastTransitionTime: now})
		n.cl.PatchStatus(p, nil)
	}
}

func (n *nodes) Snapshot() any {
	s := n.state
	s.Down = map[string]bool{}
	for k, v := range n.state.Down {
		s.Down[k] = v
	}
	s.Pods = n.pods.Snapshot()
	return s
}

func (n *nodes) Restore(snap any) {
	s := snap.(nodesState)
	down := map[string]bool{}
	for k, v := range s.Down {
		down[k] = v
	}
	n.pods.Restore(s.Pods)
	n.state = nodesState{s.Next, s.IPs, down, s.Unready, nil}
}

// world is a control plane without a scheduler, with nodes that are played.
type world struct {
	t      testing.TB
	k      *kernel.Kernel
	log    *trace.Log
	board  *fault.Board
	api    *apiserver.Server
	admin  *admin
	nodes  *nodes
	refuse *refusing
}

func newWorld(t testing.TB, names ...string) *world {
	w := &world{t: t, k: kernel.New(1), board: fault.NewBoard(), admin: &admin{}, refuse: &refusing{}}
	w.k.Attach("faults", w.board)
	w.log = trace.New(w.k)
	store := etcd.New(w.k, w.board, etcd.DefaultConfig())
	cfg := apiserver.DefaultConfig()
	cfg.Authenticator, cfg.Authorizer = authn.New(), authz.New()
	plugins := admission.Default(w.k.Rand("admission"))
	cfg.Mutators, cfg.Validators = plugins.Mutators, append(plugins.Validators, w.refuse)
	w.api = apiserver.New(w.k, w.log, w.board, wires{}, store, cfg)
	w.k.Register("admin", w.admin)
	w.api.Preload(authz.Bootstrap()...)
	for _, name := range names {
		w.api.Preload(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "zone-" + name[len(name)-1:]}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.NewTime(kernel.Epoch),
			}}},
		}, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}})
	}
	w.api.Start()
	controllers.New(w.k, w.log, w.board, controllers.Identified(w.k), controllers.DefaultConfig()).Start()
	if len(names) > 0 {
		w.nodes = newNodes(w.k, names...)
	}
	w.advance(time.Second)
	return w
}

func (w *world) advance(d time.Duration) {
	w.k.AdvanceTo(w.k.Now().Add(d))
	if err := w.k.Err(); err != nil {
		w.t.Fatal(err)
	}
}

// do sends a request as kubectl does and runs until its answer is there.
func (w *world) do(r wire.Request) wire.Answer {
	r.ReplyTo, r.Client = "admin", stage.Kubectl
	r.Credential = wire.Credential{CommonName: "kubernetes-admin", Orgs: []string{user.SystemPrivilegedGroup}}
	n := len(w.admin.answers)
	w.k.Send(kernel.ActorID(stage.APIServer), 0, r)
	for len(w.admin.answers) == n && w.k.Step() {
	}
	return w.admin.answers[len(w.admin.answers)-1]
}

func (w *world) list(kind kube.Kind, namespace string) []kube.Object {
	var out []kube.Object
	for _, o := range w.api.List(kind.Resource, namespace) {
		out = append(out, o.(kube.Object))
	}
	slices.SortStableFunc(out, func(a, b kube.Object) int { return strings.Compare(kube.KeyOf(a), kube.KeyOf(b)) })
	return out
}
