package kubelet

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/yaml"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/cri"
	"podwalk/engine/csi"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/trace"
)

// story is one node with a scripted runtime and a small API server.
type story struct {
	t     *testing.T
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	api   *fakeAPI
	rt    *fakeRuntime
	net   *fakeNet
	kl    *Kubelet
	out   strings.Builder
	quiet bool
}

func newStory(t *testing.T, change func(*Config)) *story {
	k := kernel.New(1)
	s := &story{t: t, k: k, log: trace.New(k), board: fault.NewBoard()}
	s.api = &fakeAPI{k: k, objects: map[string]kube.Object{}, requests: map[string]int{}, lines: s.line}
	s.rt = &fakeRuntime{
		k: k, images: map[string]cri.ImageInfo{}, pullErr: map[string]string{}, logins: map[string]string{}, startErr: map[string]string{},
		exits: map[string]exit{}, stops: map[string]exit{}, execs: map[string]cri.Response{}, running: map[string]*fakeContainer{}, logs: map[string][]cri.LogLine{},
	}
	s.net = &fakeNet{k: k, answers: map[string]network.Result{}, listening: map[string]bool{}}
	k.Register(network.Self, s.net)
	k.Register("kube-apiserver", s.api)
	k.Register("containerd/node01", s.rt)
	drivers := csi.DefaultConfig()
	drivers.Node = "node01"
	csi.New(k, drivers)
	cfg := DefaultConfig()
	cfg.CSIDrivers = drivers.Drivers
	cfg.Node, cfg.IP, cfg.PodCIDR, cfg.BackOffJitter = "node01", "172.30.0.11", "10.244.1.0/24", 0
	if change != nil {
		change(&cfg)
	}
	c := client.New(k, kubeletActor, "kubelet/node01", wire.Credential{CommonName: "system:node:node01", Orgs: []string{"system:nodes"}})
	s.kl = New(k, s.log, s.board, c, s.net, cfg)
	s.kl.Phase = 300 * time.Millisecond
	s.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: default}, data: {ca.crt: CA}}`)
	s.kl.Start()
	k.AdvanceTo(kernel.Time(time.Second))
	return s
}

func (s *story) line(format string, args ...any) {
	if !s.quiet {
		fmt.Fprintf(&s.out, "%8.3f %s\n", time.Duration(s.k.Now()).Seconds(), strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// apply puts a manifest into the API as if somebody had bound it to the node.
func (s *story) apply(manifest string) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(manifest), &meta); err != nil {
		s.t.Fatal(err)
	}
	row, ok := kube.ByKind(meta.GroupVersionKind())
	if !ok {
		s.t.Fatalf("unknown kind %v", meta)
	}
	obj := row.New()
	if err := yaml.UnmarshalStrict([]byte(manifest), obj); err != nil {
		s.t.Fatal(err)
	}
	if obj.GetNamespace() == "" && row.Namespaced {
		obj.SetNamespace("default")
	}
	if p, ok := obj.(*corev1.Pod); ok {
		corev1defaults.SetObjectDefaults_Pod(p)
		p.Spec.NodeName, p.Generation = "node01", 1
		p.Status.Phase = corev1.PodPending
		p.CreationTimestamp = metav1.NewTime(s.k.Now().Wall())
		p.UID = types.UID("uid-of-" + p.Name)
	}
	_, had := s.api.objects[s.api.key(row.Resource.Resource, obj.GetNamespace(), obj.GetName())]
	t := wire.Added
	if had {
		t = wire.Modified
	}
	s.api.put(row.Resource.Resource, obj, t)
}

func (s *story) pod(name string) *corev1.Pod {
	p, _ := s.api.objects[s.api.key("pods", "default", name)].(*corev1.Pod)
	return p
}

func (s *story) run(d time.Duration) string {
	s.k.AdvanceTo(s.k.Now().Add(d))
	if err := s.k.Err(); err != nil {
		s.t.Fatal(err)
	}
	out := s.out.String()
	s.out.Reset()
	return out
}

// TestStories plays the scripts of testdata.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if s == nil {
				s = newStory(t, nil)
				s.out.Reset()
			}
			s.t = t
			return s.command(d)
		})
	})
}

func (s *story) command(d *datadriven.TestData) string {
	arg := func(name string) string {
		for _, a := range d.CmdArgs {
			if a.Key == name {
				if len(a.Vals) == 0 {
					return ""
				}
				return a.Vals[0]
			}
		}
		return ""
	}
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "apply":
		for _, doc := range strings.Split(d.Input, "\n---\n") {
			s.apply(doc)
		}
	case "run": // run 5s
		dur, err := time.ParseDuration(first)
		if err != nil {
			s.t.Fatal(err)
		}
		return s.run(dur)
	case "delete": // delete NAME grace=30
		grace, _ := strconv.ParseInt(arg("grace"), 10, 64)
		s.api.delete("default", first, grace)
	case "edit": // edit NAME image=REF
		p := s.pod(first).DeepCopy()
		p.Spec.Containers[0].Image = arg("image")
		p.Generation++
		s.api.put("pods", p, wire.Modified)
	case "present": // an image that is on the node
		for _, line := range strings.Fields(d.Input) {
			s.rt.images[line] = cri.ImageInfo{Ref: "docker.io/library/" + line, ID: "docker.io/library/" + strings.Split(line, ":")[0] + "@sha256:1", SizeBytes: 1148356, User: arg("user")}
		}
	case "pull-error": // pull-error IMAGE unless=USER:PASSWORD
		s.rt.pullErr[first], s.rt.logins[first] = d.Input, arg("unless")
	case "sandbox-error":
		s.rt.sandboxErr = d.Input
	case "start-error":
		s.rt.startErr[first] = d.Input
	case "exits": // exits CONTAINER after=2s code=1; exits CONTAINER never
		delete(s.rt.exits, first)
		if arg("after") != "" {
			s.rt.exits[first] = parseExit(arg)
		}
	case "on-term":
		s.rt.stops[first] = parseExit(arg)
	case "network-error":
		s.rt.networkErr = d.Input
	case "answers": // answers ADDRESS code=200
		code, _ := strconv.Atoi(arg("code"))
		s.net.answers[first] = network.Result{Code: code}
	case "exec": // exec WORD code=1: what a command line that begins with WORD ends with
		code, _ := strconv.Atoi(arg("code"))
		s.rt.execs[first] = cri.Response{ExitCode: int32(code), Stderr: []byte(d.Input)}
	case "fault":
		if err := s.board.Set(fault.Point(first), arg("value")); err != nil {
			s.t.Fatal(err)
		}
	case "repair":
		s.board.Clear(fault.Point(first))
	case "status":
		p := s.pod(first)
		if p == nil {
			return "gone\n"
		}
		b, _ := yaml.Marshal(p.Status)
		return string(b)
	case "node":
		n := s.api.objects[s.api.key("nodes", "", "node01")].(*corev1.Node)
		c := readyOf(&n.Status)
		return fmt.Sprintf("Ready=%s %s: %s\n", c.Status, c.Reason, c.Message)
	case "hops":
		return s.hops()
	case "call": // call PATH: what the kubelet's own server answers
		if !s.net.listening["172.30.0.11:10250"] {
			return "connection refused\n"
		}
		s.net.got = "(no answer)\n"
		s.k.Send(kubeletActor, 0, network.Request{ID: 1, Call: network.Call{Path: d.Input}})
		s.out.WriteString("")
		s.run(200 * time.Millisecond)
		return s.net.got
	case "created":
		c := s.rt.created[len(s.rt.created)-1]
		b, _ := yaml.Marshal(map[string]any{"command": c.Command, "args": c.Args, "env": c.Env, "mounts": c.Mounts, "user": c.User})
		return string(b)
	default:
		s.t.Fatalf("unknown command %s", d.Cmd)
	}
	return ""
}

func parseExit(arg func(string) string) exit {
	after, _ := time.ParseDuration(arg("after"))
	code, _ := strconv.ParseInt(arg("code"), 10, 32)
	return exit{after, int32(code)}
}

func (s *story) hops() string {
	var b strings.Builder
	for _, h := range s.log.Hops() {
		fmt.Fprintf(&b, "%-2s %-14s %s→%s %s %s %s %s\n", h.Step(), h.Stage, h.From, h.To, h.Verb, h.Outcome, h.Reason, h.Message)
	}
	return b.String()
}

// TestTimeTravel takes a snapshot in the middle of everything, goes on, goes back, and
// requires that the second future equals the first.
func TestTimeTravel(t *testing.T) {
	s := newStory(t, nil)
	s.rt.images["busybox:1.36"] = cri.ImageInfo{ID: "busybox@sha256:1"}
	s.rt.pullErr["nginx:none"] = "rpc error: code = NotFound desc = not found"
	s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: "busybox:1.36", readinessProbe: {tcpSocket: {port: 80}}}]}}`)
	s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: b, image: "nginx:none"}]}}`)
	s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: [{name: c, image: "busybox:1.36", volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: none}}]}}`)
	for _, at := range []time.Duration{7 * time.Millisecond, 160 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
		s.run(at)
		before := s.kl.Snapshot()
		hash := kernel.Hash(before)
		s.kl.Restore(before)
		if got := kernel.Hash(s.kl.Snapshot()); got != hash {
			t.Errorf("after %v: restoring changed the state", at)
		}
		s.run(time.Second)
		if kernel.Hash(before) != hash {
			t.Errorf("after %v: what came later changed an earlier snapshot", at)
		}
	}
}

