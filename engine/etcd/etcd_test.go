package etcd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
)

type client struct{ results []etcd.Result }

func (c *client) Handle(ev kernel.Event) { c.results = append(c.results, ev.(etcd.Result)) }

type world struct {
	k     *kernel.Kernel
	board *fault.Board
	etcd  *etcd.Etcd
	me    *client
}

func newWorld(cfg etcd.Config) *world {
	w := &world{k: kernel.New(1), board: fault.NewBoard(), me: &client{}}
	w.k.Attach("faults", w.board)
	w.etcd = etcd.New(w.k, w.board, cfg)
	w.k.Register("me", w.me)
	return w
}

func value(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: text}, Data: map[string]string{"v": text}}
}

func text(kv *etcd.KV) string { return kv.Value.(*corev1.ConfigMap).Data["v"] }

// txn runs one transaction to its end.
func (w *world) txn(t etcd.Txn) etcd.Result {
	t.ReplyTo = "me"
	w.k.Send("etcd", 0, t)
	n := len(w.me.results)
	for len(w.me.results) == n && w.k.Step() {
	}
	return w.me.results[len(w.me.results)-1]
}

func (w *world) all(prefix string, rev int64) string {
	var out []string
	if !w.etcd.Range(prefix, "", rev, func(kv *etcd.KV) bool {
		out = append(out, fmt.Sprintf("%s=%s@%d", strings.TrimPrefix(kv.Key, prefix), text(kv), kv.ModRev))
		return true
	}) {
		return "compacted"
	}
	return strings.Join(out, " ")
}

func TestCompareAndPut(t *testing.T) {
	w := newWorld(etcd.DefaultConfig())
	if r := w.txn(etcd.Txn{Key: "/a", Value: value("1")}); !r.OK || r.Revision != 1 || r.Object.(*corev1.ConfigMap).ResourceVersion != "1" {
		t.Errorf("create: %+v", r)
	}
	if r := w.txn(etcd.Txn{Key: "/a", Value: value("2")}); r.OK || text(r.Current) != "1" {
		t.Errorf("create of what exists: %+v", r)
	}
	if r := w.txn(etcd.Txn{Key: "/a", Value: value("2"), Expect: 1}); !r.OK || r.Revision != 2 {
		t.Errorf("put: %+v", r)
	}
	if r := w.txn(etcd.Txn{Key: "/a", Value: value("3"), Expect: 1}); r.OK || r.Current.ModRev != 2 {
		t.Errorf("put on an old version: %+v", r)
	}
	if r := w.txn(etcd.Txn{Key: "/a", Expect: 2}); !r.OK || r.Object.(*corev1.ConfigMap).ResourceVersion != "3" {
		t.Errorf("delete: %+v", r)
	}
	if r := w.txn(etcd.Txn{Key: "/a", Expect: etcd.Any}); r.OK || r.Current != nil {
		t.Errorf("delete of nothing: %+v", r)
	}
}

func TestAWriteExistsFromItsCommitOn(t *testing.T) {
	w := newWorld(etcd.DefaultConfig())
	w.k.Send("etcd", 0, etcd.Txn{Key: "/a", Value: value("1"), ReplyTo: "me"})
	w.k.AdvanceTo(kernel.Time(900 * time.Microsecond))
	if _, ok := w.etcd.Get("/a"); ok {
		t.Error("it can be read before its commit")
	}
	w.k.AdvanceTo(kernel.Time(2 * time.Millisecond))
	if _, ok := w.etcd.Get("/a"); !ok || len(w.me.results) != 0 {
		t.Errorf("after the commit, before the answer: there = %v, answers = %d", ok, len(w.me.results))
	}
}

func TestStoppedBeforeTheCommit(t *testing.T) {
	w := newWorld(etcd.DefaultConfig())
	w.k.Send("etcd", 0, etcd.Txn{Key: "/a", Value: value("1"), ReplyTo: "me"})
	w.k.AdvanceTo(kernel.Time(900 * time.Microsecond))
	if err := w.board.Set(fault.EtcdStopped, ""); err != nil {
		t.Fatal(err)
	}
	w.k.AdvanceTo(kernel.Time(time.Minute))
	if _, ok := w.etcd.Get("/a"); ok || len(w.me.results) != 0 {
		t.Error("a write that was not committed happened")
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(etcd.Config{History: 3})
	for i, s := range []string{"1", "2", "3", "4"} {
		w.txn(etcd.Txn{Key: fmt.Sprintf("/m/%d", i%2), Value: value(s), Expect: etcd.Any})
	}
	w.txn(etcd.Txn{Key: "/m/0", Expect: etcd.Any})
	for rev, want := range map[int64]string{0: "1=4@4", 4: "0=3@3 1=4@4", 3: "0=3@3 1=2@2", 1: "0=1@1"} {
		if got := w.all("/m/", rev); got != want {
			t.Errorf("at revision %d: %q, want %q", rev, got, want)
		}
	}
	for range 3 {
		w.txn(etcd.Txn{Key: "/m/9", Value: value("x"), Expect: etcd.Any})
	}
	if got := w.all("/m/", 1); got != "compacted" {
		t.Errorf("after compaction: %q", got)
	}
	if w.etcd.Since(1, func(etcd.Event) bool { return true }) {
		t.Error("history before the compaction can still be had")
	}
	var revs []int64
	w.etcd.Since(w.etcd.Revision()-2, func(e etcd.Event) bool { revs = append(revs, e.Rev); return true })
	if fmt.Sprint(revs) != "[7 8]" {
		t.Errorf("the last two: %v", revs)
	}
}

func TestLeases(t *testing.T) {
	w := newWorld(etcd.Config{History: 100})
	w.txn(etcd.Txn{Key: "/a", Value: value("1"), TTL: time.Hour})
	w.k.AdvanceTo(kernel.Time(30 * time.Minute))
	w.txn(etcd.Txn{Key: "/b", Value: value("1"), TTL: time.Hour})
	w.txn(etcd.Txn{Key: "/c", Value: value("1"), TTL: time.Hour})
	w.txn(etcd.Txn{Key: "/a", Value: value("2"), Expect: etcd.Any, TTL: time.Hour}) // renewed
	for _, at := range []struct {
		d    time.Duration
		want string
	}{{61 * time.Minute, "a=2@4 b=1@2 c=1@3"}, {91 * time.Minute, ""}} {
		w.k.AdvanceTo(kernel.Time(at.d))
		if got := w.all("/", 0); got != at.want {
			t.Errorf("after %s: %q, want %q", at.d, got, at.want)
		}
	}
}

func TestSnapshot(t *testing.T) {
	w := newWorld(etcd.DefaultConfig())
	w.txn(etcd.Txn{Key: "/a", Value: value("1")})
	snap := w.k.Snapshot()
	hash := snap.Hash()
	w.txn(etcd.Txn{Key: "/a", Value: value("2"), Expect: etcd.Any})
	w.txn(etcd.Txn{Key: "/b", Value: value("1")})
	first := w.k.Snapshot().StateHash("etcd")
	if snap.Hash() != hash {
		t.Error("going on changed the snapshot")
	}
	w.k.Restore(snap)
	if got := w.all("/", 0); got != "a=1@1" {
		t.Errorf("restored: %q", got)
	}
	w.txn(etcd.Txn{Key: "/a", Value: value("2"), Expect: etcd.Any})
	w.txn(etcd.Txn{Key: "/b", Value: value("1")})
	if w.k.Snapshot().StateHash("etcd") != first {
		t.Error("the same writes again give another state")
	}
}
