package cni_test

import (
	"fmt"
	"testing"

	"podwalk/engine/cni"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
)

type hosts map[string]bool

func (h hosts) Attach(ip string) { h[ip] = true }
func (h hosts) Detach(ip string) { delete(h, ip) }

// TestAddresses: each sandbox has its own, one that was given back is not given again at
// once, and a full range says so.
func TestAddresses(t *testing.T) {
	k, board, net := kernel.New(1), fault.NewBoard(), hosts{}
	p := cni.New(k, board, net, cni.Config{Node: "node01", PodCIDR: "10.244.1.0/29"})
	add := func(id, want string) {
		t.Helper()
		ip, err := p.Add(id, "")
		if got := ip + err; got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
	add("a", "10.244.1.2")
	add("b", "10.244.1.3")
	add("a", "10.244.1.2") // asked again: the same
	p.Del("a")
	p.Del("nobody")
	if net["10.244.1.2"] || !net["10.244.1.3"] {
		t.Errorf("addresses that exist: %v", net)
	}
	at := k.Snapshot()
	for range 2 {
		k.Restore(at)
		add("c", "10.244.1.4")
	}
	add("d", "10.244.1.5")
	add("e", "10.244.1.6")
	add("f", "10.244.1.2")
	add("g", "failed to allocate for range 0: no IP addresses available in range set: 10.244.1.1-10.244.1.6")
	p.Del("d")
	add("g", "10.244.1.5")
	if err := board.Set(fault.CNIBroken, "no such file"); err != nil {
		t.Fatal(err)
	}
	add("h", "no such file")
}

func TestReady(t *testing.T) {
	for cidr, want := range map[string]string{"10.244.1.0/24": "true ", "": "false Network plugin returns error: cni plugin not initialized"} {
		p := cni.New(kernel.New(1), fault.NewBoard(), hosts{}, cni.Config{Node: "n", PodCIDR: cidr})
		ok, message := p.Ready()
		if got := fmt.Sprint(ok, " ", message); got != want {
			t.Errorf("%q: got %q, want %q", cidr, got, want)
		}
	}
}

// TestBack: the address book goes back as a whole, and two branches from one snapshot do
// not see each other.
func TestBack(t *testing.T) {
	k := kernel.New(1)
	p := cni.New(k, fault.NewBoard(), hosts{}, cni.Config{Node: "n", PodCIDR: "10.244.1.0/24"})
	p.Add("a", "")
	at := k.Snapshot()
	hash := at.Hash()
	var branches []uint64
	for range 2 {
		p.Del("a")
		if ip, _ := p.Add("b", ""); ip != "10.244.1.3" {
			t.Errorf("b has %s", ip)
		}
		branches = append(branches, k.Snapshot().Hash())
		k.Restore(at)
		if at.Hash() != hash || k.Snapshot().Hash() != hash {
			t.Fatal("going back leaves another state")
		}
		if ip, _ := p.Add("a", ""); ip != "10.244.1.2" {
			t.Errorf("a has %s now", ip)
		}
	}
	if branches[0] != branches[1] || branches[0] == hash {
		t.Errorf("branches %v from %d", branches, hash)
	}
}

// TestMended: a plugin that was broken took no addresses meanwhile.
func TestMended(t *testing.T) {
	board, net := fault.NewBoard(), hosts{}
	p := cni.New(kernel.New(1), board, net, cni.Config{Node: "n", PodCIDR: "10.244.1.0/30"})
	if err := board.Set(fault.CNIBroken, "no such file"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if ip, err := p.Add("a", ""); ip != "" || err != "no such file" || len(net) != 0 {
			t.Errorf("%q %q %v", ip, err, net)
		}
	}
	board.Clear(fault.CNIBroken)
	if ip, err := p.Add("a", ""); ip != "10.244.1.2" || err != "" {
		t.Errorf("%q %q", ip, err)
	}
	if _, err := p.Add("b", ""); err != "failed to allocate for range 0: no IP addresses available in range set: 10.244.1.1-10.244.1.2" {
		t.Error(err)
	}
}