// TestStatic runs a manifest of the node and follows its mirror.
func TestStatic(t *testing.T) {
	s := newStory(t, func(c *Config) {
		c.StaticPods = []*corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "kube-system", Labels: map[string]string{"tier": "node"}},
			Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "app", Image: "nginx:1.27"}}},
		}}
	})
	s.run(4 * time.Second)
	key := s.api.key("pods", "kube-system", "web-node01")
	m, _ := s.api.objects[key].(*corev1.Pod)
	if m == nil || m.Status.Phase != corev1.PodRunning || m.Status.PodIP != "172.30.0.11" {
		t.Fatalf("the mirror is %+v", m)
	}
	if m.Annotations[corev1.MirrorPodAnnotationKey] == "" || len(m.OwnerReferences) != 1 || m.OwnerReferences[0].Kind != "Node" {
		t.Errorf("the mirror has annotations %v and owners %v", m.Annotations, m.OwnerReferences)
	}
	if len(s.log.Hops()) != 0 {
		t.Errorf("a Pod of kube-system got into the story: %v", s.log.Hops())
	}
	running := len(s.rt.running)
	s.api.put("pods", deleting(m), wire.Modified)
	s.run(3 * time.Minute)
	again, _ := s.api.objects[key].(*corev1.Pod)
	if again == nil || again.DeletionTimestamp != nil || again.Status.Phase != corev1.PodRunning {
		t.Errorf("the mirror has not come back: %+v", again)
	}
	if len(s.rt.running) != running {
		t.Error("deleting the mirror stopped the container")
	}
}

