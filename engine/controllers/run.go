package controllers

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// run is one sync of one key. A sync is written like upstream's: straight down, with
// requests that return their answers. There is no goroutine that could wait, so a
// request without an answer ends the execution; when the answer has come, the sync is
// executed again from the top with the same input, the answers so far are returned at
// once, and events and hops that were recorded already are not recorded again. What is
// kept between two executions is data: the input and the answers.
//
// For this to work a sync may look only at its input and its run: no cache, no clock, no
// random numbers.
type run struct {
	a     *actor
	state runState

	answer int // next answer to return in this execution
	effect int // next effect in this execution
}

type runState struct {
	Key     string
	ID      uint64
	Started kernel.Time
	Retry   int // how many syncs of this key have failed in a row before
	Input   any
	Answers []wire.Answer
	Have    []bool // which of Answers have come
	Effects int    // how many have been done
}

// call is the tag of a run's requests.
type call struct {
	Run   uint64
	Key   string
	Index int
}

// unanswered ends an execution that has to wait.
type unanswered struct{}

// execute runs f; it reports false when the run has to wait for an answer.
func (r *run) execute(f func() error) (err error, done bool) {
	r.answer, r.effect = 0, 0
	defer func() {
		if e := recover(); e != nil {
			if _, waits := e.(unanswered); !waits {
				panic(e)
			}
			err, done = nil, false
		}
	}()
	return f(), true
}

// now is the time at which the run started, as it is written into objects.
func (r *run) now() metav1.Time { return metav1.NewTime(r.state.Started.Wall()).Rfc3339Copy() }

// The first retries follow each other within a second and say the same as the first try:
// the trace tells the first two tries and those that come after a longer wait.
func (r *run) repetition() bool { return r.state.Retry >= 2 && r.state.Retry < 8 }

// all sends requests together and returns their answers once every one of them is there.
func (r *run) all(reqs ...wire.Request) []wire.Answer {
	from := r.answer
	r.answer += len(reqs)
	if len(r.state.Answers) < r.answer {
		for i, req := range reqs {
			req.Tag = call{r.state.ID, r.state.Key, from + i}
			req.Background = req.Background || platform(req.Namespace) || r.repetition()
			r.a.cl.Do(req)
			r.state.Answers = append(r.state.Answers, wire.Answer{})
			r.state.Have = append(r.state.Have, false)
		}
	}
	for _, have := range r.state.Have[from:r.answer] {
		if !have {
			panic(unanswered{})
		}
	}
	return r.state.Answers[from:r.answer]
}

// do sends one request and returns its answer.
func (r *run) do(req wire.Request) (wire.Answer, error) {
	ans := r.all(req)[0]
	return ans, ans.Err()
}

// once does something that must not be repeated when the sync is executed again.
func (r *run) once(f func()) {
	r.effect++
	if r.effect > r.state.Effects {
		r.state.Effects = r.effect
		f()
	}
}

// event records a Kubernetes Event.
func (r *run) event(about kube.Object, eventType, reason, message string) {
	r.once(func() { r.a.rec.Event(about, eventType, reason, message) })
}

// hop records what was noticed or decided; From and To are the API server and the
// controller manager unless they are set.
func (r *run) hop(h trace.Hop) {
	h.Background = h.Background || r.repetition()
	r.once(func() { r.a.hop(h) })
}

// The requests of syncs.

func about(verb wire.Verb, obj kube.Object) wire.Request {
	return wire.Request{
		Verb: verb, Resource: kube.ResourceOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName(), Object: obj,
	}
}

func create(obj kube.Object) wire.Request { return about(wire.Create, obj) }

func update(obj kube.Object) wire.Request { return about(wire.Update, obj) }

// updateStatus is in the background: what a status update means is told by a hop of the
// controller itself, once, when it matters.
func updateStatus(obj kube.Object) wire.Request {
	req := about(wire.Update, obj)
	req.Subresource, req.Background = "status", true
	return req
}

// patchStatus replaces an object's status whatever its resourceVersion, as upstream's
// strategic merge patches do.
func patchStatus(obj kube.Object) wire.Request {
	req := updateStatus(obj)
	req.Verb = wire.Patch
	return req
}

func remove(obj kube.Object, o metav1.DeleteOptions) wire.Request {
	req := about(wire.Delete, obj)
	req.Object, req.Options.Delete = nil, &o
	return req
}

func get(gvr schema.GroupVersionResource, namespace, name string) wire.Request {
	return wire.Request{Verb: wire.Get, Resource: gvr, Namespace: namespace, Name: name, Background: true}
}

func patch(obj kube.Object, pt types.PatchType, body []byte) wire.Request {
	req := about(wire.Patch, obj)
	req.Object, req.PatchType, req.MediaType, req.Body = nil, pt, string(pt), body
	return req
}

// count is a number with its noun: "1 Pod", "3 Pods".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ref names an object in a hop.
func ref(kind string, obj kube.Object) trace.Ref {
	return trace.Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// platform reports whether a namespace is the platform's own: what happens there is kept
// in the background.
func platform(namespace string) bool { return strings.HasPrefix(namespace, "kube-") }

// hop records a hop of the controller manager.
func (a *actor) hop(h trace.Hop) uint64 {
	if h.Stage == "" {
		h.Stage = stage.Controllers
	}
	if h.From == "" {
		h.From = stage.APIServer
	}
	if h.To == "" {
		h.To = stage.ControllerManager
	}
	h.Background = h.Background || platform(h.Object.Namespace)
	return a.log.Record(h)
}
