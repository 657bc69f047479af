package apiserver

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"sort"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/etcd"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

// watcher is one client that wants to hear of changes: plain data.
type watcher struct {
	ID        uint64
	To        kernel.ActorID
	Tag       any
	Resource  schema.GroupVersionResource
	Namespace string
	Options   wire.Options
	// Node and Name are the values that the field selector asks for, where it does: such
	// watchers are found by them, so that a change of one Pod concerns one kubelet and not
	// five thousand.
	Node, Name string
	// From is the version that the client has: it is told what came later.
	From int64
	// Ready is when the client has the watch's answer and first events; nothing overtakes
	// them.
	Ready kernel.Time
}

type live struct {
	watcher
	selection selection
}

// indexKey says which watchers a change can concern. Empty Node and Name: all changes of
// the resource.
type indexKey struct {
	resource   schema.GroupVersionResource // as stored
	node, name string
}

type watches struct {
	byID  map[uint64]*live
	index map[indexKey][]*live // by ID
}

func newWatches() watches {
	return watches{byID: map[uint64]*live{}, index: map[indexKey][]*live{}}
}

func (w *watches) key(l *live) indexKey {
	return indexKey{l.selection.row.Storage.Resource, l.Node, l.Name}
}

func (w *watches) add(l *live) {
	w.byID[l.ID] = l
	k := w.key(l)
	at := sort.Search(len(w.index[k]), func(i int) bool { return w.index[k][i].ID > l.ID })
	list := append(w.index[k], nil)
	copy(list[at+1:], list[at:])
	list[at] = l
	w.index[k] = list
}

func (w *watches) remove(id uint64) *live {
	l := w.byID[id]
	if l == nil {
		return nil
	}
	delete(w.byID, id)
	k := w.key(l)
	list := w.index[k]
	at := sort.Search(len(list), func(i int) bool { return list[i].ID >= id })
	if len(list) == 1 {
		delete(w.index, k)
	} else {
		w.index[k] = append(list[:at:at], list[at+1:]...)
	}
	return l
}

func (w *watches) ids() []uint64 { return sortedKeys(w.byID) }

// snapshot lists the watchers by ID; restore builds the index anew.
func (w *watches) snapshot() []watcher {
	out := make([]watcher, 0, len(w.byID))
	for _, id := range w.ids() {
		out = append(out, w.byID[id].watcher)
	}
	return out
}

func (w *watches) restore(list []watcher) {
	*w = newWatches()
	for _, x := range list {
		l, err := newLive(x)
		if err != nil {
			panic("apiserver: a watch that was accepted before: " + err.Error())
		}
		w.add(l)
	}
}

func newLive(x watcher) (*live, error) {
	row, ok := resources.Get(x.Resource)
	if !ok {
		return nil, apierrors.NewNotFound(x.Resource.GroupResource(), "")
	}
	sel, err := newSelection(x.Options, row)
	if err != nil {
		return nil, err
	}
	if sel.fields != nil {
		if v, ok := sel.fields.RequiresExactMatch("spec.nodeName"); ok && v != "" && row.Storage.Resource == kube.Pods {
			x.Node = v
		} else if v, ok := sel.fields.RequiresExactMatch("metadata.name"); ok && v != "" {
			x.Name = v
		}
	}
	return &live{x, sel}, nil
}

// watch begins a watch: its Answer says so, then come the events from the asked revision
// on, or, without one, an event for each object that is there.
func (s *Server) watch(f *flight, row *resources.Resource) error {
	r := &f.Req
	o := r.Options
	if r.Name != "" && o.FieldSelector == "" {
		o.FieldSelector = "metadata.name=" + r.Name
	}
	l, err := newLive(watcher{ID: f.ID, To: r.ReplyTo, Tag: r.Tag, Resource: r.Resource, Namespace: r.Namespace, Options: o})
	if err != nil {
		return err
	}
	from, err := int64(0), error(nil)
	if o.ResourceVersion != "" && o.ResourceVersion != "0" && !o.SendInitial {
		if from, err = strconv.ParseInt(o.ResourceVersion, 10, 64); err != nil {
			return apierrors.NewBadRequest("Invalid value: \"" + o.ResourceVersion + "\": strconv.ParseUint: parsing \"" + o.ResourceVersion + "\": invalid syntax")
		}
		if from < s.etcd.Compacted() {
			return expired(from, s.etcd.Compacted())
		}
	}
	a := answerTo(r)
	a.Code, a.WatchID, a.Revision = 200, l.ID, s.etcd.Revision()
	l.Ready = s.k.Now().Add(f.Ahead + max(s.cfg.Answer, s.cfg.Watch))
	s.finish(f, a)
	if from == 0 {
		l.From = s.seen
		s.initialEvents(l)
	} else {
		l.From = from
		s.etcd.Since(from, func(ev etcd.Event) bool {
			if ev.Rev > s.seen { // pump will tell
				return false
			}
			if kind, _ := kube.KindOf(last(ev)); kind.Resource == row.Storage.Resource {
				s.tell(l, ev)
			}
			return true
		})
	}
	s.watches.add(l)
	if o.Timeout > 0 {
		s.k.Send(self, o.Timeout, endWatch{l.ID})
	}
	return errDone
}

