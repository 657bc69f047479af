package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"podwalk/engine/apiserver"
	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/authz"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/cri"
	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/scheduler"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// cluster is a kubelet with a scripted runtime against the real API server and scheduler.
type cluster struct {
	t   *testing.T
	k   *kernel.Kernel
	log *trace.Log
	api *apiserver.Server
	rt  *fakeRuntime
	kl  *Kubelet
	adm *client.Client
	brd *fault.Board
	got []wire.Answer
}

func (c *cluster) Handle(ev kernel.Event) {
	if a, ok := ev.(wire.Answer); ok {
		c.got = append(c.got, a)
	}
}

func newCluster(t *testing.T, change func(*Config)) *cluster {
	k := kernel.New(7)
	c := &cluster{t: t, k: k, log: trace.New(k)}
	board := fault.NewBoard()
	k.Attach("faults", board)
	c.brd = board
	net := &fakeNet{k: k, answers: map[string]network.Result{}, listening: map[string]bool{}}
	k.Register(network.Self, net)
	store := etcd.New(k, board, etcd.DefaultConfig())
	cfg := apiserver.DefaultConfig()
	auth := authn.New()
	cfg.Authenticator, cfg.Tokens, cfg.Authorizer = auth, auth, authz.New()
	plugins := admission.Default(k.Rand("names"))
	cfg.Mutators, cfg.Validators = plugins.Mutators, plugins.Validators
	c.api = apiserver.New(k, c.log, board, net, store, cfg)
	c.api.Preload(authz.Bootstrap()...)
	c.api.Preload(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": "CA"}},
	)
	c.rt = &fakeRuntime{
		k: k, images: map[string]cri.ImageInfo{}, pullErr: map[string]string{}, logins: map[string]string{}, startErr: map[string]string{},
		exits: map[string]exit{}, stops: map[string]exit{}, execs: map[string]cri.Response{}, running: map[string]*fakeContainer{}, logs: map[string][]cri.LogLine{},
	}
	k.Register("containerd/node01", c.rt)
	k.Register("kubectl", c)
	c.adm = client.New(k, "kubectl", stage.Kubectl, wire.Credential{CommonName: "kubernetes-admin", Orgs: []string{"system:masters"}})
	sc := client.New(k, scheduler.ID, stage.Scheduler, wire.Credential{CommonName: "system:kube-scheduler"})
	sched := scheduler.New(k, c.log, board, sc, scheduler.DefaultConfig())
	kcfg := DefaultConfig()
	kcfg.Node, kcfg.IP, kcfg.PodCIDR = "node01", "172.30.0.11", "10.244.1.0/24"
	if change != nil {
		change(&kcfg)
	}
	c.kl = New(k, c.log, board, client.New(k, kubeletActor, "kubelet/node01", wire.Credential{CommonName: "system:node:node01", Orgs: []string{"system:nodes"}}), net, kcfg)
	store.Start()
	c.api.Start()
	sched.Start()
	c.kl.Start()
	c.run(2 * time.Second)
	// The node lifecycle controller is not here: it takes the taint of a new node off.
	n, ok := c.api.Get(kube.Nodes, "", "node01")
	if !ok {
		t.Fatal("the node has not registered")
	}
	node := n.DeepCopyObject().(*corev1.Node)
	node.Spec.Taints = nil
	c.adm.Update(node, nil)
	c.run(time.Second)
	return c
}

func (c *cluster) run(d time.Duration) {
	c.k.AdvanceTo(c.k.Now().Add(d))
	if err := c.k.Err(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) create(manifest string) {
	obj := runtime.Object(&corev1.Pod{})
	if err := yaml.UnmarshalStrict([]byte(manifest), obj); err != nil {
		c.t.Fatal(err)
	}
	obj.(*corev1.Pod).Namespace = "default"
	obj.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(""))
	obj.(*corev1.Pod).TypeMeta = metav1.TypeMeta{}
	c.adm.Create(obj, "create")
	c.run(50 * time.Millisecond)
	for _, a := range c.got {
		if err := a.Err(); err != nil {
			c.t.Fatal(err)
		}
	}
	c.got = nil
}

