package controllers

import (
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// logic is what one controller adds to an actor. Caches are made in its constructor
// with watch, whose callbacks put keys in the queue.
type logic interface {
	// gather collects what a sync of the key looks at; nil where there is nothing to do.
	gather(key string) any
	// sync brings the key closer to what is wanted. An error means: again, later.
	sync(r *run, input any) error
}

// starter is a logic that has something to do once the caches are filled, also after the
// component was stopped for a while.
type starter interface{ start() }

// weighty is a logic whose syncs take time that matters when they look at a great many
// objects: what happens meanwhile waits in the queue and is one sync.
type weighty interface {
	takes(input any) time.Duration
}

// stateful is a logic with state beside the caches.
type stateful interface {
	forget() // the process ends
	snapshot() any
	restore(any)
}

// restartCheck is how often a stopped controller looks whether it may go on.
const restartCheck = 500 * time.Millisecond

type (
	begin  struct{} // the process starts
	work   struct{} // it is a key's turn
	revive struct{} // look whether the component still is stopped
)

// actor is the loop that all controllers have in common.
type actor struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	cfg   Config
	id    kernel.ActorID
	cl    *client.Client // as the controller's own service account
	lists *client.Client // as the controller manager: upstream's informers are shared
	rec   *client.Recorder
	logic logic

	sources []source
	q       queue
	state   actorState
}

type actorState struct {
	Ready   bool // every cache has been filled once
	Stopped bool
	Working bool        // a work event is on its way
	Busy    kernel.Time // the last sync takes until then
	RunID   uint64
	Runs    map[string]runState
	Unseen  map[string][]written // by key: what the caches must show before the next sync
}

// written is one change that a sync made.
type written struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Revision        int64     // the cache must have come so far,
	Gone            types.UID // or not have this object alive
}

// source is a cache together with what its changes lead to.
type source interface {
	start()
	forget()
	synced() bool
	offer(ev any) bool
	shows(w written) bool
	resource() schema.GroupVersionResource
	snapshot() any
	restore(any)
}

type watched[T kube.Object] struct {
	*client.Cache[T]
	on func(client.Change[T])
}

func (w watched[T]) start()                                { w.Cache.Start() }
func (w watched[T]) forget()                               { w.Forget() }
func (w watched[T]) synced() bool                          { return w.Cache.Synced() }
func (w watched[T]) resource() schema.GroupVersionResource { return w.Cache.Resource() }
func (w watched[T]) snapshot() any                         { return w.Cache.Snapshot() }
func (w watched[T]) restore(s any)                         { w.Cache.Restore(s) }

func (w watched[T]) offer(ev any) bool {
	changes, mine := w.Handle(ev)
	for _, ch := range changes {
		w.on(ch)
	}
	return mine
}

func (w watched[T]) shows(x written) bool {
	if x.Gone == "" {
		return w.Revision() >= x.Revision
	}
	o, there := w.Get(x.Namespace, x.Name)
	return !there || o.GetUID() != x.Gone || o.GetDeletionTimestamp() != nil
}

// watch adds a cache of all objects of a kind to a controller.
func watch[T kube.Object](a *actor, on func(client.Change[T])) *client.Cache[T] {
	c := client.NewCache[T](a.lists, client.Selector{})
	a.sources = append(a.sources, watched[T]{c, on})
	return c
}

// quiet is the reaction to changes of a kind that a controller only looks up.
func quiet[T kube.Object](client.Change[T]) {}

func newActor(k *kernel.Kernel, log *trace.Log, board *fault.Board, newClient NewClient, cfg Config, e entry) *actor {
	id := kernel.ActorID("controller/" + e.name)
	a := &actor{k: k, log: log, board: board, cfg: cfg, id: id}
	a.cl = newClient(id, "system:serviceaccount:kube-system:"+e.account)
	a.lists = newClient(id, "system:kube-controller-manager")
	a.rec = client.NewRecorder(a.cl, e.source, "")
	a.q = queue{k: k, self: id, state: newQueueState()}
	a.state = newActorState()
	a.logic = e.build(a)
	return a
}

func newActorState() actorState {
	return actorState{Runs: map[string]runState{}, Unseen: map[string][]written{}}
}

// Handle implements kernel.Actor.
func (a *actor) Handle(ev kernel.Event) {
	if _, stopped := a.board.On(fault.ControllerManagerStopped); stopped {
		a.halt(ev)
		return
	}
	switch e := ev.(type) {
	case begin, revive, fault.Changed:
		if _, first := e.(begin); !first && !a.state.Stopped {
			return
		}
		a.state.Stopped = false
		for _, s := range a.sources {
			s.start()
		}
	case work:
		a.state.Working = false
		a.next()
	case due:
		a.q.ripe(e.Key)
	case wire.Answer:
		if tag, mine := e.Tag.(call); mine {
			a.answered(tag, e)
		} else {
			a.offer(ev)
		}
	default:
		a.offer(ev)
	}
	a.pump()
}

// halt drops all work: a process that does not run hears nothing and forgets everything.
func (a *actor) halt(ev kernel.Event) {
	if _, check := ev.(revive); check || !a.state.Stopped {
		if !a.state.Stopped {
			for _, s := range a.sources {
				s.forget()
			}
			if l, ok := a.logic.(stateful); ok {
				l.forget()
			}
			a.q.clear()
			runs := a.state.RunID
			a.state = newActorState()
			a.state.RunID, a.state.Stopped = runs, true
		}
		a.k.Send(a.id, restartCheck, revive{})
	}
}

