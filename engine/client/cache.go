package client

import (
	"time"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// relistAfter is how long a cache waits before it lists again after its list failed or
// its watch ended. Upstream backs off from 0.8 s to 30 s; one step is enough here.
const relistAfter = time.Second

// Selector narrows what a cache holds.
type Selector struct {
	Namespace string // "" for all
	Fields    string // field selector
	Labels    string // label selector
}

// Change is one difference that a cache has learned of. Old is the zero T for an
// addition; New for a deletion.
type Change[T kube.Object] struct {
	Type wire.EventType // Added, Modified or Deleted
	Old  T
	New  T
}

// Object returns New, or Old where the object is gone.
func (c Change[T]) Object() T {
	if c.Type == wire.Deleted {
		return c.Old
	}
	return c.New
}

// Cache is one kind's list and watch, kept by the actor that owns it; upstream's shared
// informer. The owner passes every event that it gets to Handle and acts on the changes.
// Objects in it are immutable.
type Cache[T kube.Object] struct {
	c        *Client
	resource schema.GroupVersionResource
	sel      Selector
	id       string

	state cacheState[T]
}

type cacheState[T kube.Object] struct {
	Generation int // of the list that is under way or was the last one; older answers are stale
	WatchID    uint64
	Synced     bool
	Revision   int64
	objects    btree.Map[string, T]
}

// HashState hashes the tree by its items, in order.
func (s cacheState[T]) HashState() any {
	return []any{s.Generation, s.WatchID, s.Synced, s.Revision, s.objects.Keys(), s.objects.Values()}
}

type cacheTag struct {
	Cache      string
	Generation int
}

type cacheRelist struct {
	Cache      string
	Generation int
}

// NewCache returns an empty cache; Start makes it list.
func NewCache[T kube.Object](c *Client, sel Selector) *Cache[T] {
	var t T
	res := kube.ResourceOf(t)
	return &Cache[T]{c: c, resource: res, sel: sel, id: res.String() + "?" + sel.Namespace + "?" + sel.Fields + "?" + sel.Labels}
}

// Start lists and then watches. Called again, it begins anew; what was cached stays
// until the list has come.
func (c *Cache[T]) Start() {
	s := &c.state
	if s.WatchID != 0 {
		c.c.k.Send(c.c.server(), Latency, wire.CancelWatch{WatchID: s.WatchID})
		s.WatchID = 0
	}
	s.Generation++
	c.c.send(wire.Request{
		Verb: wire.List, Resource: c.resource, Namespace: c.sel.Namespace, Background: true,
		Tag: cacheTag{c.id, s.Generation}, Options: wire.Options{LabelSelector: c.sel.Labels, FieldSelector: c.sel.Fields},
	}, c.c.reader)
}

// Stop ends the watch; late events are ignored. Start begins again.
func (c *Cache[T]) Stop() {
	s := &c.state
	if s.WatchID != 0 {
		c.c.k.Send(c.c.server(), Latency, wire.CancelWatch{WatchID: s.WatchID})
	}
	s.WatchID, s.Synced = 0, false
	s.Generation++
}

// Reset is Stop for a process that ends: what was cached is forgotten too, so that the
// list after the next Start brings every object as an addition.
func (c *Cache[T]) Reset() {
	c.Stop()
	c.state.objects = btree.Map[string, T]{}
}

// Forget is Stop for a process that ends: what was cached is gone too, so that after the
// next Start everything is news.
func (c *Cache[T]) Forget() {
	c.Stop()
	c.state.objects = btree.Map[string, T]{}
	c.state.Revision = 0
}

// Synced reports whether the first list has come (and, after a broken watch, that it
// is up to date again).
func (c *Cache[T]) Synced() bool { return c.state.Synced }

// Revision returns the revision that the cache is up to date with.
func (c *Cache[T]) Revision() int64 { return c.state.Revision }

// Resource returns what the cache holds.
func (c *Cache[T]) Resource() schema.GroupVersionResource { return c.resource }

// Get returns one object.
func (c *Cache[T]) Get(namespace, name string) (T, bool) {
	return c.state.objects.Get(kube.Key(namespace, name))
}

// Len returns the number of objects.
func (c *Cache[T]) Len() int { return c.state.objects.Len() }

// List returns the objects of a namespace ("" for all), ordered by key.
func (c *Cache[T]) List(namespace string) []T {
	var out []T
	c.Each(namespace, func(o T) bool {
		out = append(out, o)
		return true
	})
	return out
}

// Each calls f for the objects of a namespace ("" for all) in the order of their keys
// until it returns false.
func (c *Cache[T]) Each(namespace string, f func(T) bool) {
	if namespace == "" {
		c.state.objects.Scan(func(_ string, o T) bool { return f(o) })
		return
	}
	prefix := namespace + "/"
	c.state.objects.Ascend(prefix, func(k string, o T) bool {
		if len(k) < len(prefix) || k[:len(prefix)] != prefix {
			return false
		}
		return f(o)
	})
}

// Handle takes an event that may belong to this cache. It reports false for any other,
// and the changes that the event brought.
func (c *Cache[T]) Handle(ev any) (changes []Change[T], mine bool) {
	switch e := ev.(type) {
	case wire.WatchEvent:
		if t, ok := e.Tag.(cacheTag); ok && t.Cache == c.id {
			if t.Generation != c.state.Generation {
				return nil, true
			}
			return c.watched(e), true
		}
	case wire.Answer:
		if t, ok := e.Tag.(cacheTag); ok && t.Cache == c.id {
			if t.Generation != c.state.Generation {
				return nil, true
			}
			return c.answered(e), true
		}
	case cacheRelist:
		if e.Cache == c.id {
			if e.Generation == c.state.Generation {
				c.Start()
			}
			return nil, true
		}
	}
	return nil, false
}

func (c *Cache[T]) answered(a wire.Answer) []Change[T] {
	if a.Err() != nil {
		c.relist()
		return nil
	}
	if a.Verb == wire.Watch {
		c.state.WatchID = a.WatchID
		return nil
	}
	changes := c.replace(a.Items)
	c.state.Synced, c.state.Revision = true, a.Revision
	c.c.send(wire.Request{
		Verb: wire.Watch, Resource: c.resource, Namespace: c.sel.Namespace, Background: true,
		Tag: cacheTag{c.id, c.state.Generation},
		Options: wire.Options{
			LabelSelector: c.sel.Labels, FieldSelector: c.sel.Fields,
			ResourceVersion: formatRevision(a.Revision), Bookmarks: true,
		},
	}, c.c.reader)
	return changes
}

func (c *Cache[T]) replace(items []runtime.Object) []Change[T] {
	var changes []Change[T]
	fresh := btree.Map[string, T]{}
	for _, it := range items {
		o := it.(T)
		key := kube.KeyOf(o)
		fresh.Set(key, o)
		old, had := c.state.objects.Get(key)
		switch {
		case !had:
			changes = append(changes, Change[T]{Type: wire.Added, New: o})
		case old.GetResourceVersion() != o.GetResourceVersion():
			changes = append(changes, Change[T]{Type: wire.Modified, Old: old, New: o})
		}
	}
	c.state.objects.Scan(func(key string, old T) bool {
		if _, still := fresh.Get(key); !still {
			changes = append(changes, Change[T]{Type: wire.Deleted, Old: old})
		}
		return true
	})
	c.state.objects = fresh
	return changes
}

func (c *Cache[T]) watched(e wire.WatchEvent) []Change[T] {
	switch e.Type {
	case wire.Closed, wire.Error:
		c.state.WatchID = 0
		c.relist()
		return nil
	case wire.Bookmark:
		c.state.Revision = e.Revision
		return nil
	}
	o, ok := e.Object.(T)
	if !ok {
		return nil
	}
	c.state.Revision = e.Revision
	key := kube.KeyOf(o)
	if e.Type == wire.Deleted {
		if _, had := c.state.objects.Delete(key); !had {
			return nil
		}
		// The event carries the object as it was last: with its deletion timestamp.
		return []Change[T]{{Type: wire.Deleted, Old: o}}
	}
	old, had := c.state.objects.Set(key, o)
	if !had {
		return []Change[T]{{Type: wire.Added, New: o}}
	}
	return []Change[T]{{Type: wire.Modified, Old: old, New: o}}
}

func (c *Cache[T]) relist() {
	c.state.Synced = false
	c.state.Generation++
	c.c.k.Send(c.c.self, relistAfter, cacheRelist{c.id, c.state.Generation})
}

// Snapshot returns a copy of the cache's state for the owner's own snapshot.
func (c *Cache[T]) Snapshot() any {
	s := c.state
	s.objects = *c.state.objects.Copy()
	return s
}

// Restore puts a copied state back.
func (c *Cache[T]) Restore(snap any) {
	s := snap.(cacheState[T])
	c.state = s
	c.state.objects = *s.objects.Copy()
}
