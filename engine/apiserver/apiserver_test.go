package apiserver_test

import (
	"strconv"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"podwalk/engine/apiserver"
	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/authz"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// allowAll stands in for authentication and authorization: everybody is who they say.
type allowAll struct{}

func (allowAll) Authenticate(c wire.Credential, _ admission.Cluster, _ time.Time) (user.Info, string) {
	if c.BadCert != "" {
		return nil, c.BadCert
	}
	return &user.DefaultInfo{Name: c.CommonName, Groups: c.Orgs}, ""
}

func (allowAll) Authorize(a authorizer.Attributes, _ admission.Cluster) (bool, string) {
	return a.GetUser().GetName() != "jane", ""
}

func (allowAll) Rules(user.Info, string, admission.Cluster) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{}
}

type wires struct{}

func (wires) Do(kernel.ActorID, network.Call) {}

// sink is a client that keeps what it gets; what a test has seen is no part of the run.
type sink struct {
	answers []wire.Answer
	events  []wire.WatchEvent
}

func (c *sink) Handle(ev kernel.Event) {
	switch ev := ev.(type) {
	case wire.Answer:
		c.answers = append(c.answers, ev)
	case wire.WatchEvent:
		c.events = append(c.events, ev)
	}
}

type world struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	etcd  *etcd.Etcd
	api   *apiserver.Server
	me    *sink
}

func newWorld(edit ...func(*apiserver.Config)) *world { return newWorldOn(wires{}, edit...) }

func newWorldOn(net apiserver.Network, edit ...func(*apiserver.Config)) *world {
	w := &world{k: kernel.New(1), board: fault.NewBoard(), me: &sink{}}
	w.k.Attach("faults", w.board)
	w.log = trace.New(w.k)
	w.etcd = etcd.New(w.k, w.board, etcd.DefaultConfig())
	cfg := apiserver.DefaultConfig()
	cfg.Authenticator, cfg.Authorizer = allowAll{}, allowAll{}
	for _, e := range edit {
		e(&cfg)
	}
	w.api = apiserver.New(w.k, w.log, w.board, net, w.etcd, cfg)
	w.k.Register("me", w.me)
	w.api.Start()
	return w
}

// do sends a request and runs until its answer is there.
func (w *world) do(r wire.Request) wire.Answer {
	r.ReplyTo = "me"
	if r.Client == "" {
		r.Client = stage.Kubectl
	}
	if r.Credential.CommonName == "" {
		r.Credential.CommonName = "kubernetes-admin"
	}
	n := len(w.me.answers)
	w.k.Send(kernel.ActorID(stage.APIServer), 0, r)
	for len(w.me.answers) == n && w.k.Step() {
	}
	return w.me.answers[len(w.me.answers)-1]
}

func nginx(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}},
	}
}

func TestLifeOfAPod(t *testing.T) {
	w := newWorld()
	w.do(wire.Request{Verb: wire.Watch, Resource: kube.Pods, Tag: "pods"})
	a := w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: nginx("a")})
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	pod := a.Object.(*corev1.Pod)
	if pod.UID == "" || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || pod.Status.Phase != corev1.PodPending {
		t.Errorf("not defaulted and prepared: %+v", pod)
	}
	a = w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Subresource: "binding", Namespace: "default", Name: "a", Object: &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node01"}}})
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	got := w.do(wire.Request{Verb: wire.Get, Resource: kube.Pods, Namespace: "default", Name: "a"}).Object.(*corev1.Pod)
	if got.Spec.NodeName != "node01" {
		t.Errorf("node = %q", got.Spec.NodeName)
	}
	running := got.DeepCopy()
	running.Status.Phase = corev1.PodRunning
	a = w.do(wire.Request{Verb: wire.Patch, Resource: kube.Pods, Subresource: "status", Namespace: "default", Name: "a", Object: running})
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	a = w.do(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: "a"})
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	if g := a.Object.(*corev1.Pod).DeletionGracePeriodSeconds; g == nil || *g != 30 {
		t.Errorf("grace period = %v", g)
	}
	zero := int64(0)
	a = w.do(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: "a", Options: wire.Options{Delete: &metav1.DeleteOptions{GracePeriodSeconds: &zero}}})
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	a = w.do(wire.Request{Verb: wire.Get, Resource: kube.Pods, Namespace: "default", Name: "a"})
	if a.Err() == nil || a.Err().Error() != `pods "a" not found` {
		t.Errorf("err = %v", a.Err())
	}
	w.k.AdvanceTo(w.k.Now().Add(time.Second))
	var kinds []wire.EventType
	for _, e := range w.me.events {
		kinds = append(kinds, e.Type)
	}
	want := []wire.EventType{wire.Added, wire.Modified, wire.Modified, wire.Modified, wire.Modified, wire.Deleted}
	if len(kinds) != len(want) {
		t.Fatalf("events: %v", kinds)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Errorf("events: %v", kinds)
		}
	}
}

