// Package etcd is the store behind the API server: one key space, one revision counter, a
// history that watches are served from.
//
// A write is a transaction: "put this value if the key's mod revision is still N". It
// arrives as an event, costs a commit (raft append and fsync), and exists from its commit
// on and no earlier: until then nobody can read it, and if etcd stops in between it never
// happened. Reads are linearizable and answered at once.
//
// Modelled: one member, multi-version reads back to the last compaction, compare-and-put,
// compare-and-delete, leases as a time to live of a key. Left out: members, elections and
// the space alarm (the actor already speaks in messages, so a proposal can go to a leader
// among several), the storage file format, authentication.
package etcd

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
)

// Any as a transaction's Expect means: whatever stands there.
const Any int64 = -1

// KV is one key's present value. It is never changed; a new value is a new KV.
type KV struct {
	Key       string
	Value     runtime.Object // immutable; its resourceVersion is ModRev
	CreateRev int64
	ModRev    int64
}

// Event is one entry of the history.
type Event struct {
	Rev  int64
	Key  string
	Obj  runtime.Object // nil: the key was deleted
	Prev runtime.Object // nil: the key is new
	// Gone is, for a deletion, the last value with the revision of the deletion in it: what
	// a watcher is shown.
	Gone runtime.Object
}

// Txn asks for one write.
type Txn struct {
	ReplyTo kernel.ActorID
	ID      uint64 // comes back in the Result
	Key     string
	Value   runtime.Object // nil deletes the key
	Expect  int64          // the mod revision that the key must have; 0: it must not exist; Any
	TTL     time.Duration  // of the key; 0 for ever
}

// Result answers a Txn.
type Result struct {
	ID       uint64
	OK       bool           // false: Expect did not hold
	Revision int64          // of the write
	Object   runtime.Object // as stored, or, for a deletion, as it was last
	Current  *KV            // where OK is false: what stands there, nil for nothing
}

// Config holds the durations.
type Config struct {
	Commit time.Duration // from arrival to commit: append and fsync
	Jitter float64       // fraction of Commit
	Reply  time.Duration // from commit to the client's knowing
	// History is how many revisions a watch may go back at least.
	History int
}

// DefaultConfig is a member on an SSD.
func DefaultConfig() Config {
	return Config{Commit: 1500 * time.Microsecond, Jitter: 0.3, Reply: 200 * time.Microsecond, History: 10000}
}

type commit struct{ Txn Txn }

type expire struct{}

type lease struct {
	At  kernel.Time
	Key string
	Rev int64
}

// Etcd is the actor "etcd".
type Etcd struct {
	k     *kernel.Kernel
	board *fault.Board
	cfg   Config
	rand  *kernel.Rand
	state
}

// New returns an empty store and registers it.
func New(k *kernel.Kernel, board *fault.Board, cfg Config) *Etcd {
	e := &Etcd{k: k, board: board, cfg: cfg, rand: k.Rand("etcd"), state: newState()}
	k.Register(kernel.ActorID(stage.Etcd), e)
	return e
}

// Start does nothing: etcd acts when it is asked.
func (e *Etcd) Start() {}

// Stopped reports whether etcd answers nobody.
func (e *Etcd) Stopped() bool { _, on := e.board.On(fault.EtcdStopped); return on }

// Handle implements kernel.Actor.
func (e *Etcd) Handle(ev kernel.Event) {
	switch ev := ev.(type) {
	case Txn:
		if e.Stopped() {
			return
		}
		at := e.k.Now().Add(e.rand.Jitter(e.cfg.Commit, e.cfg.Jitter))
		if at < e.lastCommit { // the log is one queue
			at = e.lastCommit
		}
		e.lastCommit = at
		e.k.Send(kernel.ActorID(stage.Etcd), at.Sub(e.k.Now()), commit{ev})
	case commit:
		if e.Stopped() {
			return
		}
		res := e.apply(ev.Txn)
		if ev.Txn.ReplyTo != "" {
			e.k.Send(ev.Txn.ReplyTo, e.cfg.Reply, res)
		}
	case expire:
		e.expireKeys()
	}
}

func (e *Etcd) apply(t Txn) Result {
	now, exists := e.items.Get(t.Key)
	switch {
	case t.Expect == Any && (exists || t.Value != nil):
	case t.Expect == 0 && !exists && t.Value != nil:
	case t.Expect > 0 && exists && now.ModRev == t.Expect:
	default:
		return Result{ID: t.ID, Current: now}
	}
	if t.Value == nil {
		gone := e.remove(now)
		return Result{ID: t.ID, OK: true, Revision: e.rev, Object: gone}
	}
	obj := e.put(t.Key, t.Value)
	if t.TTL > 0 {
		e.grant(t.Key, t.TTL)
	}
	return Result{ID: t.ID, OK: true, Revision: e.rev, Object: obj}
}

