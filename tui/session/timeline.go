// Package session makes what the screens play out of the engine, the lessons and the
// exercises: it is the one place where tui/app's interfaces meet them.
package session

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine"
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/exercises"
	"podwalk/tui/frame"
)

const (
	pieceHops = 12              // hops that one RunMore asks for
	pieceTime = 5 * time.Second // virtual time that one RunMore may take
	quietMax  = 40 * time.Second
)

// Timeline shows an engine run to the player. Hops are kept here, so that drawing never
// waits for the engine.
type Timeline struct {
	run    *engine.Run
	hops   []trace.Hop
	quiet  time.Duration // virtual time without a hop
	acted  kernel.Time   // when somebody last changed something
	idle   bool          // the run is not to go on by itself
	branch int           // shown from the first fault on
	broken bool
	twin   []trace.Hop // the run as it was before it was broken
	focus  trace.Ref   // the Pod that is followed; the first of the story where empty
}

// NewTimeline returns the player's view of a run. A guided run does not go on by itself:
// its lesson says how far.
func NewTimeline(r *engine.Run, guided bool) *Timeline {
	t := &Timeline{run: r, idle: guided}
	t.Sync()
	return t
}

// Sync takes over the hops that have come, or gone, since the last call.
func (t *Timeline) Sync() {
	t.hops = t.run.Hops()
	t.branch, _ = t.run.Branch()
	if at := t.run.Acted(); at != t.acted {
		t.acted, t.quiet = at, 0
	}
}

// Len implements player.Timeline.
func (t *Timeline) Len() int { return len(t.hops) }

// Hop implements player.Timeline.
func (t *Timeline) Hop(i int) trace.Hop { return t.hops[i] }

// At implements player.Timeline.
func (t *Timeline) At(i int) frame.View { return view{t.run.Seek(i + 1)} }

// RunMore implements player.Timeline. A story that has come to its end, or in which
// nothing has happened for long, does not go on.
func (t *Timeline) RunMore() (bool, error) {
	if t.idle {
		t.hops = t.run.Hops()
		return false, nil
	}
	before := t.run.HeadTime()
	came := t.run.Run(pieceHops, pieceTime)
	t.hops = t.run.Hops()
	if came {
		t.quiet = 0
	} else {
		t.quiet += t.run.HeadTime().Sub(before)
	}
	limit := quietMax
	v := t.run.Verdict()
	if v.Ready {
		limit = pieceTime
	}
	deadline := t.run.Deadline()
	if deadline <= 0 {
		deadline = engine.DeadlineDefault
	}
	over := t.quiet >= limit || t.run.HeadTime().Sub(t.run.Acted()) >= deadline
	err := t.run.Engine(func(e *engine.Engine) error { return e.Err() })
	return !over, err
}

// Branch implements player.Timeline: a branch has a name once something was broken.
func (t *Timeline) Branch() string {
	if !t.broken || t.branch == 0 {
		return ""
	}
	return fmt.Sprint(t.branch)
}

// Twin implements player.Timeline: the run as it was before the first fault; where nothing
// is broken, the branch that was left last.
func (t *Timeline) Twin() []trace.Hop {
	if t.twin != nil {
		return t.twin
	}
	if _, past := t.run.Branch(); len(past) > 0 {
		return past[len(past)-1].Hops
	}
	return nil
}

// breaks remembers the run as it is: a fault is about to come in.
func (t *Timeline) breaks() {
	if !t.broken {
		t.broken, t.twin = true, t.run.Hops()
	}
}

// Origin implements player.Timeline.
func (t *Timeline) Origin() kernel.Time { return t.run.Origin() }

// Focus implements player.Timeline.
func (t *Timeline) Focus() trace.Ref {
	if t.focus.Name != "" {
		return t.focus
	}
	for _, h := range t.hops {
		if h.Object.Kind == "Pod" && h.Object.Name != "" {
			return h.Object
		}
	}
	return trace.Ref{}
}

// goTo brings the engine to the moment at which a fault is to happen: the cursor, or, for
// a mistake in a manifest whose request is still on its way, when the workload has been
// saved and its client knows.
func (t *Timeline) goTo(f exercises.Fault, cursor int) {
	saved := func(h trace.Hop) bool {
		return h.Stage == stage.Persist && h.Outcome == trace.OK && (h.Object.Kind == "Pod" || h.Object.Kind == "Deployment")
	}
	if !f.Rewrites() || slices.ContainsFunc(t.hops[:max(cursor+1, 0)], saved) {
		t.run.Seek(cursor + 1)
		return
	}
	if i := slices.IndexFunc(t.hops, saved); i >= 0 {
		cursor = i
	}
	t.run.Seek(cursor + 1)
	t.run.Here()
	for n := 0; n < answerHops && t.run.Verdict().Ready; n++ { // nothing was asked for yet
		t.run.Run(1, time.Second)
	}
	t.run.Seek(t.run.Len())
}

// answerHops is how many hops may lie between saving an object and its client's knowing.
const answerHops = 10

// index returns the place of the hop with a sequence number, -1 for none.
func (t *Timeline) index(seq uint64) int {
	for i, h := range t.hops {
		if h.Seq == seq {
			return i
		}
	}
	return -1
}

// view is an engine's View as the panes see it.
type view struct{ v engine.View }

func (w view) Now() kernel.Time { return w.v.Now() }

func (w view) Get(gvr schema.GroupVersionResource, namespace, name string) frame.Object {
	o, ok := w.v.Get(gvr, namespace, name)
	if !ok {
		return nil
	}
	obj, _ := o.(frame.Object)
	return obj
}

func (w view) List(gvr schema.GroupVersionResource, namespace string) []frame.Object {
	var out []frame.Object
	for _, o := range w.v.List(gvr, namespace) {
		if obj, ok := o.(frame.Object); ok {
			out = append(out, obj)
		}
	}
	return out
}
