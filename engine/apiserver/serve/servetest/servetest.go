// Package servetest is a store that answers requests at once and without any rule: enough
// of a cluster to test the HTTP surface and the kubectl session by themselves.
package servetest

import (
	"encoding/json"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

// Run implements serve.Run.
type Run struct {
	At       kernel.Time
	Requests []wire.Request
	// Later happen when virtual time gets there.
	Later []Change
	// Refuse, where set, may refuse a request.
	Refuse func(wire.Request) (wire.Answer, bool)

	objects  map[string]kube.Object
	revision int64
	watches  map[uint64]*watch
}

// Change is an object that is put (or, with Delete, taken away) at a time.
type Change struct {
	At     kernel.Time
	Object kube.Object
	Delete bool
}

type watch struct {
	req   wire.Request
	queue []wire.WatchEvent
}

// New returns a run with some objects.
func New(objects ...kube.Object) *Run {
	r := &Run{objects: map[string]kube.Object{}, watches: map[uint64]*watch{}, revision: 100}
	for _, o := range objects {
		r.Put(o)
	}
	return r
}

func key(o runtime.Object) string { return kube.ResourceOf(o).String() + "/" + kube.KeyOf(o) }

// Put stores an object and tells those who watch.
func (r *Run) Put(o kube.Object) {
	k := key(o)
	typ := wire.Added
	if _, ok := r.objects[k]; ok {
		typ = wire.Modified
	}
	r.revision++
	r.objects[k] = o
	r.tell(typ, o)
}

func (r *Run) tell(typ wire.EventType, o kube.Object) {
	for _, w := range r.watches {
		if w.req.Resource == kube.ResourceOf(o) && matches(w.req, o) {
			w.queue = append(w.queue, wire.WatchEvent{Type: typ, Resource: w.req.Resource, Object: o, Revision: r.revision})
		}
	}
}

func matches(req wire.Request, o kube.Object) bool {
	if req.Namespace != "" && o.GetNamespace() != req.Namespace {
		return false
	}
	sel, err := fields.ParseSelector(req.Options.FieldSelector)
	return err == nil && sel.Matches(fields.Set{"metadata.name": o.GetName()})
}

// Do implements serve.Run.
func (r *Run) Do(req wire.Request) wire.Answer {
	r.Requests = append(r.Requests, req)
	if r.Refuse != nil {
		if a, refused := r.Refuse(req); refused {
			return a
		}
	}
	kind, ok := kube.ByResource(req.Resource)
	if !ok {
		return wire.Answer{Code: 200}
	}
	id := req.Resource.String() + "/" + kube.Key(req.Namespace, req.Name)
	switch req.Verb {
	case wire.List:
		return r.list(req)
	case wire.Create:
		o := kind.New()
		if err := json.Unmarshal(req.Body, o); err != nil {
			return refuse(errors.NewBadRequest(err.Error()))
		}
		o.SetNamespace(req.Namespace)
		r.Put(o)
		return wire.Answer{Object: o, Code: 201, Revision: r.revision}
	case wire.Delete:
		o, ok := r.objects[id]
		if !ok {
			break
		}
		delete(r.objects, id)
		r.revision++
		r.tell(wire.Deleted, o)
		return wire.Answer{Object: o, Code: 200}
	}
	if o, ok := r.objects[id]; ok {
		return wire.Answer{Object: o, Code: 200, Revision: r.revision}
	}
	return refuse(errors.NewNotFound(req.Resource.GroupResource(), req.Name))
}

func refuse(err *errors.StatusError) wire.Answer {
	s := err.Status()
	return wire.Answer{Status: &s, Code: int(s.Code)}
}

func (r *Run) list(req wire.Request) wire.Answer {
	a := wire.Answer{Code: 200, Revision: r.revision}
	keys := make([]string, 0, len(r.objects))
	for k := range r.objects {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if o := r.objects[k]; kube.ResourceOf(o) == req.Resource && matches(req, o) {
			a.Items = append(a.Items, o)
		}
	}
	return a
}

// Watch implements serve.Run.
func (r *Run) Watch(req wire.Request) (uint64, wire.Answer) {
	r.Requests = append(r.Requests, req)
	id := uint64(len(r.Requests))
	w := &watch{req: req}
	if req.Options.SendInitial {
		for _, o := range r.list(req).Items {
			w.queue = append(w.queue, wire.WatchEvent{Type: wire.Added, Resource: req.Resource, Object: o, Revision: r.revision})
		}
		w.queue = append(w.queue, wire.WatchEvent{Type: wire.Bookmark, Resource: req.Resource, Revision: r.revision, Initial: true})
	}
	r.watches[id] = w
	return id, wire.Answer{Code: 200, WatchID: id}
}

// Watched implements serve.Run.
func (r *Run) Watched(id uint64) []wire.WatchEvent {
	w := r.watches[id]
	if w == nil {
		return nil
	}
	q := w.queue
	w.queue = nil
	return q
}

// Unwatch implements serve.Run.
func (r *Run) Unwatch(id, _ uint64) { delete(r.watches, id) }

// Advance implements serve.Run.
func (r *Run) Advance(d time.Duration) {
	end := r.At.Add(d)
	for len(r.Later) > 0 && r.Later[0].At <= end {
		c := r.Later[0]
		r.Later = r.Later[1:]
		r.At = c.At
		if c.Delete {
			delete(r.objects, key(c.Object))
			r.revision++
			r.tell(wire.Deleted, c.Object)
		} else {
			r.Put(c.Object)
		}
	}
	r.At = end
}

// Now implements serve.Run.
func (r *Run) Now() kernel.Time { return r.At }

// Err implements serve.Run.
func (r *Run) Err() error { return nil }
