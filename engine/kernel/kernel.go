// Package kernel is the only place where time passes.
//
// A run is one goroutine and one queue, ordered by (virtual time, sequence). Each
// entry is an event for one actor; the actor handles it to the end, may send further
// events. How long that takes is the delay of what it sends. Nothing else moves: no wall
// clock, no goroutine, no global random source. Same seed, same commands: same run, to the
// bit.
//
// Queued events are data (structs of plain values and pointers to objects that nobody
// changes any more), never closures, so that a queue can be copied, hashed and shown.
//
// Left out: real parallelism. Two components that would run at the same instant are
// ordered by the sequence in which their events were sent.
package kernel

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/tidwall/btree"
)

// Time is virtual time in nanoseconds since the start of the run.
type Time int64

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Epoch is the wall-clock reading of virtual time zero, as simulated objects carry it.
var Epoch = time.Date(2026, time.November, 30, 8, 0, 0, 0, time.UTC)

// Wall returns the simulated wall-clock time at t.
func (t Time) Wall() time.Time { return Epoch.Add(time.Duration(t)) }

// ActorID names an actor: a component id such as "kube-scheduler" or "kubelet/node01".
type ActorID string

// Event is what an actor is told: a struct of plain values and pointers to objects
// that are never changed after they were sent. No func, no chan.
type Event any

// Actor reacts to one event at a time.
type Actor interface {
	Handle(ev Event)
}

// State is a part of the run that time travel must carry along: every actor that has
// state, and passive stores such as the trace. Snapshot returns a value that shares
// nothing mutable with the live one; Restore must not keep a reference into snap that
// a later change would write through (a snapshot is restored many times).
type State interface {
	Snapshot() (snap any)
	Restore(snap any)
}

// Timer identifies one queued event, for Cancel. The zero Timer identifies none.
type Timer struct {
	At  Time
	Seq uint64
}

// entry is one event in the queue. It is never changed: snapshots share it.
type entry struct {
	at    Time
	seq   uint64
	to    ActorID
	cause uint64
	ev    Event
}

func entryLess(a, b *entry) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.seq < b.seq
}

// turnsWithoutProgressMax bounds the events handled at one instant; beyond it the run
// is a livelock and stops with an error that names the actors involved.
const turnsWithoutProgressMax = 200_000

// Kernel runs one simulation. It is not safe for concurrent use.
type Kernel struct {
	seed   uint64
	now    Time
	seq    uint64
	cause  uint64
	queue  *btree.BTreeG[*entry]
	rand   map[string]*Rand
	actors map[ActorID]Actor
	states map[string]State
	names  []string // keys of states, sorted

	steps   uint64
	stalled int
	seen    map[ActorID]int // who was active while time stood still
	err     error
}

// New returns an empty kernel at time zero.
func New(seed uint64) *Kernel {
	return &Kernel{
		seed:   seed,
		queue:  newQueue(),
		rand:   map[string]*Rand{},
		actors: map[ActorID]Actor{},
		states: map[string]State{},
		seen:   map[ActorID]int{},
	}
}

// newQueue returns an empty queue. Its nodes are small: almost all events are due soon, so
// most of them come and go at one end.
func newQueue() *btree.BTreeG[*entry] {
	return btree.NewBTreeGOptions(entryLess, btree.Options{NoLocks: true, Degree: 8})
}

// Register adds an actor; if it is a State too, snapshots carry it. It panics on a
// second registration under one id: that is a mistake in the assembly.
func (k *Kernel) Register(id ActorID, a Actor) {
	if _, ok := k.actors[id]; ok {
		panic("kernel: actor registered twice: " + string(id))
	}
	k.actors[id] = a
	if s, ok := a.(State); ok {
		k.Attach(string(id), s)
	}
}

// Attach adds passive state under a name of its own.
func (k *Kernel) Attach(name string, s State) {
	if _, ok := k.states[name]; ok {
		panic("kernel: state attached twice: " + name)
	}
	k.states[name] = s
	i := sort.SearchStrings(k.names, name)
	k.names = append(k.names, "")
	copy(k.names[i+1:], k.names[i:])
	k.names[i] = name
}

// Now returns the current virtual time.
func (k *Kernel) Now() Time { return k.now }

// Steps returns how many events have been handled since time zero; together with a
// snapshot it names a place between two events exactly.
func (k *Kernel) Steps() uint64 { return k.steps }

// Err returns why the run cannot go on, or nil.
func (k *Kernel) Err() error { return k.err }

// Fail ends the run: what follows from here on would not be true. Going back to before it
// makes the run sound again.
func (k *Kernel) Fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// Send queues ev for the actor to after the given delay (negative counts as zero).
// Events sent for the same instant arrive in the order in which they were sent.
func (k *Kernel) Send(to ActorID, after time.Duration, ev Event) Timer {
	if after < 0 {
		after = 0
	}
	k.seq++
	e := &entry{at: k.now.Add(after), seq: k.seq, to: to, cause: k.cause, ev: ev}
	k.queue.Set(e)
	return Timer{At: e.at, Seq: e.seq}
}

// Cancel takes a queued event back; it reports whether the event was still queued.
func (k *Kernel) Cancel(t Timer) bool {
	if t.Seq == 0 {
		return false
	}
	_, ok := k.queue.Delete(&entry{at: t.At, seq: t.Seq})
	return ok
}

