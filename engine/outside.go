package engine

import (
	"slices"
	"strings"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// outside is the actor that stands for everybody who is not part of the cluster: kubectl
// and other clients at the HTTP edge, and the scenario's own hands.
const outside kernel.ActorID = "outside"

// inbox keeps the answers and watch events for callers outside, and has the engine note
// what was asked for. It is no part of the kernel's state: it only listens.
type inbox struct {
	e       *Engine
	answers map[uint64]wire.Answer
	watches map[uint64]*outsideWatch // by the command that began them
	callers map[uint64]*outsideWatch // by the number that the caller has
	last    uint64
}

// outsideWatch is one watch of a caller outside.
type outsideWatch struct {
	command uint64
	request *wire.Request
	queue   []wire.WatchEvent
}

// watchBuffer is how many events wait for a caller who does not take them; then, as a real
// API server does with a client that is too slow, the watch is ended.
const watchBuffer = 10_000

type outsideTag struct{ ID uint64 }

func newInbox(e *Engine) *inbox {
	return &inbox{e: e, answers: map[uint64]wire.Answer{}, watches: map[uint64]*outsideWatch{}, callers: map[uint64]*outsideWatch{}}
}

// reset ends every watch: whoever still watches learns that the run has moved under him.
func (b *inbox) reset() {
	for _, w := range b.watches {
		w.queue = append(w.queue, wire.WatchEvent{Type: wire.Closed})
	}
	clear(b.watches)
	clear(b.answers)
}

// Handle implements kernel.Actor.
func (b *inbox) Handle(ev kernel.Event) {
	switch e := ev.(type) {
	case wire.Answer:
		if t, ok := e.Tag.(outsideTag); ok {
			b.answers[t.ID] = e
			b.e.note(b.e.commands[t.ID-1], e)
		}
	case wire.WatchEvent:
		if t, ok := e.Tag.(outsideTag); ok {
			b.event(t.ID, e)
		}
	}
}

func (b *inbox) event(command uint64, e wire.WatchEvent) {
	w := b.watches[command]
	if w == nil {
		return
	}
	if len(w.queue) >= watchBuffer {
		w.queue = []wire.WatchEvent{{Type: wire.Closed}}
		delete(b.watches, command)
		return
	}
	w.queue = append(w.queue, e)
}

// Admin is the cluster's administrator, as kubeadm's admin.conf has it.
var Admin = wire.Credential{CommonName: "kubernetes-admin", Orgs: []string{"system:masters"}}

// Do sends a request from outside and runs the cluster until it is answered.
func (e *Engine) Do(r wire.Request) wire.Answer { return e.do(&r) }

func (e *Engine) do(r *wire.Request) wire.Answer {
	id := e.submit(r)
	for {
		if a, ok := e.inbox.answers[id]; ok {
			delete(e.inbox.answers, id)
			return a
		}
		if !e.k.Step() {
			return wire.Answer{Transport: "the simulation has stopped"}
		}
	}
}

// submit records the request as a command and sends it.
func (e *Engine) submit(r *wire.Request) uint64 {
	id := uint64(len(e.commands) + 1)
	r.Tag, r.ReplyTo = outsideTag{id}, outside
	if r.Client == "" {
		r.Client = stage.Kubectl
	}
	if r.Client == stage.Kubectl {
		if v, on := e.board.On(fault.ClientToken); on {
			r.Credential = wire.Credential{Token: v}
		} else if v, on := e.board.On(fault.ClientUser); on {
			r.Credential = wire.Credential{CommonName: v}
		}
	}
	switch r.Verb {
	case wire.Get, wire.List, wire.Watch:
		r.Background = true // looking is not part of the story
	}
	e.perform(e.record(Command{Request: r, Aside: e.aside != nil}))
	return id
}

// send puts a request on its way: the first hop of everything that kubectl asks for.
func (e *Engine) send(r wire.Request) {
	e.log.Record(trace.Hop{
		Stage: stage.Client, From: r.Client, To: stage.APIServer, Verb: method(r.Verb), Object: refOf(r),
		Detail: trace.HTTP{Method: method(r.Verb), Path: r.Path, Body: r.Body}, Background: r.Background,
	})
	e.k.Send(kernel.ActorID(stage.APIServer), e.parts.cfg.ClientLatency, r)
	e.k.SetCause(0)
}

func method(v wire.Verb) string {
	switch v {
	case wire.Create:
		return "POST"
	case wire.Update:
		return "PUT"
	case wire.Patch:
		return "PATCH"
	case wire.Delete, wire.DeleteCollection:
		return "DELETE"
	}
	return "GET"
}

func refOf(r wire.Request) trace.Ref {
	ref := trace.Ref{Kind: r.Resource.Resource, Namespace: r.Namespace, Name: r.Name}
	if k, ok := kube.ByResource(r.Resource); ok {
		ref.Kind = k.Kind.Kind
	}
	if ref.Name == "" {
		ref.Name = kube.NameIn(r.Body)
	}
	return ref
}

// note remembers what was asked for, and what was refused: the verdict looks at it.
func (e *Engine) note(c Command, a wire.Answer) {
	r := *c.Request
	if err := a.Err(); err != nil {
		if !benign(r, a) {
			e.noteRefused(c, a.Hop, err)
		}
		return
	}
	if r.Options.DryRun {
		return
	}
	if r.Verb == wire.Delete || r.Verb == wire.DeleteCollection || r.Subresource == "eviction" {
		e.noteTaken(r)
	}
	if r.Subresource != "" || a.Object == nil {
		return
	}
	if r.Verb == wire.Create || r.Verb == wire.Patch || r.Verb == wire.Update {
		k, ok := kube.KindOf(a.Object)
		if !ok {
			return
		}
		m := kube.Meta(a.Object)
		ref := trace.Ref{Kind: k.Kind.Kind, Namespace: m.GetNamespace(), Name: m.GetName()}
		e.taken = slices.DeleteFunc(slices.Clone(e.taken), func(have trace.Ref) bool { return have == ref })
		if !c.Aside && !slices.Contains(e.asked, ref) {
			e.asked = append(e.asked, ref)
		}
	}
}

// noteRefused remembers that a request came to nothing: refused by a gate, or never
// answered at all.
func (e *Engine) noteRefused(c Command, hop uint64, err error) {
	if hop == 0 {
		hop = e.log.Record(trace.Hop{
			Stage: stage.Request, From: c.Request.Client, To: stage.APIServer, Verb: method(c.Request.Verb), Object: refOf(*c.Request),
			Outcome: trace.Failed, Message: err.Error(), Background: true,
		})
	}
	if c.Aside {
		if e.aside != nil { // not when the past is played again
			e.aside.refused = append(e.aside.refused, hop)
		}
		return
	}
	if len(e.refused) == 0 {
		e.log.Promote(hop) // the verdict speaks of it
	}
	e.refused = append(e.refused, hop)
}

// noteTaken remembers that somebody outside has deleted something: that it is gone is then
// as it should be.
func (e *Engine) noteTaken(r wire.Request) {
	about := refOf(r)
	if r.Verb != wire.DeleteCollection {
		e.taken = append(e.taken, about)
		return
	}
	for _, ref := range e.asked {
		if ref.Kind != about.Kind || ref.Namespace != about.Namespace {
			continue
		}
		if o, there := e.Get(r.Resource, ref.Namespace, ref.Name); !there || kube.Meta(o).GetDeletionTimestamp() != nil {
			e.taken = append(e.taken, ref)
		}
	}
}

// benign refusals are part of how kubectl works: apply asks whether an object exists,
// and a client that looks for something may not find it.
func benign(r wire.Request, a wire.Answer) bool {
	return a.Code == 404 && (r.Verb == wire.Get || r.Verb == wire.List)
}

// Watch begins a watch from outside. The caller polls Watched, and ends it with Unwatch.
func (e *Engine) Watch(r wire.Request) (id uint64, a wire.Answer) {
	r.Verb = wire.Watch
	b := e.inbox
	w := &outsideWatch{command: uint64(len(e.commands) + 1), request: &r}
	b.watches[w.command] = w
	if a = e.do(&r); a.Err() != nil {
		delete(b.watches, w.command)
		return 0, a
	}
	b.last++
	b.callers[b.last] = w
	return b.last, a
}

// Watched takes the events that have come for a watch since the last call.
func (e *Engine) Watched(id uint64) []wire.WatchEvent {
	w := e.inbox.callers[id]
	if w == nil {
		return nil
	}
	q := w.queue
	w.queue = nil
	return q
}

// Unwatch ends a watch; serverID is the WatchID of its answer. A watch that began in what
// has been cut since is unknown to the cluster.
func (e *Engine) Unwatch(id, serverID uint64) {
	w := e.inbox.callers[id]
	if w == nil {
		return
	}
	delete(e.inbox.callers, id)
	delete(e.inbox.watches, w.command)
	if n := uint64(len(e.commands)); w.command <= n && e.commands[w.command-1].Request == w.request {
		e.perform(e.record(Command{Cancel: serverID}))
	}
}

// Switch flips a fault point.
func (e *Engine) Switch(s scenario.Switch) error {
	if !fault.Known(fault.Point(s.Point)) {
		return unknownPoint(s.Point)
	}
	e.perform(e.record(Command{Switch: &s}))
	return nil
}

// flip sets the board and tells the component's actors, for those that must act at once
// rather than look when they next have something to do.
func (e *Engine) flip(s scenario.Switch) {
	p := fault.Point(s.Point)
	if s.Clear {
		e.board.Clear(p)
	} else {
		_ = e.board.Set(p, s.Value) // Switch has checked the name
	}
	component, _, _ := strings.Cut(s.Point, ".")
	for _, id := range e.parts.actorsOf(component) {
		e.k.Send(id, 0, fault.Changed{Point: p})
	}
}

func unknownPoint(p string) error {
	var names []string
	for _, q := range fault.Points() {
		names = append(names, string(q))
	}
	return &UnknownError{What: "fault point", Name: p, Known: names}
}

// UnknownError is a name that does not exist, with those that do.
type UnknownError struct {
	What, Name string
	Known      []string
}

func (e *UnknownError) Error() string {
	return "there is no " + e.What + " " + `"` + e.Name + `"; there are: ` + strings.Join(e.Known, ", ")
}
