package engine

import (
	"time"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
)

// Door is the cluster as clients reach it over HTTP. It fits serve.Run. A timeline has
// two, and each shows one moment:
//
//   - Outside is the learner's own prompt. It shows the moment at the cursor, which is what
//     the screen shows; what changes something there cuts what came after.
//   - Public is for everybody else, who knows nothing of a cursor. It shows the head: the
//     newest moment there is. Its time never goes back, except where the learner has cut it.
//
// Time passes at the head only: when the screen runs it on, when a command at the prompt
// waits (as fast as it can), and at the pace of real time while a client is connected
// at the public door (package kubectl).
type Door struct {
	t      *Timeline
	public bool
}

// Outside returns the door of the learner's own kubectl.
func (t *Timeline) Outside() Door { return Door{t, false} }

// Public returns the door for clients in other terminals.
func (t *Timeline) Public() Door { return Door{t, true} }

// Moved has a word whenever a client at the public door has moved the head since the last
// word was taken.
func (t *Timeline) Moved() <-chan struct{} { return t.moved }

// with has the engine that this door leads to do something.
func (d Door) with(write bool, do func(*Engine)) {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	if !d.public {
		do(d.t.reached(write))
		d.t.mark()
		return
	}
	before := d.t.head.Now()
	do(d.t.head)
	d.t.mark()
	if d.t.head.Now() != before {
		select {
		case d.t.moved <- struct{}{}:
		default: // there is a word already
		}
	}
}

// Do sends a request and runs the cluster until it is answered.
func (d Door) Do(r wire.Request) (a wire.Answer) {
	write := r.Verb != wire.Get && r.Verb != wire.List && r.Verb != wire.Watch && r.Verb != wire.Connect && !r.Options.DryRun
	d.with(write && !asks(r), func(e *Engine) { a = e.Do(r) })
	return a
}

// asks reports whether a POST only asks something: auth can-i, auth whoami.
func asks(r wire.Request) bool {
	return r.Resource.Group == "authorization.k8s.io" || r.Resource.Group == "authentication.k8s.io"
}

// doorWatch is a watch where it began.
type doorWatch struct {
	e  *Engine
	id uint64
}

// Watch begins a watch.
func (d Door) Watch(r wire.Request) (id uint64, a wire.Answer) {
	d.with(false, func(e *Engine) {
		w := doorWatch{e: e}
		if w.id, a = e.Watch(r); a.Err() != nil {
			return
		}
		d.t.lastWatch++
		id = d.t.lastWatch
		d.t.watches[id] = w
	})
	return id, a
}

// Watched takes the events that have come for a watch since the last call.
func (d Door) Watched(id uint64) []wire.WatchEvent {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	w, ok := d.t.watches[id]
	if !ok {
		return nil
	}
	return w.e.Watched(w.id)
}

// Unwatch ends a watch.
func (d Door) Unwatch(id, serverID uint64) {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	if w, ok := d.t.watches[id]; ok {
		delete(d.t.watches, id)
		w.e.Unwatch(w.id, serverID)
	}
}

// Advance lets virtual time pass.
func (d Door) Advance(by time.Duration) {
	d.with(false, func(e *Engine) { e.Advance(by) })
}

// look has something read from the engine that this door leads to.
func (d Door) look(read func(*Engine)) {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	if d.public {
		read(d.t.head)
		return
	}
	read(d.t.reached(false))
}

// Now returns the virtual time.
func (d Door) Now() (now kernel.Time) {
	d.look(func(e *Engine) { now = e.Now() })
	return now
}

// Err returns why the run cannot go on, or nil.
func (d Door) Err() (err error) {
	d.look(func(e *Engine) { err = e.Err() })
	return err
}

// Settled reports whether nothing more is to be expected for now: what was asked for is
// there, and the story has stood still for as long as that takes to be believed. Clients
// that watch may stop then.
func (d Door) Settled() (yes bool) {
	d.look(func(e *Engine) {
		last := e.acted
		if h := e.log.Hops(); len(h) > 0 {
			last = max(last, h[len(h)-1].At)
		}
		yes = e.k.Now() >= last.Add(e.quiet()) && e.Verdict().Ready
	})
	return yes
}
