package client

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// Upstream's limits (k8s.io/client-go/tools/record/events_cache.go).
const (
	similarMax      = 10 // events that differ only in their message, before they are combined
	similarInterval = 600 * time.Second
	spamBurst       = 25
	spamRefill      = 300 * time.Second // one more event an object
	finishSeries    = 6 * time.Minute
	rememberedMax   = 4096
)

// forgetEvery is how often a recorder that remembers much looks for what it may forget.
const forgetEvery = time.Minute

// Recorder writes Events about objects: core/v1 ones with upstream's aggregation (the
// kubelet and the controllers), or events.k8s.io ones with series (the scheduler). It
// belongs to one actor, is part of its snapshot, and ignores the API server's answers,
// as upstream does but for its retries.
type Recorder struct {
	c         *Client
	component string
	host      string
	series    bool

	state recorderState
}

type recorderState struct {
	Seen    map[string]seenEvent    // by upstream's event key
	Similar map[string]similarGroup // by everything but the message
	Tokens  map[string]tokenBucket  // by source and object
	Series  map[string]seenSeries
	Forgot  time.Time // when it last looked for what it may forget
}

type seenEvent struct {
	Name  string
	Count int32
	First metav1.Time
	Last  time.Time
}

type similarGroup struct {
	Messages string // those seen, each followed by a zero byte
	Count    int
	Last     time.Time
}

type tokenBucket struct {
	Left float64
	Last time.Time
}

type seenSeries struct {
	Event *eventsv1.Event
	Last  time.Time
}

type recordedEvent struct{ Component string }

// NewRecorder returns the recorder of a component that writes core/v1 Events; host is
// the node's name for a kubelet, else "".
func NewRecorder(c *Client, component, host string) *Recorder {
	return &Recorder{c: c, component: component, host: host, state: newRecorderState()}
}

// NewSeriesRecorder returns one that writes events.k8s.io/v1 Events.
func NewSeriesRecorder(c *Client, component string) *Recorder {
	return &Recorder{c: c, component: component, series: true, state: newRecorderState()}
}

func newRecorderState() recorderState {
	return recorderState{map[string]seenEvent{}, map[string]similarGroup{}, map[string]tokenBucket{}, map[string]seenSeries{}, time.Time{}}
}

// Event records a thing that happened to an object. eventType is Normal or Warning.
func (r *Recorder) Event(about kube.Object, eventType, reason, message string) {
	r.EventAt(about, "", eventType, reason, message)
}

// EventAt is Event about a part of the object, such as "spec.containers{nginx}".
func (r *Recorder) EventAt(about kube.Object, fieldPath, eventType, reason, message string) {
	if r.series {
		r.recordSeries(about, eventType, reason, "", message)
		return
	}
	k, _ := kube.KindOf(about)
	ref := corev1.ObjectReference{
		Kind: k.Kind.Kind, APIVersion: k.Kind.GroupVersion().String(), Namespace: about.GetNamespace(), Name: about.GetName(),
		UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(), FieldPath: fieldPath,
	}
	r.EventFor(ref, eventType, reason, message)
}

// EventFor records an event about a reference; the kubelet's events about its Node name
// the node as uid.
func (r *Recorder) EventFor(ref corev1.ObjectReference, eventType, reason, message string) {
	now := metav1.NewTime(r.c.k.Now().Wall())
	ns := ref.Namespace
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	ev := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", ref.Name, r.stamp()), Namespace: ns},
		InvolvedObject: ref, Reason: reason, Message: message, Type: eventType, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: r.component, Host: r.host},
		ReportingController: r.component, ReportingInstance: r.host,
	}
	r.forget()
	key := r.aggregate(ev)
	r.send(ev, key)
}

// stamp is the suffix of an event's name: upstream takes the nanoseconds of the clock.
func (r *Recorder) stamp() int64 {
	return r.c.k.Now().Wall().UnixNano() + int64(r.c.k.Rand("event/"+string(r.c.self)).IntN(1000))
}

// aggregate combines events that differ only in their message once there are many, and
// returns the key under which repetitions are counted.
func (r *Recorder) aggregate(ev *corev1.Event) string {
	o := ev.InvolvedObject
	group := strings.Join([]string{o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion, ev.Type, ev.Reason}, "\x00")
	key := group + "\x00" + o.FieldPath + "\x00" + ev.Message
	g := r.state.Similar[group]
	now := ev.LastTimestamp.Time
	if now.Sub(g.Last) > similarInterval {
		g = similarGroup{}
	}
	if !strings.Contains("\x00"+g.Messages, "\x00"+ev.Message+"\x00") {
		g.Messages += ev.Message + "\x00"
		g.Count++
	}
	g.Last = now
	combined := g.Count >= similarMax
	if combined { // forget one, as upstream does, so that the set does not grow
		_, g.Messages, _ = strings.Cut(g.Messages, "\x00")
		g.Count--
	}
	r.state.Similar[group] = g
	if !combined {
		return key
	}
	ev.Message = "(combined from similar events): " + ev.Message
	ev.ReportingController, ev.ReportingInstance = "", "" // upstream builds this one without them
	return group
}

