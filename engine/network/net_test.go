package network_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/trace"
)

// rules is a node with one Service that has a backend and one that has none.
type rules struct{}

func (rules) Route(to string) (backend string, ok, refused bool) {
	switch to {
	case "10.96.0.17:80":
		return "10.244.1.2:8080", true, false
	case "10.96.0.18:80":
		return "", true, true
	}
	return "", false, false
}

// pod answers what it is asked, except /slow, and hears the results of its own calls.
type pod struct {
	k       *kernel.Kernel
	results []network.Result
}

func (p *pod) Handle(ev kernel.Event) {
	switch e := ev.(type) {
	case network.Request:
		if e.Call.Path != "/slow" {
			p.k.Send(network.Self, time.Millisecond, network.Answer{ID: e.ID, Code: 200, Body: []byte("hello")})
		}
	case network.Result:
		p.results = append(p.results, e)
	}
}

func (p *pod) Respond(c network.Call) (int, string, bool) {
	return 200, "hello " + c.Path, c.Path != "/raw"
}

func wires() (*kernel.Kernel, *network.Net, *pod) {
	k := kernel.New(1)
	n := network.New(k, trace.New(k), fault.NewBoard())
	p := &pod{k: k}
	k.Register("pod", p)
	n.AddResponder("pod", p)
	n.AddRoutes("172.30.0.3", rules{})
	n.SetNodeOf(func(string) string { return "172.30.0.3" })
	n.SetNames(func(ns, name string) (string, bool) { return "10.96.0.17", ns == "default" && name == "web" })
	n.Attach("10.244.1.2")
	n.Listen("10.244.1.2:8080", "pod")
	return k, n, p
}

