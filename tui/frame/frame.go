// Package frame is what every view gets to see: the hops up to the cursor, the objects
// as they were at that moment, what is selected, and the words. A frame is made by the
// player whenever the cursor moves and never changed afterwards.
package frame

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/i18n"
)

// Object is any API object.
type Object interface {
	runtime.Object
	metav1.Object
}

// View is the cluster's state at one moment. It is read-only; objects must not be
// changed.
type View interface {
	Get(gvr schema.GroupVersionResource, namespace, name string) Object // nil for none
	List(gvr schema.GroupVersionResource, namespace string) []Object    // "" for all namespaces; ordered
	Now() kernel.Time
}

// The resources that views ask for.
var (
	Pods           = corev1.SchemeGroupVersion.WithResource("pods")
	Nodes          = corev1.SchemeGroupVersion.WithResource("nodes")
	Services       = corev1.SchemeGroupVersion.WithResource("services")
	Events         = corev1.SchemeGroupVersion.WithResource("events")
	Deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	ReplicaSets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	EndpointSlices = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
)

// Frame is one moment of a run as the learner sees it.
type Frame struct {
	Hops     []trace.Hop // in focus, up to and including the cursor
	Total    int         // hops known so far
	Origin   kernel.Time // when the story began
	More     bool        // the run goes on beyond them
	Branch   string      // name of the branch, "" for the first run
	View     View        // nil before the first hop
	Before   View        // one hop earlier, nil at the start
	Pod      trace.Ref   // the Pod that is followed
	Progress float64     // of the packet along its edge: 0…1
	Skipped  time.Duration
	Cat      *i18n.Catalog
	Metaphor bool
	Twin     []trace.Hop // the run that this one parted from, all of it that is known
}

// Hop returns the hop at the cursor, and false before the first one.
func (f *Frame) Hop() (trace.Hop, bool) {
	if len(f.Hops) == 0 {
		return trace.Hop{}, false
	}
	return f.Hops[len(f.Hops)-1], true
}

// Now returns the virtual time at the cursor: the moment that the view shows and that a
// kubectl at the cursor is answered from. At the last hop that is the present, which may
// be later than the hop.
func (f *Frame) Now() kernel.Time {
	if f.View != nil {
		return f.View.Now()
	}
	return f.Origin
}

// Elapsed returns how much virtual time the story has taken up to the cursor.
func (f *Frame) Elapsed() time.Duration { return f.Now().Sub(f.Origin) }

// Since returns when a hop happened, counted from the story's beginning.
func (f *Frame) Since(h trace.Hop) time.Duration { return h.At.Sub(f.Origin) }

// State says how far a step, a gate or a stage is.
type State uint8

// The states.
const (
	Todo State = iota
	Done
	Here
	Failed
	Waiting
	Retry
)

// Of returns the state that a hop's outcome leaves behind.
func Of(o trace.Outcome) State {
	switch o {
	case trace.Denied, trace.Failed:
		return Failed
	case trace.Retry:
		return Retry
	case trace.Waiting:
		return Waiting
	}
	return Done
}

// Steps returns the state of every step badge at the cursor, since somebody last asked
// for something: how it ended last, and Here for a good one at which the cursor stands. A
// report that is not yet Ready leaves its step waiting.
func (f *Frame) Steps() map[stage.Step]State {
	out := map[stage.Step]State{}
	for _, h := range f.Hops[f.asked():] {
		out[h.Step()] = Of(h.Outcome)
	}
	if p := f.FocusPod(); out["10"] == Done && p != nil && !PodReady(p) {
		out["10"] = Waiting
	}
	if h, ok := f.Hop(); ok && out[h.Step()] == Done {
		out[h.Step()] = Here
	}
	return out
}

// asked returns the index of the hop with which a client, not a controller, last asked for
// a change.
func (f *Frame) asked() int {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		h := f.Hops[i]
		if h.Stage == stage.Client || h.Stage == stage.Request && h.From == stage.Kubectl && (i == 0 || f.Hops[i-1].Stage != stage.Client) {
			return i
		}
	}
	return 0
}

// Stages returns the state of every stage for the current lap of the object at the
// cursor: hops since the request that began it.
func (f *Frame) Stages() map[stage.ID]State {
	out := map[stage.ID]State{}
	for _, h := range f.lapHops() {
		out[h.Stage] = Of(h.Outcome)
	}
	if h, ok := f.Hop(); ok && out[h.Stage] == Done {
		out[h.Stage] = Here
	}
	return out
}

// LastAt returns the newest hop at a stage in the current lap.
func (f *Frame) LastAt(id stage.ID) (trace.Hop, bool) {
	hops := f.lapHops()
	for i := len(hops) - 1; i >= 0; i-- {
		if hops[i].Stage == id {
			return hops[i], true
		}
	}
	return trace.Hop{}, false
}

func (f *Frame) lapHops() []trace.Hop {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		if StartsLap(f.Hops[i]) {
			return f.Hops[i:]
		}
	}
	return f.Hops
}

// StartsLap reports whether an object begins its way through the gates here.
func StartsLap(h trace.Hop) bool {
	return h.Stage == stage.Request && (h.Verb == "POST" || h.Verb == "create")
}

// Lap counts the objects that have begun their way up to the cursor.
func (f *Frame) Lap() int {
	n := 0
	for _, h := range f.Hops {
		if StartsLap(h) {
			n++
		}
	}
	return n
}

// Last returns the newest hop whose detail is a D.
func Last[D any](f *Frame, accept func(trace.Hop) bool) (d D, h trace.Hop, ok bool) {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		if v, is := f.Hops[i].Detail.(D); is && (accept == nil || accept(f.Hops[i])) {
			return v, f.Hops[i], true
		}
		if v, is := f.Hops[i].Detail.(*D); is && v != nil && (accept == nil || accept(f.Hops[i])) {
			return *v, f.Hops[i], true
		}
	}
	return d, h, false
}

// Why returns the chain of causes that ends at the cursor, first cause first, as far as
// it is among the hops in focus.
func (f *Frame) Why() []trace.Hop {
	h, ok := f.Hop()
	if !ok {
		return nil
	}
	chain := []trace.Hop{h}
	for i := len(f.Hops) - 1; i >= 0 && h.Cause != 0; i-- {
		if f.Hops[i].Seq == h.Cause {
			h = f.Hops[i]
			chain = append(chain, h)
		}
	}
	for i, j := 0, len(chain)-1; i < j; i, j = i+1, j-1 {
		chain[i], chain[j] = chain[j], chain[i]
	}
	return chain
}

// PodStages returns how each stage ended last for the Pod that is followed: what its box
// on the node shows.
func (f *Frame) PodStages() map[stage.ID]State {
	out := map[stage.ID]State{}
	for _, h := range f.Hops {
		if h.Object == f.Pod || h.Object.Name == "" {
			out[h.Stage] = Of(h.Outcome)
		}
	}
	if h, ok := f.Hop(); ok && out[h.Stage] == Done {
		out[h.Stage] = Here
	}
	return out
}
