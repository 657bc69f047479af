package kubeproxy_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"podwalk/engine/apiserver"
	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/authz"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/kubeproxy"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

const (
	node   = "node01"
	nodeIP = "172.30.0.3"
	pod    = kernel.ActorID("pod")
)

var self = kernel.ActorID(stage.On(stage.KubeProxy, node))

// cluster is a proxy at an API server, and somebody who changes what it watches.
type cluster struct {
	t     *testing.T
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	net   *network.Net
	proxy *kubeproxy.Proxy
	admin *client.Client
	said  []wire.Answer
	have  map[string]bool // what exists, so that a change is an update
	told  int             // hops that were printed
	kept  *kernel.Snapshot
}

// Handle implements kernel.Actor: the admin hears the API server's answers.
func (c *cluster) Handle(ev kernel.Event) {
	if a, ok := ev.(wire.Answer); ok {
		c.said = append(c.said, a)
	}
}

type nobody struct{}

func (nobody) Handle(kernel.Event) {}

func start(t *testing.T) *cluster {
	k := kernel.New(1)
	c := &cluster{t: t, k: k, log: trace.New(k), board: fault.NewBoard(), have: map[string]bool{}}
	k.Attach("faults", c.board)
	c.net = network.New(k, c.log, c.board)
	cfg := apiserver.DefaultConfig()
	cfg.Authenticator, cfg.Authorizer = authn.New(), authz.New()
	api := apiserver.New(k, c.log, c.board, c.net, etcd.New(k, c.board, etcd.DefaultConfig()), cfg)
	api.Preload(authz.Bootstrap()...)
	api.Preload(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "0"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}})
	api.Start()
	masters := wire.Credential{CommonName: "admin", Orgs: []string{user.SystemPrivilegedGroup}}
	c.admin = client.New(k, "admin", stage.Kubectl, masters)
	c.log.Begin()
	k.Register("admin", c)
	k.Register(pod, nobody{})
	pc := kubeproxy.DefaultConfig()
	pc.Node, pc.IP = node, nodeIP
	c.proxy = kubeproxy.New(k, c.log, c.board,
		client.New(k, self, stage.Component(self), wire.Credential{CommonName: "system:kube-proxy", Orgs: []string{user.SystemPrivilegedGroup}}), c.net, pc)
	c.proxy.Start()
	c.advance(time.Second)
	return c
}

func (c *cluster) advance(d time.Duration) { c.k.AdvanceTo(c.k.Now().Add(d)) }

// apply writes an object, as kubectl apply would, and gives the proxy a second.
func (c *cluster) apply(o runtime.Object) {
	key := fmt.Sprintf("%T", o)
	if c.have[key] {
		c.admin.Update(o, nil)
	} else {
		c.admin.Create(o, nil)
	}
	c.have[key] = true
	c.settle()
}

func (c *cluster) settle() {
	c.t.Helper()
	c.said = nil
	c.advance(time.Second)
	if len(c.said) != 1 || c.said[0].Err() != nil {
		c.t.Fatalf("the API server said %+v", c.said)
	}
}

func (c *cluster) service(d *datadriven.TestData) {
	ip, nodePort := "10.96.0.17", 0
	d.MaybeScanArgs(c.t, "ip", &ip)
	d.MaybeScanArgs(c.t, "nodeport", &nodePort)
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			ClusterIP: ip, Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: int32(nodePort), Protocol: corev1.ProtocolTCP}},
		},
	}
	if nodePort != 0 {
		s.Spec.Type = corev1.ServiceTypeNodePort
	}
	c.apply(s)
}

// slice has these addresses, each ready, unready or ending.
func slice(of map[string]string) *discoveryv1.EndpointSlice {
	name, port, tcp := "http", int32(8080), corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
	for _, a := range slices.Sorted(maps.Keys(of)) {
		ready, serving, ending := of[a] == "ready", of[a] != "unready", of[a] == "ending"
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &ending},
		})
	}
	return s
}

// route is where a hundred connections to an address go.
func (c *cluster) route(to string) string {
	seen := map[string]int{}
	for range 100 {
		switch backend, ok, refused := c.proxy.Route(to); {
		case !ok:
			seen["no Service's address"]++
		case refused:
			seen["refused"]++
		default:
			seen[backend]++
		}
	}
	var out []string
	for where := range seen {
		out = append(out, where)
	}
	slices.Sort(out)
	return strings.Join(out, "\n") + "\n"
}

