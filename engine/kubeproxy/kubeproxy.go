// Package kubeproxy is a node's kube-proxy in iptables mode: it watches Services and
// EndpointSlices and writes the rules by which the node's kernel turns a Service's address
// into a Pod's. It never touches a packet, and Pod-to-Pod traffic is none of its business.
// Upstream: k8s.io/kubernetes/pkg/proxy/iptables.
//
// Left out: session affinity, external IPs and load balancers, topology-aware hints,
// conntrack, masquerading of what stays in the cluster; the IPVS and nftables modes.
package kubeproxy

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"podwalk/engine/client"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Config is one node's proxy.
type Config struct {
	Node string
	IP   string
	// Quiet proxies write no hops: on most nodes the rules are the same.
	Quiet bool
	// Sync is how long changes are collected before the rules are written.
	Sync time.Duration
}

// DefaultConfig writes rules 10 ms after a change; upstream waits up to a second when
// changes come fast.
func DefaultConfig() Config { return Config{Sync: 10 * time.Millisecond} }

// Network is what the proxy needs of the wires.
type Network interface {
	AddRoutes(nodeIP string, r network.Routes)
	Listening(address string) bool
}

// Proxy is the actor "kube-proxy/NODE".
type Proxy struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	net   Network
	cfg   Config
	self  kernel.ActorID

	services *client.Cache[*corev1.Service]
	slices   *client.Cache[*discoveryv1.EndpointSlice]
	state    state
}

// state is what was written last. It outlives the process: rules stay when it stops.
type state struct {
	Rules   map[string]Rule // by address, "10.96.0.17:80"
	Dirty   map[string]bool // services to write again, "default/web"
	Syncing bool
	Stopped bool
}

// Rule is what the kernel does with packets to one address.
type Rule struct {
	Service  string // "default/web"
	Port     string // the Service port's name
	Backends []string
}

type syncRules struct{}

// New returns a node's proxy and registers it.
func New(k *kernel.Kernel, log *trace.Log, board *fault.Board, c *client.Client, n Network, cfg Config) *Proxy {
	p := &Proxy{
		k: k, log: log, board: board, net: n, cfg: cfg, self: kernel.ActorID(stage.On(stage.KubeProxy, cfg.Node)),
		services: client.NewCache[*corev1.Service](c, client.Selector{}),
		slices:   client.NewCache[*discoveryv1.EndpointSlice](c, client.Selector{}),
		state:    newState(),
	}
	k.Register(p.self, p)
	n.AddRoutes(cfg.IP, p)
	return p
}

func newState() state { return state{Rules: map[string]Rule{}, Dirty: map[string]bool{}} }

// Start lists and watches.
func (p *Proxy) Start() {
	p.services.Start()
	p.slices.Start()
}

// Handle implements kernel.Actor.
func (p *Proxy) Handle(ev kernel.Event) {
	if p.stopped() {
		return
	}
	if changes, mine := p.services.Handle(ev); mine {
		for _, c := range changes {
			p.touch(c.Object().Namespace + "/" + c.Object().Name)
		}
		p.catchUp()
		return
	}
	if changes, mine := p.slices.Handle(ev); mine {
		for _, c := range changes {
			p.touch(c.Object().Namespace + "/" + c.Object().Labels[discoveryv1.LabelServiceName])
		}
		p.catchUp()
		return
	}
	if _, ok := ev.(syncRules); ok {
		p.sync()
	}
}

// stopped reports whether the process is down; when it is up again it begins anew.
func (p *Proxy) stopped() bool {
	down := p.board.Hits(fault.KubeProxyStopped, p.cfg.Node)
	if down && !p.state.Stopped {
		p.services.Stop()
		p.slices.Stop()
	}
	if !down && p.state.Stopped {
		p.state.Syncing = false
		p.Start()
	}
	p.state.Stopped = down
	return down
}

func (p *Proxy) touch(service string) {
	p.state.Dirty[service] = true
	p.syncSoon()
}

// catchUp writes what the process left unwritten when it was stopped, once it has read
// everything anew.
func (p *Proxy) catchUp() {
	if len(p.state.Dirty) > 0 && p.services.Synced() && p.slices.Synced() {
		p.syncSoon()
	}
}

func (p *Proxy) syncSoon() {
	if !p.state.Syncing {
		p.state.Syncing = true
		p.k.Send(p.self, p.cfg.Sync, syncRules{})
	}
}

func (p *Proxy) sync() {
	p.state.Syncing = false
	dirty := make([]string, 0, len(p.state.Dirty))
	for s := range p.state.Dirty {
		dirty = append(dirty, s)
	}
	slices.Sort(dirty)
	clear(p.state.Dirty)
	cause := p.k.Cause()
	for _, s := range dirty {
		p.k.SetCause(cause)
		p.write(s)
	}
}