// Cause is the sequence number of the hop that led to what happens now (0: none). Sent
// events inherit it. Only package trace and restored requests set it.
func (k *Kernel) Cause() uint64 { return k.cause }

// SetCause makes hop the cause of everything that the current turn does from here on.
func (k *Kernel) SetCause(hop uint64) { k.cause = hop }

// Next returns when the next event is due, and false when nothing is queued.
func (k *Kernel) Next() (Time, bool) {
	e, ok := k.queue.Min()
	if !ok {
		return 0, false
	}
	return e.at, true
}

// Step handles the next event. It reports false when the queue is empty or the run has
// stopped with an error.
func (k *Kernel) Step() bool {
	for k.err == nil {
		e, ok := k.queue.PopMin()
		if !ok {
			return false
		}
		k.progress(e)
		if k.err != nil {
			return false
		}
		to, ok := k.actors[e.to]
		if !ok {
			continue // the actor is gone (a node that was removed): nobody hears it
		}
		k.now, k.cause = e.at, e.cause
		k.steps++
		to.Handle(e.ev)
		k.cause = 0
		return true
	}
	return false
}

// AdvanceTo handles every event due up to and including t, then sets the clock to t.
func (k *Kernel) AdvanceTo(t Time) {
	for k.err == nil {
		at, ok := k.Next()
		if !ok || at > t {
			break
		}
		k.Step()
	}
	if k.err == nil && t > k.now {
		k.now = t
	}
}

// SetClock moves the clock forward to t without handling anything, not even what is due
// at t itself: a command from outside is replayed at exactly its place between two
// events. It is an error if an earlier event is queued.
func (k *Kernel) SetClock(t Time) error {
	if at, ok := k.Next(); ok && at < t {
		return fmt.Errorf("an event is due at %s, before %s", time.Duration(at), time.Duration(t))
	}
	if t > k.now {
		k.now = t
	}
	return nil
}

func (k *Kernel) progress(e *entry) {
	if e.at > k.now {
		k.stalled = 0
		clear(k.seen)
		return
	}
	k.stalled++
	if k.stalled > turnsWithoutProgressMax/2 {
		k.seen[e.to]++
	}
	if k.stalled > turnsWithoutProgressMax {
		k.err = fmt.Errorf("the simulation does not get past %s: %d events at one instant, between %s",
			time.Duration(k.now), k.stalled, k.suspects())
	}
}

func (k *Kernel) suspects() string {
	ids := make([]string, 0, len(k.seen))
	for id := range k.seen {
		ids = append(ids, string(id))
	}
	sort.Strings(ids)
	return strings.Join(ids, ", ")
}

// Snapshot is a whole run at one instant. It may be restored any number of times, into
// the kernel that it came from or into another one with the same actors.
type Snapshot struct {
	now    Time
	seq    uint64
	steps  uint64
	queue  *btree.BTreeG[*entry]
	rand   map[string]Rand
	states map[string]any
}

// At returns the virtual time of the snapshot.
func (s *Snapshot) At() Time { return s.now }

// Steps returns how many events had been handled.
func (s *Snapshot) Steps() uint64 { return s.steps }

// Snapshot copies the run between two events.
func (k *Kernel) Snapshot() *Snapshot {
	s := &Snapshot{
		now: k.now, seq: k.seq, steps: k.steps, queue: k.queue.Copy(),
		rand:   make(map[string]Rand, len(k.rand)),
		states: make(map[string]any, len(k.states)),
	}
	for name, r := range k.rand {
		if *r != newRand(k.seed, name) { // one that nobody drew from is as good as none
			s.rand[name] = *r
		}
	}
	for name, st := range k.states {
		s.states[name] = st.Snapshot()
	}
	return s
}

// Restore puts the run back to s.
func (k *Kernel) Restore(s *Snapshot) {
	k.now, k.seq, k.steps, k.cause, k.err, k.stalled = s.now, s.seq, s.steps, 0, nil, 0
	k.queue = s.queue.Copy()
	// Streams keep their identity: components may hold on to a *Rand.
	for name, r := range k.rand {
		if was, ok := s.rand[name]; ok {
			*r = was
		} else {
			*r = newRand(k.seed, name)
		}
	}
	for name, was := range s.rand {
		*k.Rand(name) = was
	}
	for _, name := range k.names {
		if snap, ok := s.states[name]; ok {
			k.states[name].Restore(snap)
		}
	}
}

// Hash digests the snapshot: two runs are in the same state if and only if (but for
// chance) their hashes agree.
func (s *Snapshot) Hash() uint64 {
	names := make([]string, 0, len(s.states))
	for n := range s.states {
		names = append(names, n)
	}
	sort.Strings(names)
	h := newHasher()
	h.value(s.now)
	h.value(s.seq)
	s.queue.Scan(func(e *entry) bool {
		h.value(e.at)
		h.value(e.seq)
		h.value(e.to)
		h.value(e.cause)
		h.value(e.ev)
		return true
	})
	h.value(s.rand)
	for _, n := range names {
		h.value(n)
		h.value(s.states[n])
	}
	return h.sum()
}

// StateHash digests one named part of the snapshot; tests use it to say which component
// differs.
func (s *Snapshot) StateHash(name string) uint64 { return Hash(s.states[name]) }

// StateNames returns the names of the parts, sorted.
func (s *Snapshot) StateNames() []string {
	names := make([]string, 0, len(s.states))
	for n := range s.states {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