// deliver sends one event on its way to a watcher. Its events arrive in the order in which
// they are sent.
func (s *Server) deliver(l *live, e wire.WatchEvent) {
	e.WatchID, e.Tag, e.Resource = l.ID, l.Tag, l.Resource
	s.k.Send(l.To, max(s.cfg.Watch, l.Ready.Sub(s.k.Now())), e)
}

func (s *Server) initialEvents(l *live) {
	row := l.selection.row
	s.etcd.Range(row.KeyPrefix(l.Namespace), "", s.seen, func(kv *etcd.KV) bool {
		if l.selection.matches(kv.Value) {
			s.deliver(l, wire.WatchEvent{Type: wire.Added, Object: row.Served(kv.Value), Revision: kv.ModRev})
		}
		return true
	})
	if l.Options.SendInitial && l.Options.Bookmarks {
		mark := row.New()
		mark.SetResourceVersion(strconv.FormatInt(s.seen, 10))
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		s.deliver(l, wire.WatchEvent{Type: wire.Bookmark, Object: mark, Revision: s.seen, Initial: true})
	}
}

// pump tells the watchers what etcd has committed since the last time.
func (s *Server) pump() {
	s.etcd.Since(s.seen, func(ev etcd.Event) bool {
		s.dispatch(ev)
		s.seen = ev.Rev
		return true
	})
}

// dispatch finds whom an event concerns: those who watch all of the resource, the name,
// or the node that the object is or was on.
func (s *Server) dispatch(ev etcd.Event) {
	obj := last(ev)
	kind, _ := kube.KindOf(obj)
	gvr := kind.Resource
	if gvr.Group == rbacv1.GroupName {
		s.invalidate()
	}
	name := obj.(metav1.Object).GetName()
	for _, l := range s.watches.index[indexKey{resource: gvr}] {
		s.tell(l, ev)
	}
	for _, l := range s.watches.index[indexKey{resource: gvr, name: name}] {
		s.tell(l, ev)
	}
	if gvr != kube.Pods {
		return
	}
	now, was := resources.NodeOf(ev.Obj), resources.NodeOf(ev.Prev)
	if now != "" {
		for _, l := range s.watches.index[indexKey{resource: gvr, node: now}] {
			s.tell(l, ev)
		}
	}
	if was != "" && was != now {
		for _, l := range s.watches.index[indexKey{resource: gvr, node: was}] {
			s.tell(l, ev)
		}
	}
}

// tell sends one event to one watcher, as it looks through its selector: what comes into
// the selection is ADDED, what leaves it DELETED.
func (s *Server) tell(l *live, ev etcd.Event) {
	if ev.Rev <= l.From {
		return
	}
	show, kind := ev.Obj, wire.Modified
	if l.Namespace != "" && last(ev).(metav1.Object).GetNamespace() != l.Namespace {
		return
	}
	is := ev.Obj != nil && l.selection.matches(ev.Obj)
	was := ev.Prev != nil && l.selection.matches(ev.Prev)
	switch {
	case is && !was:
		kind = wire.Added
	case !is && was:
		kind = wire.Deleted
		show = ev.Gone
		if show == nil { // left the selection: its last look, with the new revision
			show = etcd.Stamp(ev.Prev, ev.Rev)
		}
	case !is:
		return
	}
	s.deliver(l, wire.WatchEvent{Type: kind, Object: l.selection.row.Served(show), Revision: ev.Rev})
}

// last is the object that an event is about, as it was last.
func last(ev etcd.Event) runtime.Object {
	if ev.Obj != nil {
		return ev.Obj
	}
	return ev.Gone
}

func (s *Server) closeWatch(id uint64) {
	if l := s.watches.remove(id); l != nil {
		s.deliver(l, wire.WatchEvent{Type: wire.Closed})
	}
}

func sortedKeys[V any](m map[uint64]V) []uint64 {
	out := make([]uint64, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}