// TestReach: whom a caller reaches, and what it sees and when where it does not.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		name, to, path string
		protocol       network.Protocol
		want           string
	}{
		{"a Pod", "10.244.1.2:8080", "/", network.HTTP, "200 hello after 1.4ms"},
		{"a Pod by its Service", "10.96.0.17:80", "/", network.HTTP, "200 hello after 1.4ms"},
		{"only a connection", "10.244.1.2:8080", "", network.TCP, "0  after 400µs"},
		{"nobody on the port", "10.244.1.2:81", "/", network.HTTP, "dial tcp 10.244.1.2:81: connect: connection refused after 400µs"},
		{"a Service without endpoints", "10.96.0.18:80", "/", network.HTTP, "dial tcp 10.96.0.18:80: connect: connection refused after 400µs"},
		{"no such address", "10.244.9.9:80", "/", network.HTTP, "dial tcp 10.244.9.9:80: i/o timeout after 2s"},
		{"too slow", "10.244.1.2:8080", "/slow", network.HTTP, "context deadline exceeded (Client.Timeout exceeded while awaiting headers) after 2s"},
	} {
		k, n, p := wires()
		n.Do("pod", network.Call{From: "10.244.1.3", To: c.to, Path: c.path, Protocol: c.protocol, Timeout: 2 * time.Second, Tag: "t"})
		for len(p.results) == 0 && k.Step() {
		}
		r := p.results[0]
		got := r.Err
		if got == "" {
			got = fmt.Sprint(r.Code, " ", string(r.Body))
		}
		if got += fmt.Sprint(" after ", time.Duration(k.Now())); got != c.want || r.Tag != "t" {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestFetch: a script's request goes the same ways.
func TestFetch(t *testing.T) {
	_, n, _ := wires()
	for to, want := range map[string]string{
		"10.96.0.17:80": "200 hello /x ", "10.96.0.18:80": "0  Connection refused", "10.244.9.9:80": "0  Operation timed out",
	} {
		code, body, err := n.Fetch("10.244.1.3", to, "/x")
		if got := fmt.Sprint(code, " ", body, " ", err); got != want {
			t.Errorf("%s: got %q, want %q", to, got, want)
		}
	}
	if _, _, err := n.Fetch("10.244.1.3", "10.244.1.2:8080", "/raw"); err != "error getting response" {
		t.Errorf("a server that speaks no HTTP: %q", err)
	}
}

// TestNames: a name is looked up along the search path of the caller's namespace.
func TestNames(t *testing.T) {
	_, n, _ := wires()
	for _, c := range []struct {
		ns, name string
		ok       bool
	}{
		{"default", "web", true}, {"other", "web", false}, {"other", "web.default", true}, {"other", "web.default.svc", true},
		{"other", "web.default.svc.cluster.local", true}, {"other", "web.default.svc.cluster.local.", true},
		{"default", "nope", false}, {"other", "10.1.2.3", true},
	} {
		if _, ok := n.Resolve(c.ns, c.name); ok != c.ok {
			t.Errorf("%s from %s: %v", c.name, c.ns, ok)
		}
	}
}

// TestBack: a call under way when a snapshot was taken ends once in each branch.
func TestBack(t *testing.T) {
	k, n, p := wires()
	n.Do("pod", network.Call{To: "10.244.1.2:8080", Protocol: network.HTTP})
	at := k.Snapshot()
	for range 2 {
		p.results = nil
		k.Restore(at)
		k.AdvanceTo(kernel.Time(time.Minute))
		if len(p.results) != 1 || p.results[0].Code != 200 {
			t.Errorf("%v", p.results)
		}
	}
	n.Unlisten("10.244.1.2:8080")
	n.Detach("10.244.1.2")
	k.Restore(at)
	if got := n.Addresses(); fmt.Sprint(got) != "[10.244.1.2:8080]" {
		t.Errorf("listened on after going back: %v", got)
	}
}

// TestHash: the same calls leave the same state; a call under way is part of it.
func TestHash(t *testing.T) {
	var hashes []uint64
	for range 2 {
		k, n, _ := wires()
		idle := k.Snapshot()
		n.Do("pod", network.Call{To: "10.244.1.2:8080", Protocol: network.HTTP, Headers: map[string]string{"a": "1", "b": "2"}})
		busy := k.Snapshot()
		if idle.StateHash(string(network.Self)) == busy.StateHash(string(network.Self)) {
			t.Error("a call under way leaves no mark")
		}
		k.AdvanceTo(kernel.Time(time.Minute))
		k.Restore(busy)
		if k.Snapshot().Hash() != busy.Hash() {
			t.Error("going back leaves another state")
		}
		hashes = append(hashes, busy.Hash())
	}
	if hashes[0] != hashes[1] {
		t.Errorf("%v", hashes)
	}
}

// TestCut: an address that goes away while a call is under way. The one that asked hears
// of it by its own patience; those that come after are not even refused.
func TestCut(t *testing.T) {
	k, n, p := wires()
	n.Do("pod", network.Call{To: "10.244.1.2:8080", Path: "/slow", Protocol: network.HTTP, Timeout: time.Second})
	n.Unlisten("10.244.1.2:8080")
	n.Do("pod", network.Call{To: "10.244.1.2:8080", Protocol: network.TCP, Timeout: time.Second})
	n.Detach("10.244.1.2")
	n.Do("pod", network.Call{To: "10.244.1.2:8080", Protocol: network.TCP, Timeout: time.Second})
	k.AdvanceTo(kernel.Time(time.Minute))
	var got []string
	for _, r := range p.results {
		got = append(got, r.Err)
	}
	want := []string{
		"dial tcp 10.244.1.2:8080: connect: connection refused",
		"dial tcp 10.244.1.2:8080: i/o timeout",
		"context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestShared: an address that two use is there until the second has gone, and one that
// nobody has cannot go below nothing.
func TestShared(t *testing.T) {
	_, n, _ := wires()
	n.Unlisten("10.244.1.2:8080")
	n.Attach("10.244.1.2")
	n.Detach("10.244.1.2")
	if _, _, err := n.Fetch("10.244.1.3", "10.244.1.2:8080", "/"); err != "Connection refused" {
		t.Errorf("one still uses it: %q", err)
	}
	n.Detach("10.244.1.2")
	n.Detach("10.244.1.2")
	if _, _, err := n.Fetch("10.244.1.3", "10.244.1.2:8080", "/"); err != "Operation timed out" {
		t.Errorf("nobody uses it: %q", err)
	}
	n.Attach("10.244.1.2")
	if _, _, err := n.Fetch("10.244.1.3", "10.244.1.2:8080", "/"); err != "Connection refused" {
		t.Errorf("it is back: %q", err)
	}
}
