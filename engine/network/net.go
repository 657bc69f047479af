package network

import (
	"net"
	"slices"
	"strings"
	"time"

	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/trace"
)

const (
	hopLatency     = 200 * time.Microsecond // one way between two addresses of the cluster
	timeoutDefault = 30 * time.Second
)

// Routes turns a Service's address into a Pod's, as the rules on the calling node say;
// package kubeproxy writes them. ok is false for an address that is no Service's; refused
// says that the rules reject it (no endpoints).
type Routes interface {
	Route(to string) (backend string, ok, refused bool)
}

// Net is the cluster's network: the actor "network".
type Net struct {
	k *kernel.Kernel
	// Part of the assembly, not of the state:
	routes     map[string]Routes // by the node's IP
	responders map[kernel.ActorID]Responder
	nodeOf     func(ip string) string
	names      Names

	state netState
}

type netState struct {
	NextID    uint64
	Listeners map[string]kernel.ActorID // "10.244.1.7:80" → who answers
	Hosts     map[string]int            // addresses that exist, by IP: how many use it
	Calls     map[uint64]pendingCall
}

type pendingCall struct {
	Call    Call
	ReplyTo kernel.ActorID
	Timer   kernel.Timer
}

type callTimeout struct{ ID uint64 }

// New returns the network and registers it.
func New(k *kernel.Kernel, _ *trace.Log, _ *fault.Board) *Net {
	n := &Net{k: k, routes: map[string]Routes{}, responders: map[kernel.ActorID]Responder{}, nodeOf: func(ip string) string { return ip }, state: newState()}
	k.Register(Self, n)
	return n
}

func newState() netState {
	return netState{Listeners: map[string]kernel.ActorID{}, Hosts: map[string]int{}, Calls: map[uint64]pendingCall{}}
}

// AddRoutes tells the network of a node's own rules; nodeIP is the node's address.
func (n *Net) AddRoutes(nodeIP string, r Routes) { n.routes[nodeIP] = r }

// SetNodeOf tells the network how to find the node (by its IP) that an address is on.
func (n *Net) SetNodeOf(f func(ip string) string) { n.nodeOf = f }

// Names looks a Service's name up: the cluster's DNS.
type Names func(namespace, service string) (ip string, ok bool)

// SetNames tells the network who answers for names.
func (n *Net) SetNames(f Names) { n.names = f }

// Responder answers a request at once: the far end of Fetch.
type Responder interface {
	Respond(c Call) (code int, body string, ok bool)
}

// AddResponder tells the network that an actor's listeners can answer at once.
func (n *Net) AddResponder(actor kernel.ActorID, r Responder) { n.responders[actor] = r }

// clusterDomain is the suffix of the cluster's own names.
const clusterDomain = ".svc.cluster.local"

// Resolve looks a name up as a Pod of that namespace does: by its search path.
func (n *Net) Resolve(namespace, name string) (ip string, ok bool) {
	if net.ParseIP(name) != nil {
		return name, true
	}
	if n.names == nil {
		return "", false
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "."), clusterDomain)
	name = strings.TrimSuffix(name, ".svc")
	service, ns, qualified := strings.Cut(name, ".")
	if !qualified {
		ns = namespace
	}
	return n.names(ns, service)
}

// Fetch is one HTTP request of a script, answered at once; errText is what the system
// says where there is no answer.
func (n *Net) Fetch(from, to, path string) (code int, body, errText string) {
	addr, why := n.resolve(Call{From: from, To: to, Protocol: HTTP})
	switch why {
	case refused:
		return 0, "", "Connection refused"
	case unreachable:
		return 0, "", "Operation timed out"
	}
	r, ok := n.responders[n.state.Listeners[addr]]
	if !ok {
		return 0, "", "error getting response"
	}
	if code, body, ok = r.Respond(Call{From: from, To: addr, Protocol: HTTP, Method: "GET", Path: path}); !ok {
		return 0, "", "error getting response"
	}
	return code, body, ""
}

// Attach makes an IP exist: packets to it are answered, if only by a refusal. An address
// that does not exist swallows packets.
func (n *Net) Attach(ip string) { n.state.Hosts[ip]++ }