// TestCluster is the happy path of recording d01 with everything real but the runtime.
func TestCluster(t *testing.T) {
	c := newCluster(t, nil)
	first := c.log.Len()
	c.create(`{apiVersion: v1, kind: Pod, metadata: {name: nginx}, spec: {containers: [{name: nginx, image: nginx}]}}`)
	c.run(3 * time.Second)
	o, _ := c.api.Get(kube.Pods, "default", "nginx")
	pod, _ := o.(*corev1.Pod)
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		for _, h := range c.log.Hops()[first:] {
			t.Logf("%s %s %s %s", h.Stage, h.Verb, h.Reason, h.Message)
		}
		t.Fatal("the Pod does not run")
	}
	var order []string
	for _, cond := range pod.Status.Conditions {
		order = append(order, string(cond.Type))
	}
	if got := strings.Join(order, " "); got != "PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled" {
		t.Errorf("conditions: %s", got)
	}
	hops := c.log.Hops()[first:]
	if testing.Verbose() {
		for _, h := range hops {
			t.Logf("%8.3f %-2s %-20s %s→%s %s %s %s", time.Duration(h.At).Seconds(), h.Step(), h.Stage, h.From, h.To, h.Verb, h.Reason, h.Message)
		}
	}
	if last := hops[len(hops)-1]; last.Stage != stage.Status || !strings.Contains(last.Message, "Ready=True") {
		t.Errorf("the last hop is %+v", last)
	}
	if len(hops) > 70 {
		t.Errorf("%d hops for one Pod", len(hops))
	}
	for _, h := range append(c.log.Hops(), c.log.Background()...) {
		if h.Bad() {
			t.Errorf("%s %s %s %s: %s %s", h.Stage, h.From, h.Verb, h.Object, h.Reason, h.Message)
		}
	}
	var chain []string
	for _, h := range c.log.Why(hops[len(hops)-1].Seq) {
		chain = append(chain, fmt.Sprintf("%s/%s", h.Stage, h.Verb))
	}
	if len(chain) < 10 {
		t.Errorf("the chain of causes is short: %v", chain)
	}
	c.adm.Delete(kube.Pods, "default", "nginx", nil, "delete")
	c.run(4 * time.Second)
	if _, still := c.api.Get(kube.Pods, "default", "nginx"); still {
		t.Error("the Pod is still there")
	}
	if _, ok := c.api.Get(kube.Leases, "kube-node-lease", "node01"); !ok {
		t.Error("there is no Lease")
	}
}

// TestAPIServerDown: what runs goes on without the API server, down to the restart of a
// container (h05); the status is made up for when it is back.
func TestAPIServerDown(t *testing.T) {
	c := newCluster(t, nil)
	c.create(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: nginx}]}}`)
	c.run(3 * time.Second)
	if err := c.brd.Set(fault.APIServerStopped, ""); err != nil {
		t.Fatal(err)
	}
	c.run(5 * time.Second)
	for id := range c.rt.running {
		c.rt.exit(id, 1, 0)
	}
	c.run(30 * time.Second)
	if len(c.rt.running) != 1 {
		t.Errorf("%d containers run without the API server", len(c.rt.running))
	}
	c.brd.Clear(fault.APIServerStopped)
	c.run(30 * time.Second)
	o, _ := c.api.Get(kube.Pods, "default", "web")
	st := o.(*corev1.Pod).Status.ContainerStatuses[0]
	if st.RestartCount != 1 || !st.Ready {
		t.Errorf("afterwards the status says %+v", st)
	}
}

// busy is a run in which every part of the kubelet has something to do.
func busy(t *testing.T) *cluster {
	c := newCluster(t, nil)
	c.rt.pullErr["nginx:none"] = "rpc error: code = NotFound desc = not found"
	c.rt.exits["crash"] = exit{after: 300 * time.Millisecond, code: 1}
	for i, spec := range []string{
		`containers: [{name: app, image: nginx, readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}}]`,
		`containers: [{name: app, image: "nginx:none"}]`,
		`containers: [{name: crash, image: nginx}]`,
		`containers: [{name: app, image: nginx, env: [{name: A, valueFrom: {configMapKeyRef: {name: none, key: a}}}]}]`,
		`{initContainers: [{name: crash, image: nginx}], containers: [{name: app, image: nginx, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: none}}]}`,
	} {
		if !strings.HasPrefix(spec, "{") {
			spec = "{" + spec + "}"
		}
		c.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p%d}, spec: %s}`, i, spec))
	}
	c.adm.Delete(kube.Pods, "default", "p0", nil, "delete")
	return c
}

