// Package engine assembles the simulated cluster and is all of it that the screens, the
// lessons and the exercises use: make a cluster, send it requests, let time pass, look at
// its objects and its trace, go back and forth.
//
// One Engine is one run at one instant. A Timeline (timeline.go) holds a run from its
// beginning to where it has come, and reaches any hop of it.
package engine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Engine is a cluster at one instant. It is not safe for concurrent use.
type Engine struct {
	cluster scenario.Cluster
	k       *kernel.Kernel
	log     *trace.Log
	board   *fault.Board
	parts   parts
	inbox   *inbox

	commands []Command
	story
	aside *aside // set while somebody else acts
}

// New makes the cluster and lets it come up: nodes registered and Ready, the control
// plane's static Pods running, everything still. The story begins there: its trace is
// empty and its clock stands at Origin.
func New(c scenario.Cluster) (*Engine, error) {
	e, err := assemble(c)
	if err != nil {
		return nil, err
	}
	if err := e.boot(); err != nil {
		return nil, err
	}
	e.Begin()
	return e, nil
}

// Begin declares that what has happened so far was preparation: the trace starts anew.
func (e *Engine) Begin() {
	e.log.Begin()
	e.origin, e.acted = e.k.Now(), e.k.Now()
	e.asked, e.taken, e.refused = nil, nil, nil
}

// Fork returns a second engine in the same state. The two share nothing.
func (e *Engine) Fork() (*Engine, error) {
	twin, err := assemble(e.cluster)
	if err != nil {
		return nil, err
	}
	twin.Restore(e.Snapshot())
	return twin, nil
}

// Now returns the virtual time.
func (e *Engine) Now() kernel.Time { return e.k.Now() }

// Origin returns when the story began.
func (e *Engine) Origin() kernel.Time { return e.origin }

// Elapsed returns how much virtual time the story has taken.
func (e *Engine) Elapsed() time.Duration { return e.k.Now().Sub(e.origin) }

// Trace returns the log of hops.
func (e *Engine) Trace() *trace.Log { return e.log }

// Err returns why the run cannot go on, or nil.
func (e *Engine) Err() error { return e.k.Err() }

// Get returns an object as etcd has it now. It must not be changed.
func (e *Engine) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, bool) {
	return e.parts.api.Get(gvr, namespace, name)
}

// List returns the objects of one namespace ("" for all), ordered by key.
func (e *Engine) List(gvr schema.GroupVersionResource, namespace string) []runtime.Object {
	return e.parts.api.List(gvr, namespace)
}

// Advance lets d of virtual time pass.
func (e *Engine) Advance(d time.Duration) { e.k.AdvanceTo(e.k.Now().Add(d)) }

// Command is one thing that came from outside, with the exact place in the run at which
// it came: after Turn events, at virtual time At. Replaying the commands at their places
// gives the same run, bit by bit, without starting a kubectl. Requests that only look are
// commands too: the cluster takes turns to answer them.
type Command struct {
	Turn    uint64
	At      kernel.Time
	Request *wire.Request
	Aside   bool   // the request is somebody else's: it is no part of what the story asks for
	Cancel  uint64 // a watch that its client has given up
	Switch  *scenario.Switch
	Forget  *trace.Ref // this object is no longer asked for
	Forgive bool       // what was refused so far is no longer judged
}

// record appends a command that happens now.
func (e *Engine) record(c Command) Command {
	c.Turn, c.At = e.k.Steps(), e.k.Now()
	e.commands = append(e.commands, c)
	return c
}

// perform carries a command out at its place.
func (e *Engine) perform(c Command) {
	if c.Switch != nil || c.Request != nil && !c.Request.Background {
		e.acted = e.k.Now()
	}
	switch {
	case c.Request != nil:
		e.send(*c.Request)
	case c.Cancel != 0:
		e.k.Send(kernel.ActorID(stage.APIServer), 0, wire.CancelWatch{WatchID: c.Cancel})
	case c.Switch != nil:
		e.flip(*c.Switch)
	case c.Forget != nil:
		e.forget(*c.Forget)
	case c.Forgive:
		e.refused = nil
	}
}

// Commands returns the log of what came from outside.
func (e *Engine) Commands() []Command { return e.commands[:len(e.commands):len(e.commands)] }

// Replay goes on from where the engine is to the end of the given commands (those that
// are already in its past are skipped) and reproduces each at its place.
func (e *Engine) Replay(commands []Command) error {
	for _, c := range commands[min(len(e.commands), len(commands)):] {
		if err := e.runTo(c.Turn, c.At); err != nil {
			return err
		}
		e.commands = append(e.commands, c)
		e.perform(c)
	}
	return nil
}

// runTo handles events until exactly turn of them have been, then sets the clock.
func (e *Engine) runTo(turn uint64, at kernel.Time) error {
	for e.k.Steps() < turn {
		if !e.k.Step() {
			return fmt.Errorf("the recorded run has %d events before a command, this one only %d: it was made by another version", turn, e.k.Steps())
		}
	}
	return e.k.SetClock(at)
}

// Snapshot is an engine's state at one instant.
type Snapshot struct {
	kernel *kernel.Snapshot
	log    []Command
}

// Turn returns how many events had been handled.
func (s *Snapshot) Turn() uint64 { return s.kernel.Steps() }

// Hash digests the state: equal states have equal hashes within one process.
func (s *Snapshot) Hash() uint64 { return s.kernel.Hash() }

// Differences names the parts of the state that are not the same in two snapshots.
func (s *Snapshot) Differences(other *Snapshot) []string {
	var out []string
	for _, name := range s.kernel.StateNames() {
		if s.kernel.StateHash(name) != other.kernel.StateHash(name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		out = append(out, "the queue of events")
	}
	return out
}

// Snapshot copies the state. It costs little: objects are shared, never changed.
func (e *Engine) Snapshot() *Snapshot {
	return &Snapshot{kernel: e.k.Snapshot(), log: e.Commands()}
}

// Restore puts the engine, or a fork of it, back into a state.
func (e *Engine) Restore(s *Snapshot) {
	e.k.Restore(s.kernel)
	e.commands = s.log
	e.inbox.reset()
}
