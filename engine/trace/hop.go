// Package trace records what happened, hop by hop, and answers questions about it.
//
// A hop is one thing that one component did or said to another: a gate's verdict, a
// plugin's score, a pull that failed. Its Cause is the hop that led to it, so "why is
// this Pod Pending?" is a walk up a tree. Reason and Message are the literal strings of
// Kubernetes 1.37. Everything that a learner is told comes from here.
package trace

import (
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
)

// Outcome says how a hop ended.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Denied  Outcome = "denied"  // refused by a rule
	Failed  Outcome = "failed"  // will not go on by itself
	Retry   Outcome = "retry"   // will be tried again: a conflict, a first failing probe, a back-off
	Waiting Outcome = "waiting" // not decided yet; something else must happen first
)

// Ref names an object.
type Ref struct {
	Kind      string
	Namespace string
	Name      string
}

// String returns kind/namespace/name, without the namespace where there is none.
func (r Ref) String() string {
	switch {
	case r.Kind == "" && r.Name == "":
		return ""
	case r.Namespace == "":
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// Hop is one entry of the trace.
type Hop struct {
	Seq      uint64 // 1, 2, 3 …; given by Record
	Cause    uint64 // the hop that led to this one, 0 for none; given by Record where empty
	At       kernel.Time
	Stage    stage.ID
	From, To stage.Component
	Verb     string // POST, watch, Filter, RunPodSandbox …: what stands on the edge
	Object   Ref
	Revision int64 // etcd's revision, where the hop wrote or delivered one
	Outcome  Outcome
	Reason   string // CamelCase reason as Kubernetes prints it, or the refusing plugin's name
	Message  string // the literal message
	// Detail is typed data for the panels (see the Detail types of this package), nil for
	// most hops. Never changed after Record.
	Detail any
	// Background hops (heartbeats, leases, the platform's own objects) are kept in a ring
	// and left out of "hop 23 of 61".
	Background bool
}

// Step returns the badge of the hop's stage.
func (h Hop) Step() stage.Step { return stage.StepOf(h.Stage) }

// Like reports whether two hops of different runs tell the same, whenever they happened.
func (h Hop) Like(o Hop) bool {
	return h.Stage == o.Stage && h.Object == o.Object && h.Outcome == o.Outcome && h.Reason == o.Reason &&
		h.Message == o.Message && h.From == o.From && h.To == o.To
}

// Bad reports whether the hop refused or broke something.
func (h Hop) Bad() bool { return h.Outcome == Denied || h.Outcome == Failed }
