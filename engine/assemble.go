package engine

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podwalk/assets"
	"podwalk/engine/apiserver"
	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/authz"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/cni"
	"podwalk/engine/controllers"
	"podwalk/engine/cri"
	"podwalk/engine/csi"
	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/kubelet"
	"podwalk/engine/kubeproxy"
	"podwalk/engine/network"
	"podwalk/engine/registry"
	"podwalk/engine/scenario"
	"podwalk/engine/scheduler"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// parts are the components of one cluster.
type parts struct {
	cfg     config
	etcd    *etcd.Etcd
	api     *apiserver.Server
	net     *network.Net
	proxies map[string]*kubeproxy.Proxy
	ranges  []nodeRange
	starts  []func()
	actors  []kernel.ActorID // of what runs on nodes

	controllers []kernel.ActorID
}

// config holds what is no component's own.
type config struct {
	// ClientLatency is how long a request takes from outside to the API server.
	ClientLatency time.Duration
}

// controlPlaneIP is the address of the API server's host.
const controlPlaneIP = "172.30.0.2"

// assemble makes the components of a cluster and wires them up. Nothing runs yet.
func assemble(c scenario.Cluster) (*Engine, error) {
	seed := c.Seed
	if seed == 0 {
		seed = 1
	}
	e := &Engine{cluster: c, k: kernel.New(seed), board: fault.NewBoard()}
	e.log = trace.New(e.k)
	e.k.Attach("faults", e.board)
	e.k.Attach("story", &e.story)
	e.inbox = newInbox(e)
	e.k.Register(outside, e.inbox)
	p := &e.parts
	p.net = network.New(e.k, e.log, e.board)
	p.proxies = map[string]*kubeproxy.Proxy{}
	p.cfg = config{ClientLatency: time.Millisecond}
	e.controlPlane()
	p.net.SetNames(e.serviceIP)
	p.net.SetNodeOf(e.nodeOf)
	for i, n := range c.Nodes {
		if err := e.node(i, n); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// controlPlane makes etcd, the API server, the scheduler and the controllers.
func (e *Engine) controlPlane() {
	p := &e.parts
	p.etcd = etcd.New(e.k, e.board, etcd.DefaultConfig())
	cfg := apiserver.DefaultConfig()
	tokens := authn.New()
	cfg.Authenticator, cfg.Tokens = tokens, tokens
	cfg.Authorizer = authz.New()
	plugins := admission.Default(e.k.Rand("admission"))
	cfg.Mutators, cfg.Validators = plugins.Mutators, plugins.Validators
	p.api = apiserver.New(e.k, e.log, e.board, p.net, p.etcd, cfg)

	sched := scheduler.New(e.k, e.log, e.board, e.client(stage.Scheduler, scheduler.ID, "system:kube-scheduler"), scheduler.DefaultConfig())
	manager := controllers.New(e.k, e.log, e.board, controllers.Identified(e.k), controllers.DefaultConfig())
	p.controllers = manager.Actors()
	p.starts = append(p.starts, p.api.Start, sched.Start, manager.Start)
}

func (e *Engine) client(component stage.Component, actor kernel.ActorID, user string, orgs ...string) *client.Client {
	return client.New(e.k, actor, component, wire.Credential{CommonName: user, Orgs: orgs})
}

// serviceIP answers for names, in CoreDNS's place.
func (e *Engine) serviceIP(namespace, service string) (string, bool) {
	o, ok := e.Get(kube.Services, namespace, service)
	if !ok {
		return "", false
	}
	ip := o.(*corev1.Service).Spec.ClusterIP
	return ip, ip != "" && ip != corev1.ClusterIPNone
}

// nodeOf returns the address of the node that a Pod's address belongs to.
func (e *Engine) nodeOf(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return ip
	}
	for _, n := range e.parts.ranges {
		if n.cidr.Contains(addr) {
			return n.ip
		}
	}
	return ip
}

// nodeRange is which Pod addresses a node has.
type nodeRange struct {
	cidr netip.Prefix
	ip   string
}

// node makes a machine: its runtime, network plugin, kubelet and kube-proxy.
func (e *Engine) node(i int, n scenario.Node) error {
	p := &e.parts
	cfg := kubelet.DefaultConfig()
	cfg.Node, cfg.IP, cfg.Kwok = n.Name, nodeIP(i, n), n.Kwok
	cfg.PodCIDR = fmt.Sprintf("10.%d.%d.0/24", 244+i/250, i%250)
	cfg.Labels, cfg.Taints = map[string]string{}, n.Taints
	if !n.Kwok {
		cfg.CSIDrivers = []string{csi.LocalPath}
	}
	for k, v := range n.Labels {
		if admission.KubeletMaySet(k) {
			cfg.Labels[k] = v
		}
	}
	size(&cfg, n)
	if n.ControlPlane {
		cfg.Taints = append(cfg.Taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
		if !e.cluster.Bare && !cfg.Kwok {
			static, err := staticPods()
			if err != nil {
				return err
			}
			cfg.StaticPods = static
		}
	}
	cl := e.client(stage.On(stage.Kubelet, n.Name), kernel.ActorID(stage.On(stage.Kubelet, n.Name)), "system:node:"+n.Name, "system:nodes")
	if !n.Kwok {
		e.machine(i, n, cfg)
	}
	k := kubelet.New(e.k, e.log, e.board, cl, p.net, cfg)
	p.actors = append(p.actors, kernel.ActorID(stage.On(stage.Kubelet, n.Name)))
	p.starts = append(p.starts, k.Start)
	return nil
}

// machine makes what a real node has besides its kubelet.
func (e *Engine) machine(i int, n scenario.Node, kc kubelet.Config) {
	p := &e.parts
	p.net.Attach(kc.IP)
	if cidr, err := netip.ParsePrefix(kc.PodCIDR); err == nil {
		p.ranges = append(p.ranges, nodeRange{cidr, kc.IP})
	}
	plugin := cni.New(e.k, e.board, p.net, cni.Config{Node: n.Name, PodCIDR: kc.PodCIDR})
	rc := cri.DefaultConfig()
	rc.Node, rc.IP, rc.Images = n.Name, kc.IP, n.Images
	if len(kc.StaticPods) > 0 {
		for _, pod := range kc.StaticPods { // kubeadm has pulled them before the kubelet starts
			rc.Images = append(rc.Images, pod.Spec.Containers[0].Image)
		}
	}
	sc := csi.DefaultConfig()
	sc.Node = n.Name
	csi.New(e.k, sc)
	runtime := cri.New(e.k, e.log, e.board, p.net, plugin, registry.New(e.board), rc)
	pc := kubeproxy.DefaultConfig()
	pc.Node, pc.IP = n.Name, kc.IP
	pc.Quiet = n.ControlPlane || i > 2 // the rules are the same everywhere
	id := stage.On(stage.KubeProxy, n.Name)
	proxy := kubeproxy.New(e.k, e.log, e.board, e.client(id, kernel.ActorID(id), "system:kube-proxy"), p.net, pc)
	p.proxies[n.Name] = proxy
	p.starts = append(p.starts, runtime.Start, proxy.Start)
	p.actors = append(p.actors, kernel.ActorID(id), kernel.ActorID(stage.On(stage.Containerd, n.Name)))
}

func nodeIP(i int, n scenario.Node) string {
	switch {
	case n.IP != "":
		return n.IP
	case i == 0:
		return controlPlaneIP
	}
	i += 10 // node01 is .11
	return fmt.Sprintf("172.%d.%d.%d", 30+i/62500, i/250%250, i%250)
}

// size sets a node's capacity; what it can give to Pods is in the same proportion to it
// as on the recorded nodes.
func size(cfg *kubelet.Config, n scenario.Node) {
	capacity, allocatable := cfg.Capacity.DeepCopy(), cfg.Allocatable.DeepCopy()
	set := func(name corev1.ResourceName, q resource.Quantity) {
		if !q.IsZero() {
			capacity[name], allocatable[name] = q, q
		}
	}
	set(corev1.ResourceCPU, n.CPU)
	set(corev1.ResourceMemory, n.Memory)
	if n.Pods > 0 {
		set(corev1.ResourcePods, *resource.NewQuantity(n.Pods, resource.DecimalSI))
	}
	cfg.Capacity, cfg.Allocatable = capacity, allocatable
}

// staticPods are the manifests of the control plane's own components, as kubeadm writes
// them to /etc/kubernetes/manifests.
func staticPods() ([]*corev1.Pod, error) {
	entries, err := assets.FS.ReadDir("manifests")
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, f := range entries {
		data, err := assets.FS.ReadFile("manifests/" + f.Name())
		if err != nil {
			return nil, err
		}
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict(data, &pod); err != nil {
			return nil, fmt.Errorf("manifests/%s: %w", f.Name(), err)
		}
		out = append(out, &pod)
	}
	return out, nil
}

// settled is how long the cluster has been standing when the story begins.
const settled = 5 * time.Minute

// bootDeadline is how long, in virtual time, a cluster may take to come up.
const bootDeadline = 3 * time.Minute

// boot starts every component and waits until the cluster stands still.
func (e *Engine) boot() error {
	for _, ns := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		e.parts.api.Preload(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	e.parts.api.Preload(authz.Bootstrap()...)
	for _, start := range e.parts.starts {
		start()
	}
	for e.k.Now() < kernel.Time(bootDeadline) {
		e.Advance(time.Second)
		if e.k.Err() != nil {
			return e.k.Err()
		}
		if e.up() {
			e.labelNodes()
			e.Advance(settled)
			return nil
		}
	}
	return fmt.Errorf("the cluster did not come up within %s: %s", bootDeadline, e.missing())
}

// labelNodes sets, as kubeadm does, the labels that a kubelet may not give its own Node.
func (e *Engine) labelNodes() {
	for _, n := range e.cluster.Nodes {
		labels := map[string]string{}
		for k, v := range n.Labels {
			if !admission.KubeletMaySet(k) {
				labels[k] = v
			}
		}
		if n.ControlPlane {
			labels["node-role.kubernetes.io/control-plane"] = ""
		}
		o, ok := e.Get(kube.Nodes, "", n.Name)
		if !ok || len(labels) == 0 {
			continue
		}
		node := o.(*corev1.Node).DeepCopy()
		node.ResourceVersion = ""
		maps.Copy(node.Labels, labels)
		e.k.Send(kernel.ActorID(stage.APIServer), client.Latency, wire.Request{
			Client: stage.Kubectl, UserAgent: "kubeadm/" + kube.Version, Credential: Admin,
			Verb: wire.Update, Resource: kube.Nodes, Name: n.Name, Object: node, Background: true,
		})
	}
}

func (e *Engine) up() bool { return e.missing() == "" }

// missing says what a cluster that comes up still lacks.
func (e *Engine) missing() string {
	var out []string
	for _, n := range e.cluster.Nodes {
		o, ok := e.Get(kube.Nodes, "", n.Name)
		if !ok || !nodeReady(o.(*corev1.Node)) {
			out = append(out, "node "+n.Name)
		}
	}
	if _, ok := e.Get(kube.ServiceAccounts, "default", "default"); !ok {
		out = append(out, "the default service account")
	}
	for _, o := range e.List(kube.Pods, "kube-system") {
		if pod := o.(*corev1.Pod); !ready(pod) {
			out = append(out, "Pod "+pod.Name)
		}
	}
	return strings.Join(out, ", ")
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// actorsOf returns the actors of a component, those of every node for one that every
// node has.
func (p *parts) actorsOf(component string) []kernel.ActorID {
	var out []kernel.ActorID
	for _, id := range p.actors {
		if kind, _ := stage.Component(id).Split(); string(kind) == component {
			out = append(out, id)
		}
	}
	switch stage.Component(component) {
	case stage.Scheduler, stage.APIServer, stage.Etcd:
		out = append(out, kernel.ActorID(component))
	case stage.ControllerManager:
		out = append(out, p.controllers...)
	}
	return out
}

// lostFrom returns the first node from which a packet to the Service's first port would
// not reach a Pod: every node routes by the rules that its own kube-proxy has written.
// Played nodes have none and ask nobody.
func (e *Engine) lostFrom(svc *corev1.Service) (node string, lost bool) {
	for _, n := range e.cluster.Nodes {
		if p, ok := e.parts.proxies[n.Name]; ok && !p.Reaches(svc.Namespace, svc.Name) {
			return n.Name, true
		}
	}
	return "", false
}
