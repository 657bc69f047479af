package engine

import (
	"sync"
	"time"

	"podwalk/engine/apiserver"
	"podwalk/engine/kernel"
	"podwalk/engine/trace"
)

// keyframeTurns is how many events lie between two keyframes: few enough that a seek,
// which re-runs at most that many, stays far below a screen frame.
const keyframeTurns = 1500

// keyframesMax is how many are kept. Where a run has more, every second one goes, and from
// then on they lie twice as far apart: a run may get as long as it likes, and a seek in it
// re-runs a fixed share of it at most.
const keyframesMax = 128

// Timeline is a run from its beginning to where it has come. Its head runs ahead; a
// second engine stands at the cursor and is moved back and forth by keyframes and exact
// re-running. Acting after going back cuts what came after the cursor: a branch.
//
// It may be used from several goroutines (the screen, a kubectl at the HTTP edge).
type Timeline struct {
	mu     sync.Mutex
	head   *Engine
	view   *Engine
	frames []keyframe
	gap    uint64 // events between two keyframes
	cursor int    // hops of the story that the view has seen
	// back says that somebody has gone back: the next action begins at the cursor.
	back   bool
	branch int
	// past holds the branches that were cut, newest last, for comparing.
	past []Branch
	// look is the cluster at the cursor for a command that so far only looks: time may pass
	// there, and the story does not move. nil: commands reach the head.
	look  *Engine
	spare *Engine // to be used as look again

	stream  func(*Engine) bool // of Stream
	stopped bool               // it said so
	// moved holds a word when somebody at the public door has moved the head.
	moved chan struct{}
	// watches are those of both doors, each at the engine on which it began.
	watches   map[uint64]doorWatch
	lastWatch uint64
}

type keyframe struct {
	hops int // hops in focus at that moment
	snap *Snapshot
}

// Branch is a story that was left: its hops, and where the new one left it.
type Branch struct {
	Number int
	Hops   []trace.Hop
	ForkAt int // the number of hops that both share
}

// branchesKept bounds the memory of cut branches.
const branchesKept = 8

// NewTimeline begins a timeline at the engine's present. The engine belongs to it from
// then on.
func NewTimeline(e *Engine) (*Timeline, error) {
	view, err := e.Fork()
	if err != nil {
		return nil, err
	}
	t := &Timeline{head: e, view: view, cursor: e.log.Len(), gap: keyframeTurns, moved: make(chan struct{}, 1), watches: map[uint64]doorWatch{}}
	t.keyframe()
	return t, nil
}

func (t *Timeline) keyframe() {
	t.frames = append(t.frames, keyframe{hops: t.head.log.Len(), snap: t.head.Snapshot()})
}

// Stream gives f the head whenever it has come further, until f returns false: then the
// run stops. Nobody wants to go back in such a run, so no keyframes are kept.
func (t *Timeline) Stream(f func(*Engine) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream = f
}

// mark adds a keyframe when the head has come far enough since the last one. Of a time in
// which nothing happens two are kept, its beginning and its newest: a cluster may be left
// alone for days.
func (t *Timeline) mark() {
	if t.stream != nil {
		t.stopped = t.stopped || !t.stream(t.head)
		return
	}
	n := len(t.frames)
	if t.head.k.Steps()-t.frames[n-1].snap.Turn() < t.gap {
		return
	}
	if hops := t.head.log.Len(); n >= 2 && t.frames[n-1].hops == hops && t.frames[n-2].hops == hops {
		t.frames = t.frames[:n-1]
	}
	t.keyframe()
	if len(t.frames) > keyframesMax {
		t.frames, t.gap = everySecond(t.frames), 2*t.gap
	}
}

func everySecond(frames []keyframe) []keyframe {
	kept := make([]keyframe, 0, len(frames)/2+1)
	for i := 0; i < len(frames); i += 2 {
		kept = append(kept, frames[i])
	}
	return kept
}

// Len returns the number of hops up to the head.
func (t *Timeline) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.log.Len()
}

// Cursor returns how many hops lie before the cursor.
func (t *Timeline) Cursor() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cursor
}

// Hops returns all hops up to the head. They must not be changed.
func (t *Timeline) Hops() []trace.Hop {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.log.Hops()
}

// Why returns the chain of causes of a hop, first cause first.
func (t *Timeline) Why(seq uint64) []trace.Hop {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.log.Why(seq)
}

// Origin returns when the story began.
func (t *Timeline) Origin() kernel.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.Origin()
}

// Acted returns when somebody outside last changed something, or the story began.
func (t *Timeline) Acted() kernel.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.acted
}

// HeadTime returns how far the head has come.
func (t *Timeline) HeadTime() kernel.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.Now()
}

// Branch returns the number of the present branch (0 at first) and those that were cut.
func (t *Timeline) Branch() (int, []Branch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.branch, t.past[:len(t.past):len(t.past)]
}