// Detach takes an IP away.
func (n *Net) Detach(ip string) {
	if n.state.Hosts[ip]--; n.state.Hosts[ip] <= 0 {
		delete(n.state.Hosts, ip)
	}
}

// Listen makes the actor get the calls to an address, as Requests.
func (n *Net) Listen(address string, actor kernel.ActorID) { n.state.Listeners[address] = actor }

// Unlisten frees the address: callers find the connection refused.
func (n *Net) Unlisten(address string) { delete(n.state.Listeners, address) }

// Listening reports whether somebody listens on an address.
func (n *Net) Listening(address string) bool { _, ok := n.state.Listeners[address]; return ok }

// Do sends a call. The Result comes to replyTo.
func (n *Net) Do(replyTo kernel.ActorID, c Call) {
	n.state.NextID++
	id := n.state.NextID
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = timeoutDefault
	}
	to, why := n.resolve(c)
	switch why {
	case refused:
		n.k.Send(replyTo, 2*hopLatency, Result{Tag: c.Tag, Call: c, Err: "dial tcp " + to + ": connect: connection refused"})
		return
	case unreachable:
		n.k.Send(replyTo, timeout, Result{Tag: c.Tag, Call: c, Err: "dial tcp " + to + ": i/o timeout"})
		return
	}
	if c.Protocol == TCP {
		n.k.Send(replyTo, 2*hopLatency, Result{Tag: c.Tag, Call: c})
		return
	}
	timer := n.k.Send(Self, timeout, callTimeout{id})
	n.state.Calls[id] = pendingCall{c, replyTo, timer}
	n.k.Send(n.state.Listeners[to], hopLatency, Request{ID: id, Call: c})
}

type reach int

const (
	reached reach = iota
	refused
	unreachable
)

// resolve follows the rules of the caller's node to the address that is meant, and says
// whether anybody is there.
func (n *Net) resolve(c Call) (to string, why reach) {
	to = c.To
	if r, ok := n.routes[n.nodeOf(c.From)]; ok {
		backend, service, no := r.Route(c.To)
		switch {
		case no:
			return to, refused
		case service:
			to = backend
		}
	}
	if _, ok := n.state.Listeners[to]; ok {
		return to, reached
	}
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		return to, unreachable
	}
	if _, ok := n.state.Listeners[net.JoinHostPort("0.0.0.0", port)]; ok && host == "127.0.0.1" {
		return to, reached
	}
	if n.state.Hosts[host] > 0 {
		return to, refused
	}
	return to, unreachable
}

// Handle implements kernel.Actor.
func (n *Net) Handle(ev kernel.Event) {
	switch e := ev.(type) {
	case Answer:
		p, ok := n.state.Calls[e.ID]
		if !ok {
			return // the caller has given up
		}
		delete(n.state.Calls, e.ID)
		n.k.Cancel(p.Timer)
		n.k.Send(p.ReplyTo, hopLatency, Result{Tag: p.Call.Tag, Call: p.Call, Err: e.Err, Code: e.Code, Body: e.Body})
	case callTimeout:
		p, ok := n.state.Calls[e.ID]
		if !ok {
			return
		}
		delete(n.state.Calls, e.ID)
		n.k.Send(p.ReplyTo, 0, Result{Tag: p.Call.Tag, Call: p.Call, Err: "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"})
	}
}

// Addresses returns what is listened on, sorted.
func (n *Net) Addresses() []string {
	out := make([]string, 0, len(n.state.Listeners))
	for a := range n.state.Listeners {
		out = append(out, a)
	}
	slices.Sort(out)
	return out
}

func (s netState) clone() netState {
	c := newState()
	c.NextID = s.NextID
	for k, v := range s.Listeners {
		c.Listeners[k] = v
	}
	for k, v := range s.Hosts {
		c.Hosts[k] = v
	}
	for k, v := range s.Calls {
		c.Calls[k] = v
	}
	return c
}

// Snapshot implements kernel.State.
func (n *Net) Snapshot() any { return n.state.clone() }

// Restore implements kernel.State.
func (n *Net) Restore(snap any) { n.state = snap.(netState).clone() }