func (e *Etcd) put(key string, value runtime.Object) runtime.Object {
	e.rev++
	obj := Stamp(value, e.rev)
	kv := &KV{Key: key, Value: obj, CreateRev: e.rev, ModRev: e.rev}
	var prev runtime.Object
	if old, ok := e.items.Set(key, kv); ok {
		kv.CreateRev, prev = old.CreateRev, old.Value
	}
	e.note(Event{Rev: e.rev, Key: key, Obj: obj, Prev: prev})
	return obj
}

func (e *Etcd) remove(now *KV) runtime.Object {
	e.rev++
	e.items.Delete(now.Key)
	gone := Stamp(now.Value, e.rev)
	e.note(Event{Rev: e.rev, Key: now.Key, Prev: now.Value, Gone: gone})
	return gone
}

func (e *Etcd) note(ev Event) {
	if keep := e.cfg.History; len(e.history) >= 2*keep {
		cut := len(e.history) - keep
		e.compacted = e.history[cut-1].Rev
		e.history = append(make([]Event, 0, 2*keep), e.history[cut:]...)
	}
	e.history = append(e.history, ev)
}

// grant gives the key that was just written a time to live. Leases expire in the order
// in which they were granted as long as all have the same length, which they have here.
func (e *Etcd) grant(key string, ttl time.Duration) {
	if len(e.leases) == 0 {
		e.k.Send(kernel.ActorID(stage.Etcd), ttl, expire{})
	}
	e.leases = append(e.leases, lease{e.k.Now().Add(ttl), key, e.rev})
}

func (e *Etcd) expireKeys() {
	n := 0
	for n < len(e.leases) && e.leases[n].At <= e.k.Now() {
		l := e.leases[n]
		if kv, ok := e.items.Get(l.Key); ok && kv.ModRev == l.Rev {
			e.remove(kv)
		}
		n++
	}
	e.leases = e.leases[n:len(e.leases):len(e.leases)]
	if len(e.leases) > 0 {
		e.k.Send(kernel.ActorID(stage.Etcd), e.leases[0].At.Sub(e.k.Now()), expire{})
	}
}

// Preload writes at once, with no event and no latency: for what is there before a run
// begins.
func (e *Etcd) Preload(key string, value runtime.Object) runtime.Object { return e.put(key, value) }

// Stamp returns a shallow copy of obj that carries the revision: the value itself may be
// held by a queued event or a snapshot and stays as it is.
func Stamp(obj runtime.Object, rev int64) runtime.Object {
	v := reflect.ValueOf(obj).Elem()
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	out := c.Interface().(runtime.Object)
	out.(metav1.Object).SetResourceVersion(strconv.FormatInt(rev, 10))
	return out
}

// Revision returns the revision of the last write.
func (e *Etcd) Revision() int64 { return e.rev }

// Compacted returns the revision up to which history is gone.
func (e *Etcd) Compacted() int64 { return e.compacted }

// Get returns a key's value.
func (e *Etcd) Get(key string) (*KV, bool) { return e.items.Get(key) }

// Scan calls visit for the keys with a prefix, in order, until it returns false.
func (e *Etcd) Scan(prefix string, visit func(*KV) bool) { e.Range(prefix, "", 0, visit) }

// Range calls f for the keys with a prefix, from the key `from` on ("" for the first),
// in order, as they stood at revision rev (0 for now), until f returns false. It returns
// false if rev has been compacted.
func (e *Etcd) Range(prefix, from string, rev int64, f func(*KV) bool) bool {
	if from < prefix {
		from = prefix
	}
	if rev != 0 && rev < e.compacted {
		return false
	}
	if rev == 0 || rev >= e.rev {
		e.items.Ascend(from, func(key string, kv *KV) bool {
			return strings.HasPrefix(key, prefix) && f(kv)
		})
		return true
	}
	past := e.items.Copy()
	for i := len(e.history) - 1; i >= 0 && e.history[i].Rev > rev; i-- {
		ev := e.history[i]
		if !strings.HasPrefix(ev.Key, prefix) {
			continue
		}
		if ev.Prev == nil {
			past.Delete(ev.Key)
		} else {
			r, _ := strconv.ParseInt(ev.Prev.(metav1.Object).GetResourceVersion(), 10, 64)
			past.Set(ev.Key, &KV{Key: ev.Key, Value: ev.Prev, ModRev: r})
		}
	}
	past.Ascend(from, func(key string, kv *KV) bool {
		return strings.HasPrefix(key, prefix) && f(kv)
	})
	return true
}

// Since calls f for every event after rev, in order, until f returns false. It returns
// false if some of them have been compacted.
func (e *Etcd) Since(rev int64, f func(Event) bool) bool {
	if rev < e.compacted {
		return false
	}
	// Revisions count up by one, so an event's place follows from its revision.
	i := len(e.history) - int(e.rev-rev)
	for i = max(i, 0); i < len(e.history); i++ {
		if !f(e.history[i]) {
			break
		}
	}
	return true
}