func (r *Recorder) send(ev *corev1.Event, key string) {
	if seen, again := r.state.Seen[key]; again {
		ev.Name, ev.FirstTimestamp, ev.Count = seen.Name, seen.First, seen.Count+1
		r.state.Seen[key] = seenEvent{seen.Name, ev.Count, seen.First, ev.LastTimestamp.Time}
		if r.spam(ev) {
			return
		}
		r.c.Do(r.write(wire.Update, ev))
		return
	}
	r.state.Seen[key] = seenEvent{ev.Name, 1, ev.FirstTimestamp, ev.LastTimestamp.Time}
	if r.spam(ev) {
		return
	}
	r.c.Do(r.write(wire.Create, ev))
}

func (r *Recorder) write(verb wire.Verb, ev kube.Object) wire.Request {
	req := request(verb, ev, recordedEvent{r.component})
	req.Background = true
	return req
}

// spam is the token bucket of each object: 25 events at once, then one in 5 minutes.
func (r *Recorder) spam(ev *corev1.Event) bool {
	o := ev.InvolvedObject
	key := strings.Join([]string{o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion, ev.Type}, "\x00")
	now := ev.LastTimestamp.Time
	b, ok := r.state.Tokens[key]
	if !ok {
		b = tokenBucket{Left: spamBurst, Last: now}
	}
	b.Left = min(spamBurst, b.Left+float64(now.Sub(b.Last))/float64(spamRefill))
	b.Last = now
	spam := b.Left < 1
	if !spam {
		b.Left--
	}
	r.state.Tokens[key] = b
	return spam
}

// EventAction is Event for events.k8s.io, which also names the action.
func (r *Recorder) EventAction(about kube.Object, eventType, reason, action, note string) {
	r.recordSeries(about, eventType, reason, action, note)
}

func (r *Recorder) recordSeries(about kube.Object, eventType, reason, action, note string) {
	r.forget()
	k, _ := kube.KindOf(about)
	now := r.c.k.Now().Wall()
	ns := about.GetNamespace()
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	// As upstream: the object's resourceVersion belongs to the key, the note does not. So a
	// Pod whose status changed between two attempts gets a second Event.
	key := strings.Join([]string{k.Kind.Kind, about.GetNamespace(), about.GetName(), string(about.GetUID()), about.GetResourceVersion(), eventType, reason, action}, "\x00")
	if s, again := r.state.Series[key]; again && now.Sub(s.Last) < finishSeries {
		ev := s.Event.DeepCopy()
		first := ev.Series == nil
		if first {
			ev.Series = &eventsv1.EventSeries{Count: 1}
		}
		ev.Series.Count++
		ev.Series.LastObservedTime = metav1.NewMicroTime(now)
		r.state.Series[key] = seenSeries{ev.DeepCopy(), now}
		if first { // later repetitions are only counted, until upstream's refresh every half hour
			r.c.Do(r.write(wire.Update, ev))
		}
		return
	}
	ev := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", about.GetName(), r.stamp()), Namespace: ns},
		EventTime:  metav1.NewMicroTime(now), ReportingController: r.component, ReportingInstance: r.component + "-controlplane",
		Action: action, Reason: reason, Note: note, Type: eventType,
		Regarding: corev1.ObjectReference{
			Kind: k.Kind.Kind, APIVersion: k.Kind.GroupVersion().String(), Namespace: about.GetNamespace(), Name: about.GetName(),
			UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(),
		},
	}
	r.state.Series[key] = seenSeries{ev.DeepCopy(), now}
	r.c.Do(r.write(wire.Create, ev))
}

// forget bounds the recorder's memory as upstream's caches do: what was last heard of
// longest ago goes first.
func (r *Recorder) forget() {
	now := r.c.k.Now().Wall()
	if max(len(r.state.Similar), len(r.state.Series)) <= rememberedMax || now.Sub(r.state.Forgot) < forgetEvery {
		return
	}
	r.state.Forgot = now
	stale := func(last time.Time) bool { return now.Sub(last) > similarInterval }
	if len(r.state.Similar) > rememberedMax {
		maps.DeleteFunc(r.state.Similar, func(_ string, g similarGroup) bool { return stale(g.Last) })
		maps.DeleteFunc(r.state.Seen, func(_ string, s seenEvent) bool { return stale(s.Last) })
		maps.DeleteFunc(r.state.Tokens, func(_ string, b tokenBucket) bool { return stale(b.Last) })
	}
	if len(r.state.Series) > rememberedMax {
		maps.DeleteFunc(r.state.Series, func(_ string, s seenSeries) bool { return now.Sub(s.Last) > finishSeries })
	}
}

// Handle reports whether an event is the answer to a write of this recorder, which needs
// no further attention.
func (r *Recorder) Handle(ev any) bool {
	a, ok := ev.(wire.Answer)
	if !ok {
		return false
	}
	t, ok := a.Tag.(recordedEvent)
	return ok && t.Component == r.component
}

// Snapshot returns a copy of the recorder's state for its owner's snapshot.
func (r *Recorder) Snapshot() any { return r.state.clone() }

// Restore puts a copied state back.
func (r *Recorder) Restore(snap any) { r.state = snap.(recorderState).clone() }

func (s recorderState) clone() recorderState {
	return recorderState{maps.Clone(s.Seen), maps.Clone(s.Similar), maps.Clone(s.Tokens), maps.Clone(s.Series), s.Forgot}
}