func (a *actor) offer(ev any) {
	for _, s := range a.sources {
		if s.offer(ev) {
			return
		}
	}
}

// pump sees to it that the next key gets its turn.
func (a *actor) pump() {
	if !a.state.Ready {
		for _, s := range a.sources {
			if !s.synced() {
				return
			}
		}
		a.state.Ready = true
		if s, ok := a.logic.(starter); ok {
			s.start()
		}
	}
	if !a.state.Working && len(a.q.state.Order) > 0 {
		a.state.Working = true
		a.k.Send(a.id, max(a.cfg.Notice, a.state.Busy.Sub(a.k.Now())), work{})
	}
}

// next syncs the first key whose last sync the caches already show.
func (a *actor) next() {
	key, cause, ok := a.q.get(a.shown)
	if !ok {
		return
	}
	a.k.SetCause(cause)
	input := a.logic.gather(key)
	if input == nil {
		a.q.forget(key)
		a.q.done(key)
		return
	}
	if w, ok := a.logic.(weighty); ok {
		a.state.Busy = a.k.Now().Add(w.takes(input))
	}
	a.state.RunID++
	a.proceed(&run{a: a, state: runState{Key: key, ID: a.state.RunID, Started: a.k.Now(), Retry: a.q.state.Failures[key], Input: input}})
}

// shown reports whether the caches show everything that the key's last sync wrote.
func (a *actor) shown(key string) bool {
	left := a.state.Unseen[key]
	for len(left) > 0 && a.shows(left[0]) {
		left = left[1:]
	}
	if len(left) == 0 {
		delete(a.state.Unseen, key)
		return true
	}
	a.state.Unseen[key] = left
	return false
}

func (a *actor) shows(w written) bool {
	for _, s := range a.sources {
		if s.resource() == w.Resource {
			return s.shows(w)
		}
	}
	return true // a kind that this controller does not watch
}

func (a *actor) answered(tag call, ans wire.Answer) {
	s, ok := a.state.Runs[tag.Key]
	if !ok || s.ID != tag.Run {
		return // of a run before the component was stopped
	}
	s.Answers, s.Have = slices.Clone(s.Answers), slices.Clone(s.Have)
	s.Answers[tag.Index], s.Have[tag.Index] = ans, true
	a.state.Runs[tag.Key] = s
	if slices.Contains(s.Have, false) {
		return
	}
	a.proceed(&run{a: a, state: s})
}

// proceed executes a run as far as it gets.
func (a *actor) proceed(r *run) {
	err, done := r.execute(func() error { return a.logic.sync(r, r.state.Input) })
	key := r.state.Key
	if !done {
		a.state.Runs[key] = r.state
		return
	}
	delete(a.state.Runs, key)
	for _, ans := range r.state.Answers {
		if w, wrote := change(ans); wrote {
			a.state.Unseen[key] = append(slices.Clip(a.state.Unseen[key]), w)
		}
	}
	if err != nil {
		a.q.addRateLimited(key)
	} else {
		a.q.forget(key)
	}
	a.q.done(key)
}

// change returns what an answer says was written.
func change(ans wire.Answer) (written, bool) {
	if st, ok := ans.Object.(*metav1.Status); ok && ans.Verb == wire.Delete && ans.Err() == nil && st.Details != nil {
		return written{Resource: ans.Resource, Namespace: ans.Namespace, Name: ans.Name, Gone: st.Details.UID}, st.Details.UID != ""
	}
	obj, ok := ans.Object.(kube.Object)
	if ans.Err() != nil || !ok {
		return written{}, false
	}
	w := written{Resource: ans.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	switch ans.Verb {
	case wire.Delete:
		w.Gone = obj.GetUID()
		return w, w.Gone != ""
	case wire.Create, wire.Update, wire.Patch:
		w.Revision, _ = strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
		return w, true
	}
	return written{}, false
}

type actorSnapshot struct {
	State    actorState
	Queue    queueState
	Sources  []any
	Recorder any
	Logic    any
}

// Snapshot implements kernel.State.
func (a *actor) Snapshot() any {
	s := actorSnapshot{State: a.state, Queue: a.q.state.copy(), Recorder: a.rec.Snapshot()}
	s.State.Runs, s.State.Unseen = maps.Clone(a.state.Runs), maps.Clone(a.state.Unseen)
	for _, src := range a.sources {
		s.Sources = append(s.Sources, src.snapshot())
	}
	if l, ok := a.logic.(stateful); ok {
		s.Logic = l.snapshot()
	}
	return s
}

// Restore implements kernel.State.
func (a *actor) Restore(snap any) {
	s := snap.(actorSnapshot)
	a.state, a.q.state = s.State, s.Queue.copy()
	a.state.Runs, a.state.Unseen = maps.Clone(s.State.Runs), maps.Clone(s.State.Unseen)
	for i, src := range a.sources {
		src.restore(s.Sources[i])
	}
	a.rec.Restore(s.Recorder)
	if l, ok := a.logic.(stateful); ok {
		l.restore(s.Logic)
	}
}

// component is who the controllers are on the diagrams.
const component = stage.ControllerManager