// Run lets the head run on until the given number of further hops in focus has come or
// within has passed, whichever is first. It reports whether any hop came.
func (t *Timeline) Run(hops int, within time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	until := t.head.Now().Add(within)
	before := t.head.log.Len()
	for t.head.log.Len() < before+hops {
		at, ok := t.head.k.Next()
		if !ok || at > until || !t.head.k.Step() {
			if t.head.k.Err() == nil {
				t.head.k.AdvanceTo(until)
			}
			break
		}
		t.mark()
	}
	return t.head.log.Len() > before
}

// Settle runs the head until everything that was asked for is true or the deadline has
// passed.
func (t *Timeline) Settle(deadline time.Duration) Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.head.settle(deadline, func() bool { t.mark(); return !t.stopped })
	t.mark()
	return v
}

// Verdict judges the run at the head.
func (t *Timeline) Verdict() Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head.Verdict()
}

// Seek moves the cursor so that n hops lie before it, and returns the cluster as it was
// then (one event may record several hops; the cluster is shown after it). At the head it
// is the cluster as it is now.
func (t *Timeline) Seek(n int) View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seek(n)
}

func (t *Timeline) seek(n int) View {
	n = max(0, min(n, t.head.log.Len()))
	t.cursor, t.back = n, n < t.head.log.Len()
	best := t.frames[0]
	for _, f := range t.frames {
		if f.hops > n || t.back && f.hops == n && best.hops == n {
			break
		}
		best = f
	}
	if have := t.view.log.Len(); have > n || have < best.hops || t.view.k.Steps() < best.snap.Turn() {
		t.view.Restore(best.snap)
	}
	there := func() bool { return t.view.log.Len() >= n }
	if !t.back { // at the head: the present, with what has come of the last hop
		there = func() bool { return false }
	}
	t.view.follow(t.head.commands, there, t.head.k.Steps())
	if !t.back {
		_ = t.view.k.SetClock(t.head.Now()) // nothing is due before: the head was here
	}
	return View{t.view.parts.api.View(), t.view.k.Now(), func() uint64 { return t.view.Snapshot().Hash() }}
}

// follow re-runs the recorded commands until done says so, but not past turn.
func (e *Engine) follow(commands []Command, done func() bool, turn uint64) {
	for !done() && e.k.Steps() <= turn {
		if i := len(e.commands); i < len(commands) && commands[i].Turn <= e.k.Steps() {
			c := commands[i]
			if e.k.SetClock(c.At) != nil {
				return // cannot be: the head was here before
			}
			e.commands = append(e.commands, c)
			e.perform(c)
			continue
		}
		if e.k.Steps() == turn || !e.k.Step() {
			return
		}
	}
}

// View is the cluster at one instant, to look at. It stays as it is.
type View struct {
	apiserver.View
	now  kernel.Time
	hash func() uint64
}

// Hash digests the whole state at that instant. It must be called before the next Seek.
func (v View) Hash() uint64 { return v.hash() }

// Now returns the virtual time.
func (v View) Now() kernel.Time { return v.now }

// Here declares that something is about to be done at the cursor: where somebody has gone
// back, what came after is cut and a new branch begins. One command may then act several
// times.
func (t *Timeline) Here() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut()
}

// Look declares that a command begins at the cursor. Where somebody has gone back, it is
// answered from a copy of that instant, and only when it changes something is what came
// after the cursor cut.
func (t *Timeline) Look() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look = nil
	if !t.back {
		return nil
	}
	if t.spare == nil {
		e, err := t.head.Fork()
		if err != nil {
			return err
		}
		t.spare = e
	}
	t.seek(t.cursor)
	t.spare.Restore(t.view.Snapshot())
	t.look = t.spare
	return nil
}

// reached is the engine that a client at the learner's own prompt speaks to.
func (t *Timeline) reached(write bool) *Engine {
	if write && t.look != nil {
		t.cut()
		t.look = nil
	}
	if t.look != nil {
		return t.look
	}
	return t.head
}

// Act does something at the head. New hops lie ahead of the cursor, which stays.
func (t *Timeline) Act(do func(*Engine) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := do(t.head)
	t.mark()
	return err
}

// cut makes the cursor's instant the head's.
func (t *Timeline) cut() {
	if !t.back {
		return
	}
	t.seek(t.cursor)
	t.back, t.look = false, nil
	t.branch++
	t.past = append(t.past, Branch{Number: t.branch - 1, Hops: t.head.log.Hops(), ForkAt: t.view.log.Len()})
	if len(t.past) > branchesKept {
		t.past = t.past[1:]
	}
	t.head.Restore(t.view.Snapshot())
	keep := t.frames[:1]
	for _, f := range t.frames[1:] {
		if f.snap.Turn() <= t.head.k.Steps() {
			keep = append(keep, f)
		}
	}
	t.frames = keep[:len(keep):len(keep)]
}
