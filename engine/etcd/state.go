package etcd

import (
	"strings"

	"github.com/tidwall/btree"

	"podwalk/engine/kernel"
)

// state is what time travel carries along.
type state struct {
	items      *btree.Map[string, *KV]
	rev        int64
	history    []Event // by Rev, without gaps
	compacted  int64
	lastCommit kernel.Time
	leases     []lease
}

func newState() state { return state{items: &btree.Map[string, *KV]{}} }

// HashState lists the items in order: the tree's shape depends on how it came about. Of
// the history the last part is enough, the rest was hashed when it was the last part.
func (s state) HashState() any {
	h := s.history
	if len(h) > 64 {
		h = h[len(h)-64:]
	}
	return []any{s.items.Values(), s.rev, len(s.history), h, s.compacted, s.lastCommit, s.leases}
}

// Snapshot implements kernel.State. Values are immutable, so a copy of the tree (constant
// time) and slices with their capacity cut are enough.
func (e *Etcd) Snapshot() any {
	s := e.state
	s.items = s.items.Copy()
	s.history = s.history[:len(s.history):len(s.history)]
	s.leases = s.leases[:len(s.leases):len(s.leases)]
	return s
}

// Restore implements kernel.State.
func (e *Etcd) Restore(snap any) {
	s := snap.(state)
	s.items = s.items.Copy()
	e.state = s
}

// Freeze returns the keys as they are now, to read at leisure: constant time, and later
// writes do not show in it.
func (e *Etcd) Freeze() Frozen { return Frozen{e.items.Copy()} }

// Frozen is the key space at one revision.
type Frozen struct{ items *btree.Map[string, *KV] }

// Get returns a key's value.
func (f Frozen) Get(key string) (*KV, bool) { return f.items.Get(key) }

// Scan calls visit for the keys with a prefix, in order, until it returns false.
func (f Frozen) Scan(prefix string, visit func(*KV) bool) {
	f.items.Ascend(prefix, func(key string, kv *KV) bool {
		return strings.HasPrefix(key, prefix) && visit(kv)
	})
}