// write replaces the rules of one Service.
func (p *Proxy) write(service string) {
	before := p.rulesOf(service)
	for _, addr := range before {
		delete(p.state.Rules, addr)
	}
	ns, name, _ := cut(service)
	svc, ok := p.services.Get(ns, name)
	if ok && svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone {
		for _, port := range svc.Spec.Ports {
			r := Rule{Service: service, Port: port.Name, Backends: p.backends(ns, name, port)}
			p.state.Rules[net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(port.Port)))] = r
			if port.NodePort != 0 {
				p.state.Rules[net.JoinHostPort(p.cfg.IP, strconv.Itoa(int(port.NodePort)))] = r
			}
		}
	}
	p.tell(service, ns, name)
}

func cut(key string) (ns, name string, ok bool) {
	for i := range len(key) {
		if key[i] == '/' {
			return key[:i], key[i+1:], true
		}
	}
	return "", key, false
}

// backends are the ready addresses behind a Service's port, in order. Addresses that are
// terminating but still serve are used when there are no others.
func (p *Proxy) backends(ns, name string, port corev1.ServicePort) []string {
	var ready, serving []string
	p.slices.Each(ns, func(s *discoveryv1.EndpointSlice) bool {
		if s.Labels[discoveryv1.LabelServiceName] != name {
			return true
		}
		for _, sp := range s.Ports {
			if sp.Port == nil || sp.Name != nil && *sp.Name != port.Name {
				continue
			}
			for _, e := range s.Endpoints {
				to := net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*sp.Port)))
				switch c := e.Conditions; {
				case c.Ready == nil || *c.Ready:
					ready = append(ready, to)
				case c.Serving != nil && *c.Serving:
					serving = append(serving, to)
				}
			}
		}
		return true
	})
	if len(ready) == 0 {
		ready = serving
	}
	slices.Sort(ready)
	return ready
}

func (p *Proxy) rulesOf(service string) []string {
	var out []string
	for addr, r := range p.state.Rules {
		if r.Service == service {
			out = append(out, addr)
		}
	}
	slices.Sort(out)
	return out
}

// tell records what was written: one hop a Service.
func (p *Proxy) tell(service, ns, name string) {
	if p.cfg.Quiet || ns == "kube-system" || service == "default/kubernetes" {
		return
	}
	me := stage.Component(p.self)
	h := trace.Hop{
		Stage: stage.Routing, From: stage.APIServer, To: me, Verb: "watch", Object: trace.Ref{Kind: "Service", Namespace: ns, Name: name},
	}
	p.log.Record(h)
	addrs := p.rulesOf(service)
	h.From, h.Verb = me, "iptables-restore"
	h.Detail = trace.Network{Rules: p.Text(service)}
	for _, addr := range addrs {
		if r := p.state.Rules[addr]; len(r.Backends) == 0 {
			h.Outcome, h.Message = trace.Waiting, portName(r)+" has no endpoints"
		} else {
			h.Message = fmt.Sprintf("%s -> %v", addr, r.Backends)
		}
	}
	p.log.Record(h)
}

func portName(r Rule) string {
	if r.Port == "" {
		return r.Service
	}
	return r.Service + ":" + r.Port
}

// Route implements network.Routes.
func (p *Proxy) Route(to string) (backend string, ok, refused bool) {
	r, ok := p.state.Rules[to]
	if !ok {
		return "", false, false
	}
	if len(r.Backends) == 0 {
		return "", true, true
	}
	return r.Backends[p.k.Rand(string(p.self)).IntN(len(r.Backends))], true, false
}

// Reaches reports whether a packet from this node to the Service's first port would
// arrive at a process, by every rule that could be taken.
func (p *Proxy) Reaches(ns, name string) bool {
	svc, ok := p.services.Get(ns, name)
	if !ok || len(svc.Spec.Ports) == 0 {
		return false
	}
	if svc.Spec.ClusterIP == corev1.ClusterIPNone || svc.Spec.ClusterIP == "" {
		b := p.backends(ns, name, svc.Spec.Ports[0])
		return len(b) > 0 && p.net.Listening(b[0])
	}
	r, ok := p.state.Rules[net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(svc.Spec.Ports[0].Port)))]
	if !ok || len(r.Backends) == 0 {
		return false
	}
	for _, b := range r.Backends {
		if !p.net.Listening(b) {
			return false
		}
	}
	return true
}

type proxySnapshot struct {
	State            state
	Services, Slices any
}

func (s state) clone() state {
	c := newState()
	c.Syncing, c.Stopped = s.Syncing, s.Stopped
	for k, v := range s.Rules {
		c.Rules[k] = v
	}
	for k := range s.Dirty {
		c.Dirty[k] = true
	}
	return c
}

// Snapshot implements kernel.State.
func (p *Proxy) Snapshot() any {
	return proxySnapshot{p.state.clone(), p.services.Snapshot(), p.slices.Snapshot()}
}

// Restore implements kernel.State.
func (p *Proxy) Restore(snap any) {
	s := snap.(proxySnapshot)
	p.state = s.State.clone()
	p.services.Restore(s.Services)
	p.slices.Restore(s.Slices)
}
