package serve

import (
	"context"
	"sync"
	"time"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
)

// Backend is what the HTTP surface needs of a running cluster. It is safe for concurrent
// use: every connection has a goroutine of its own.
type Backend interface {
	// Do sends a request and lets the cluster run until it is answered.
	Do(ctx context.Context, r wire.Request) wire.Answer
	// Watch begins a watch. The Stream is nil where the Answer is a refusal.
	Watch(ctx context.Context, r wire.Request) (wire.Answer, Stream)
	// Now is the virtual time.
	Now() kernel.Time
	// Wait lets the client wait for up to d of virtual time; it returns early when ctx ends.
	Wait(ctx context.Context, d time.Duration)
}

// Stream is one watch.
type Stream interface {
	// Next returns the next event. It blocks until there is one, and reports false when
	// the watch is over: the client has gone, or its virtual deadline has passed.
	Next(ctx context.Context) (wire.WatchEvent, bool)
	// Close gives the watch up.
	Close()
}

// Run is a simulated cluster as Shared drives it; *engine.Engine is one.
type Run interface {
	Do(r wire.Request) wire.Answer
	Watch(r wire.Request) (id uint64, a wire.Answer)
	Watched(id uint64) []wire.WatchEvent
	Unwatch(id, serverID uint64)
	Advance(d time.Duration)
	Now() kernel.Time
	Err() error
}

// Mode is who makes virtual time pass while clients are waiting.
type Mode int

const (
	// Automatic time jumps: a client that waits makes it pass, as fast as it can.
	Automatic Mode = iota
	// Followed time is somebody else's (the player's, a real-time clock's): clients that
	// wait look again whenever Shared.With has been used.
	Followed
)

// quantum is how far automatic time goes before a waiting client looks again.
const quantum = 10 * time.Millisecond

// Shared makes one Run usable by many connections and its owner at once.
type Shared struct {
	mu   sync.Mutex
	run  Run
	mode Mode
	// quiet waits until clients have reacted to an event (a kubectl that waits for a
	// condition hangs up when it is true), so that automatic time may go on.
	quiet   func(context.Context)
	changed chan struct{} // closed and replaced when the run has moved
	limit   kernel.Time   // automatic time does not pass this; 0 for none
}

// NewShared returns a Shared over run.
func NewShared(run Run, mode Mode) *Shared {
	return &Shared{run: run, mode: mode, quiet: pause, changed: make(chan struct{})}
}

// grace is the real time that clients get to react who cannot be asked.
const grace = 50 * time.Millisecond

func pause(ctx context.Context) {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// SetQuiet sets how to wait until the clients have reacted to what they were told. By
// default they just get a little time.
func (s *Shared) SetQuiet(quiet func(context.Context)) { s.With(func(Run) { s.quiet = quiet }) }

// SetLimit bounds automatic time: at the limit waiting clients just wait. Zero lifts it.
func (s *Shared) SetLimit(t kernel.Time) { s.With(func(Run) { s.limit = t }) }

// With gives the owner the run for as long as f takes; waiting clients look again after.
func (s *Shared) With(f func(Run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.run)
	s.wake()
}

func (s *Shared) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Now implements Backend.
func (s *Shared) Now() kernel.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run.Now()
}

// Do implements Backend.
func (s *Shared) Do(_ context.Context, r wire.Request) wire.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.run.Do(r)
	s.wake()
	return a
}

// Wait implements Backend.
func (s *Shared) Wait(ctx context.Context, d time.Duration) {
	end := s.Now().Add(d)
	for ctx.Err() == nil && s.Now() < end {
		if !s.pass(ctx, end) {
			return
		}
	}
}

// Watch implements Backend.
func (s *Shared) Watch(_ context.Context, r wire.Request) (wire.Answer, Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, a := s.run.Watch(r)
	s.wake()
	if a.Err() != nil {
		return a, nil
	}
	st := &stream{s: s, id: id, server: a.WatchID}
	if r.Options.Timeout > 0 {
		st.deadline = s.run.Now().Add(r.Options.Timeout)
	}
	return a, st
}

// pass makes a little virtual time pass, or waits until somebody else has: not beyond
// end (0: no end). It reports false when there is nothing to wait for any more.
func (s *Shared) pass(ctx context.Context, end kernel.Time) bool {
	s.mu.Lock()
	if s.run.Err() != nil {
		s.mu.Unlock()
		return false
	}
	now, changed := s.run.Now(), s.changed
	if s.mode == Automatic && (s.limit == 0 || now < s.limit) {
		d := quantum
		if end != 0 {
			d = min(d, end.Sub(now))
		}
		if s.limit != 0 {
			d = min(d, s.limit.Sub(now))
		}
		s.run.Advance(d)
		s.wake()
		s.mu.Unlock()
		return ctx.Err() == nil
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
		return true
	}
}

type stream struct {
	s        *Shared
	id       uint64
	server   uint64
	deadline kernel.Time
	queue    []wire.WatchEvent
	handed   bool // events went to the client since time last passed
	synced   bool // among them the end of the initial events
	closed   bool
}

// Next implements Stream.
func (st *stream) Next(ctx context.Context) (wire.WatchEvent, bool) {
	for ctx.Err() == nil && !st.closed {
		if len(st.queue) == 0 {
			st.fetch()
		}
		if len(st.queue) > 0 {
			ev := st.queue[0]
			st.queue = st.queue[1:]
			st.handed = true
			st.synced = st.synced || ev.Initial
			if ev.Type == wire.Closed {
				return ev, false
			}
			return ev, true
		}
		if st.deadline != 0 && st.s.Now() >= st.deadline {
			return wire.WatchEvent{}, false
		}
		if st.handed && !st.react(ctx) {
			return wire.WatchEvent{}, false
		}
		if !st.s.pass(ctx, st.deadline) {
			return wire.WatchEvent{}, false
		}
	}
	return wire.WatchEvent{}, false
}

// syncPoll is how often client-go's informers look whether the initial events have all
// come. Until then the client sleeps, but not because it has nothing to do.
const syncPoll = 120 * time.Millisecond

// react gives the client its time to hang up.
func (st *stream) react(ctx context.Context) bool {
	if st.synced {
		select {
		case <-ctx.Done():
		case <-time.After(syncPoll):
		}
	}
	st.handed, st.synced = false, false
	st.s.mu.Lock()
	automatic, quiet := st.s.mode == Automatic, st.s.quiet
	st.s.mu.Unlock()
	if automatic {
		quiet(ctx)
	}
	return ctx.Err() == nil
}

func (st *stream) fetch() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.queue = st.s.run.Watched(st.id)
}

// Close implements Stream.
func (st *stream) Close() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.closed {
		return
	}
	st.closed = true
	st.s.run.Unwatch(st.id, st.server)
	st.s.wake()
}

// Until blocks until virtual time has reached t. It does not make time pass itself. It
// reports false when ctx ended first.
func (s *Shared) Until(ctx context.Context, t kernel.Time) bool {
	for {
		s.mu.Lock()
		now, changed := s.run.Now(), s.changed
		s.mu.Unlock()
		if now >= t {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// Elapse lets d of virtual time pass, if time is automatic and not at its limit.
func (s *Shared) Elapse(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == Automatic && (s.limit == 0 || s.run.Now() < s.limit) {
		s.run.Advance(d)
		s.wake()
	}
}

// Settled reports whether the run says that nothing more is to be expected for now.
func (s *Shared) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.run.(interface{ Settled() bool })
	return ok && r.Settled()
}
