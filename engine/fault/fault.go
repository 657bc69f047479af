// Package fault holds the switches that make a simulated component misbehave.
//
// A fault point is a named place in a component's code that asks whether it is switched
// on, and with what value. Which points a fault of the palette switches is data
// (exercises/faults). Points never decide what the learner sees: the component goes on
// by its own rules from the one thing that is broken.
package fault

import (
	"fmt"
	"sort"
)

// Point names a switch: "component.what".
type Point string

// The points. Value is empty unless the comment says otherwise.
const (
	SchedulerStopped         Point = "kube-scheduler.stopped"
	ControllerManagerStopped Point = "kube-controller-manager.stopped"
	APIServerStopped         Point = "kube-apiserver.stopped"
	EtcdStopped              Point = "etcd.stopped"
	KubeletStopped           Point = "kubelet.stopped"      // value: the node, or "" for all
	ContainerdStopped        Point = "containerd.stopped"   // value: the node, or "" for all
	KubeProxyStopped         Point = "kube-proxy.stopped"   // value: the node, or "" for all
	CNIBroken                Point = "cni.broken"           // value: the plugin's error; {range} is the node's addresses
	RegistryDown             Point = "registry.down"        // value: a registry host, or "" for all
	RegistryTagMissing       Point = "registry.tag-missing" // value: image reference
	ClientToken              Point = "client.token"         // value: a bearer token that kubectl sends instead of its certificate
	ClientUser               Point = "client.user"          // value: the user whose certificate kubectl sends instead of its own
)

var known = map[Point]bool{
	SchedulerStopped: true, ControllerManagerStopped: true, APIServerStopped: true, EtcdStopped: true,
	KubeletStopped: true, ContainerdStopped: true, KubeProxyStopped: true, CNIBroken: true,
	RegistryDown: true, RegistryTagMissing: true, ClientToken: true, ClientUser: true,
}

// Known reports whether a point of that name exists.
func Known(p Point) bool { return known[p] }

// Points returns the names of all points, sorted.
func Points() []Point {
	out := make([]Point, 0, len(known))
	for p := range known {
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// Changed tells an actor that a point of its component was switched on or off. Most look
// at the board when they next have something to do; those that must act at once (to list
// again after a stop) handle this event.
type Changed struct{ Point Point }

// Board is the state of all switches of one run. It is part of the kernel's state.
type Board struct {
	on map[Point]string
}

// NewBoard returns a board with everything off.
func NewBoard() *Board { return &Board{on: map[Point]string{}} }

// Set switches a point on with a value. An unknown point is an error.
func (b *Board) Set(p Point, value string) error {
	if !known[p] {
		return fmt.Errorf("there is no fault point %q", p)
	}
	b.on[p] = value
	return nil
}

// Clear switches a point off.
func (b *Board) Clear(p Point) { delete(b.on, p) }

// On reports whether p is switched on, and its value.
func (b *Board) On(p Point) (value string, on bool) {
	value, on = b.on[p]
	return value, on
}

// Hits reports whether p is switched on for this subject: its value is empty (all) or
// equals the subject.
func (b *Board) Hits(p Point, subject string) bool {
	v, on := b.on[p]
	return on && (v == "" || v == subject)
}

// Snapshot implements kernel.State.
func (b *Board) Snapshot() any {
	m := make(map[Point]string, len(b.on))
	for p, v := range b.on {
		m[p] = v
	}
	return m
}

// Restore implements kernel.State.
func (b *Board) Restore(snap any) {
	clear(b.on)
	for p, v := range snap.(map[Point]string) {
		b.on[p] = v
	}
}
