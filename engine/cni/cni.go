// Package cni is a node's network plugin: the reference plugins bridge and host-local, as
// containerd calls them when a sandbox is made and removed. It gives each Pod an address
// of the node's own range.
//
// Left out: the plugin's own files and processes, overlay networks (every address reaches
// every other unless package network says no), IPv6.
package cni

import (
	"fmt"
	"net/netip"
	"strings"

	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
)

// Config is one node's plugin.
type Config struct {
	Node    string
	PodCIDR string // "10.244.1.0/24"
}

// Network is what the plugin sets up: addresses that exist.
type Network interface {
	Attach(ip string)
	Detach(ip string)
}

// Plugin is the node's plugin with its address book. It is part of the kernel's state.
type Plugin struct {
	board *fault.Board
	net   Network
	cfg   Config
	cidr  netip.Prefix

	state ipam
}

// ipam is host-local's state: who has which address, and the last one that was given.
type ipam struct {
	Last  netip.Addr
	Owner map[netip.Addr]string // by address: the sandbox
	Addr  map[string]netip.Addr // by sandbox
}

// New returns a node's plugin. A range that cannot be parsed leaves it uninitialised, as a
// node without a network configuration is.
func New(k *kernel.Kernel, board *fault.Board, net Network, cfg Config) *Plugin {
	p := &Plugin{board: board, net: net, cfg: cfg, state: newIPAM()}
	p.cidr, _ = netip.ParsePrefix(cfg.PodCIDR)
	k.Attach(string(stage.On(stage.CNI, cfg.Node)), p)
	return p
}

func newIPAM() ipam { return ipam{Owner: map[netip.Addr]string{}, Addr: map[string]netip.Addr{}} }

// Ready reports whether the plugin is configured, and what the runtime says if not.
func (p *Plugin) Ready() (ok bool, message string) {
	if !p.cidr.IsValid() {
		return false, "Network plugin returns error: cni plugin not initialized"
	}
	return true, ""
}

// Add gives a sandbox its address. errText is the plugin's own error, "" for none.
func (p *Plugin) Add(sandboxID, _ string) (ip, errText string) {
	if v, on := p.board.On(fault.CNIBroken); on {
		first, last := p.span()
		return "", strings.ReplaceAll(v, "{range}", fmt.Sprintf("%s-%s", first.Prev(), last)) // each node has its own
	}
	if a, ok := p.state.Addr[sandboxID]; ok {
		return a.String(), ""
	}
	a, ok := p.next()
	if !ok {
		first, last := p.span()
		return "", fmt.Sprintf("failed to allocate for range 0: no IP addresses available in range set: %s-%s", first.Prev(), last)
	}
	p.state.Last = a
	p.state.Owner[a], p.state.Addr[sandboxID] = sandboxID, a
	p.net.Attach(a.String())
	return a.String(), ""
}

// span is the first and the last address for Pods: .1 is the bridge's, the last one is
// the broadcast's.
func (p *Plugin) span() (first, last netip.Addr) {
	first = p.cidr.Masked().Addr().Next().Next()
	last = first
	for a := first; p.cidr.Contains(a.Next()); a = a.Next() {
		last = a
	}
	return first, last
}

// next goes round from the last address that was given, as host-local does, so that an
// address is not used again at once.
func (p *Plugin) next() (netip.Addr, bool) {
	first, last := p.span()
	a := p.state.Last
	for range 1 << 16 {
		if !a.IsValid() || a == last {
			a = first
		} else {
			a = a.Next()
		}
		if _, taken := p.state.Owner[a]; !taken {
			return a, true
		}
		if a == p.state.Last || !p.state.Last.IsValid() && a == last {
			break // all round, and every one is taken
		}
	}
	return netip.Addr{}, false
}

// Del takes a sandbox's address back. It is no error if it has none.
func (p *Plugin) Del(sandboxID string) {
	if a, ok := p.state.Addr[sandboxID]; ok {
		delete(p.state.Addr, sandboxID)
		delete(p.state.Owner, a)
		p.net.Detach(a.String())
	}
}

func (s ipam) clone() ipam {
	c := newIPAM()
	c.Last = s.Last
	for k, v := range s.Owner {
		c.Owner[k] = v
	}
	for k, v := range s.Addr {
		c.Addr[k] = v
	}
	return c
}

// Snapshot implements kernel.State.
func (p *Plugin) Snapshot() any { return p.state.clone() }

// Restore implements kernel.State.
func (p *Plugin) Restore(snap any) { p.state = snap.(ipam).clone() }