func deleting(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	now, grace := metav1.Now(), int64(30)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	return p
}

// TestKwok: a node that is played by kwok reports what recording a01 shows.
func TestKwok(t *testing.T) {
	s := newStory(t, func(c *Config) { c.Kwok = true })
	s.apply(`{apiVersion: v1, kind: Pod, metadata: {name: nginx}, spec: {containers: [{name: nginx, image: nginx}]}}`)
	out := s.run(time.Second)
	if !strings.Contains(out, "phase Running, nginx Running, Ready=True, 10.244.1.") {
		t.Errorf("got\n%s", out)
	}
	p := s.pod("nginx")
	if len(p.Status.Conditions) != 3 || p.Status.ContainerStatuses[0].ContainerID != "" || p.Status.ContainerStatuses[0].Image != "nginx" {
		t.Errorf("the status is %+v", p.Status)
	}
	s.api.delete("default", "nginx", 30)
	s.run(time.Second)
	if s.pod("nginx") != nil {
		t.Error("the Pod is still there")
	}
}

// TestIdle: a node with nothing to do costs a handful of events every ten seconds.
func TestIdle(t *testing.T) {
	s := newStory(t, nil)
	s.run(30 * time.Second)
	before := s.k.Steps()
	s.run(100 * time.Second)
	if n := (s.k.Steps() - before) / 10; n > 7 {
		t.Errorf("%d events every 10 s", n)
	}
}