// TestRerunFromSnapshot goes back to the middle of a write and lets it happen again: the
// state must be the same to the bit, and the first run must not have left a mark on the
// snapshot.
func TestRerunFromSnapshot(t *testing.T) {
	for at := time.Duration(0); at < 5*time.Millisecond; at += 100 * time.Microsecond {
		w := newWorld()
		w.do(wire.Request{Verb: wire.Watch, Resource: kube.Pods})
		pod := nginx("")
		pod.GenerateName = "web-"
		w.k.Send(kernel.ActorID(stage.APIServer), 0, wire.Request{
			ReplyTo: "me", Client: stage.Kubectl, Credential: wire.Credential{CommonName: "me"},
			Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: pod,
		})
		end := w.k.Now().Add(time.Second)
		w.k.AdvanceTo(w.k.Now().Add(at))
		snap := w.k.Snapshot()
		before := snap.Hash()
		w.k.AdvanceTo(end)
		first := w.k.Snapshot()
		if snap.Hash() != before {
			t.Fatalf("after %s: going on changed the snapshot", at)
		}
		w.k.Restore(snap)
		w.k.AdvanceTo(end)
		again := w.k.Snapshot()
		for _, name := range first.StateNames() {
			if first.StateHash(name) != again.StateHash(name) {
				t.Errorf("after %s: %s differs on the second run", at, name)
			}
		}
	}
}

// BenchmarkPodWrites is what the API server alone costs for the writes of a Pod's life:
// create, bind, three status patches, delete, final delete.
func BenchmarkPodWrites(b *testing.B) {
	b.Run("bare", func(b *testing.B) { podWrites(b, newWorld()) })
	b.Run("plugins", func(b *testing.B) {
		w := newWorld(func(c *apiserver.Config) {
			p := admission.Default(kernel.New(1).Rand("admission"))
			c.Mutators, c.Validators = p.Mutators, p.Validators
			c.Authenticator, c.Authorizer = authn.New(), authz.New()
		})
		w.api.Preload(authz.Bootstrap()...)
		w.api.Preload(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})
		podWrites(b, w)
	})
}

func podWrites(b *testing.B, w *world) {
	w.do(wire.Request{Verb: wire.Watch, Resource: kube.Pods, Options: wire.Options{FieldSelector: "spec.nodeName=node01"}})
	send := func(r wire.Request) {
		r.ReplyTo, r.Client, r.Background = "me", "kubelet/node01", true
		r.Credential = wire.Credential{CommonName: "admin", Orgs: []string{"system:masters"}}
		if err := w.do(r).Err(); err != nil {
			b.Fatal(err)
		}
	}
	writes := 0
	b.ReportAllocs()
	for b.Loop() {
		w.me.answers, w.me.events = w.me.answers[:0], w.me.events[:0]
		send(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: nginx("a")})
		send(wire.Request{Verb: wire.Create, Resource: kube.Pods, Subresource: "binding", Namespace: "default", Name: "a", Object: &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node01"}}})
		obj, _ := w.api.Get(kube.Pods, "default", "a")
		for _, ip := range []string{"10.244.1.1", "10.244.1.2", "10.244.1.3"} {
			p := obj.(*corev1.Pod).DeepCopy()
			p.Status.Phase, p.Status.PodIP = corev1.PodRunning, ip
			p.Status.PodIPs = []corev1.PodIP{{IP: ip}}
			send(wire.Request{Verb: wire.Patch, Resource: kube.Pods, Subresource: "status", Namespace: "default", Name: "a", Object: p})
		}
		zero := int64(0)
		send(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: "a"})
		send(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: "a", Options: wire.Options{Delete: &metav1.DeleteOptions{GracePeriodSeconds: &zero}}})
		writes += 8
	}
	b.ReportMetric(float64(writes)/b.Elapsed().Seconds(), "writes/s")
}

// TestListThenWatch lists at every instant of a write under way and watches from there:
// the client hears of the object exactly once, whatever the interleaving.
func TestListThenWatch(t *testing.T) {
	for at := time.Duration(0); at < 6*time.Millisecond; at += 50 * time.Microsecond {
		w := newWorld()
		w.k.Send(kernel.ActorID(stage.APIServer), 0, wire.Request{
			Client: stage.Kubectl, Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: nginx("a"),
		})
		w.k.AdvanceTo(kernel.Time(at))
		list := w.do(wire.Request{Client: "kubelet/node01", Verb: wire.List, Resource: kube.Pods})
		w.do(wire.Request{Client: "kubelet/node01", Verb: wire.Watch, Resource: kube.Pods, Options: wire.Options{ResourceVersion: strconv.FormatInt(list.Revision, 10)}})
		w.k.AdvanceTo(kernel.Time(time.Second))
		if n := len(list.Items) + len(w.me.events); n != 1 {
			t.Errorf("listed %s into the write: heard of it %d times (%d listed)", at, n, len(list.Items))
		}
	}
}

// TestInitialEventsComeFirst begins a watch while Pods are being written.
func TestInitialEventsComeFirst(t *testing.T) {
	for at := time.Duration(0); at < 6*time.Millisecond; at += 50 * time.Microsecond {
		w := newWorld()
		for _, name := range []string{"a", "b", "c"} {
			w.k.Send(kernel.ActorID(stage.APIServer), 0, wire.Request{
				Client: stage.Kubectl, Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: nginx(name),
			})
		}
		w.k.AdvanceTo(kernel.Time(at))
		w.do(wire.Request{Client: "kubelet/node01", Verb: wire.Watch, Resource: kube.Pods})
		w.k.AdvanceTo(kernel.Time(time.Second))
		last := int64(0)
		for _, e := range w.me.events {
			if e.Revision <= last {
				t.Errorf("watched %s into the writes: revision %d after %d", at, e.Revision, last)
			}
			last = e.Revision
		}
		if len(w.me.events) != 3 {
			t.Errorf("watched %s into the writes: %d events", at, len(w.me.events))
		}
	}
}