// hops are what the proxy told since it was asked last.
func (c *cluster) hops() string {
	var b strings.Builder
	all := c.log.Hops()
	for _, h := range all[c.told:] {
		if h.Stage == stage.Routing {
			fmt.Fprintf(&b, "%s %s %s %s\n", h.From, h.Verb, h.Outcome, h.Message)
		}
	}
	c.told = len(all)
	return b.String()
}

func (c *cluster) do(d *datadriven.TestData) string {
	switch d.Cmd {
	case "service":
		c.service(d)
	case "endpoints":
		of := map[string]string{}
		for _, a := range d.CmdArgs {
			of[a.Key] = a.Vals[0]
		}
		c.apply(slice(of))
	case "delete":
		o := map[string]runtime.Object{"service": &corev1.Service{}, "endpoints": &discoveryv1.EndpointSlice{}}[d.CmdArgs[0].Key]
		delete(c.have, fmt.Sprintf("%T", o))
		name := map[string]string{"service": "web", "endpoints": "web-1"}[d.CmdArgs[0].Key]
		c.admin.Delete(kube.ResourceOf(o), "default", name, &metav1.DeleteOptions{}, nil)
		c.settle()
	case "listen", "unlisten":
		for _, a := range d.CmdArgs {
			if d.Cmd == "listen" {
				c.net.Listen(a.Key, pod)
			} else {
				c.net.Unlisten(a.Key)
			}
		}
	case "route":
		return c.route(d.CmdArgs[0].Key)
	case "rules":
		return cmp.Or(strings.Join(c.proxy.Text("default/web"), "\n"), "(none)") + "\n"
	case "reaches":
		return strconv.FormatBool(c.proxy.Reaches("default", d.CmdArgs[0].Key)) + "\n"
	case "hops":
		return c.hops()
	case "stop", "start":
		c.board.Clear(fault.KubeProxyStopped)
		if d.Cmd == "stop" {
			if err := c.board.Set(fault.KubeProxyStopped, node); err != nil {
				c.t.Fatal(err)
			}
		}
		c.k.Send(self, 0, fault.Changed{Point: fault.KubeProxyStopped})
		c.advance(time.Second)
	case "keep":
		c.kept = c.k.Snapshot()
	case "back":
		c.k.Restore(c.kept)
	default:
		c.t.Fatalf("%s: no such command %q", d.Pos, d.Cmd)
	}
	return ""
}

// TestStories: what a Service's address leads to, and what the node's rules say.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		c := start(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c.t = t
			return c.do(d)
		})
	})
}

// TestDeterminism: two runs of the same changes are in the same state, and one that went
// back goes on as it did before.
func TestDeterminism(t *testing.T) {
	play := func(c *cluster) uint64 {
		c.apply(slice(map[string]string{"10.244.1.2": "ready", "10.244.1.3": "ready"}))
		c.route("10.96.0.17:80")
		return c.k.Snapshot().Hash()
	}
	var hashes []uint64
	for range 2 {
		c := start(t)
		c.service(&datadriven.TestData{})
		at := c.k.Snapshot()
		hashes = append(hashes, play(c))
		if c.k.Snapshot().StateHash(string(self)) == at.StateHash(string(self)) {
			t.Error("endpoints leave the proxy as it was")
		}
		for range 2 {
			c.k.Restore(at)
			if c.k.Snapshot().Hash() != at.Hash() {
				t.Fatal("going back leaves another state")
			}
			delete(c.have, fmt.Sprintf("%T", &discoveryv1.EndpointSlice{}))
			hashes = append(hashes, play(c))
		}
	}
	for _, h := range hashes[1:] {
		if h != hashes[0] {
			t.Fatalf("runs differ: %v", hashes)
		}
	}
}

// TestStoppedMidway: whenever the process is stopped, also between hearing of a change and
// writing it, it has written everything soon after it is up again.
func TestStoppedMidway(t *testing.T) {
	c := start(t)
	c.service(&datadriven.TestData{})
	at := c.k.Snapshot()
	for ms := range 40 {
		c.k.Restore(at)
		delete(c.have, fmt.Sprintf("%T", &discoveryv1.EndpointSlice{}))
		c.admin.Create(slice(map[string]string{"10.244.1.2": "ready"}), nil)
		c.advance(time.Duration(ms) * time.Millisecond)
		c.do(&datadriven.TestData{Cmd: "stop"})
		c.do(&datadriven.TestData{Cmd: "start"})
		if got := c.route("10.96.0.17:80"); got != "10.244.1.2:8080\n" {
			t.Errorf("stopped %d ms after the change: %s", ms, got)
		}
	}
}