// TestTimeTravelOfCluster goes back to snapshots taken all along a busy run, and must
// come to the same end from each.
func TestTimeTravelOfCluster(t *testing.T) {
	c := busy(t)
	k := c.k
	end := k.Now().Add(20 * time.Second)
	var snaps []*kernel.Snapshot
	for i := 0; ; i++ {
		if at, ok := k.Next(); !ok || at > end {
			break
		}
		if i%41 == 0 {
			snaps = append(snaps, k.Snapshot())
		}
		k.Step()
	}
	k.AdvanceTo(end)
	last := k.Snapshot()
	want := last.Hash()
	if len(snaps) < 5 {
		t.Fatalf("only %d snapshots", len(snaps))
	}
	for i := 0; i < len(snaps); i += 1 + len(snaps)/6 {
		k.Restore(snaps[i])
		k.AdvanceTo(end)
		again := k.Snapshot()
		if again.Hash() == want {
			continue
		}
		for _, name := range last.StateNames() {
			if again.StateHash(name) != last.StateHash(name) {
				t.Errorf("%s differs", name)
			}
		}
		t.Fatalf("snapshot %d at %v: another end", i, time.Duration(snaps[i].At()))
	}
}

// TestSameRun runs twice and compares.
func TestSameRun(t *testing.T) {
	var hash [2]uint64
	for i := range hash {
		c := busy(t)
		c.run(30 * time.Second)
		hash[i] = c.k.Snapshot().Hash()
	}
	if hash[0] != hash[1] {
		t.Error("two runs with the same seed differ")
	}
}

// BenchmarkPod is one Pod's life on a cluster: created, bound, Running, deleted, gone.
func BenchmarkPod(b *testing.B) {
	c := newCluster(nil, nil)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		name := fmt.Sprintf("p%d", i)
		c.adm.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:1.27"}}}}, nil)
		c.run(2 * time.Second)
		c.adm.Delete(kube.Pods, "default", name, nil, nil)
		c.run(3 * time.Second)
		c.got = c.got[:0]
	}
}

// TestMirrorInCluster: admission lets the node register, and make the mirrors of its
// static Pods.
func TestMirrorInCluster(t *testing.T) {
	c := newCluster(t, func(cfg *Config) {
		cfg.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		cfg.StaticPods = []*corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "etcd", Namespace: "kube-system"},
			Spec: corev1.PodSpec{
				HostNetwork: true, PriorityClassName: "system-node-critical",
				Containers: []corev1.Container{{Name: "etcd", Image: "registry.k8s.io/etcd:3.7.0-0", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/etcd"}}}},
				Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/etcd"}}}},
			},
		}}
	})
	c.run(5 * time.Second)
	o, ok := c.api.Get(kube.Pods, "kube-system", "etcd-node01")
	if !ok {
		for _, h := range c.log.Background() {
			if h.Bad() {
				t.Log(h.Verb, h.Object, h.Reason, h.Message)
			}
		}
		t.Fatal("there is no mirror")
	}
	m := o.(*corev1.Pod)
	if m.Status.Phase != corev1.PodRunning || m.Status.PodIP != "172.30.0.11" || len(m.Status.Conditions) != 5 {
		t.Errorf("the mirror's status is %+v", m.Status)
	}
}
