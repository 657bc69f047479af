package trace

import (
	"testing"

	"podwalk/engine/kernel"
)

func record(l *Log, n int, detail func(i int) any) {
	for i := range n {
		l.Record(Hop{Verb: "POST", Detail: detail(i)})
	}
}

// TestStateIsHashedWhole: two logs that differ anywhere, in a hop long gone by or in a
// detail, have different hashes.
func TestStateIsHashedWhole(t *testing.T) {
	const n = 3 * backgroundMax
	hash := func(change func(i int, h *Hop), background bool) uint64 {
		l := New(kernel.New(1))
		for i := range n {
			h := Hop{Verb: "POST", Message: "as ever", Background: background}
			if !background {
				h.Detail = HTTP{Path: "/api"}
			}
			change(i, &h)
			l.Record(h)
		}
		return kernel.Hash(l.Snapshot())
	}
	plain := func(int, *Hop) {}
	changes := map[string]func(h *Hop){
		"message": func(h *Hop) { h.Message = "other" },
		"stage":   func(h *Hop) { h.Stage = "client" },
		"object":  func(h *Hop) { h.Object.Namespace = "web" },
		"cause":   func(h *Hop) { h.Cause = 1 },
	}
	for _, background := range []bool{false, true} {
		same := hash(plain, background)
		if hash(plain, background) != same {
			t.Fatal("two logs of the same hops have different hashes")
		}
		for what, change := range changes {
			if hash(func(i int, h *Hop) {
				if i == 7 {
					change(h)
				}
			}, background) == same {
				t.Errorf("another %s in hop 8 of %d (background: %v) does not show in the hash", what, n, background)
			}
		}
	}
	same := hash(plain, false)
	if hash(func(i int, h *Hop) {
		if i == 7 {
			h.Detail = HTTP{Path: "/apis"}
		}
	}, false) == same {
		t.Error("another detail does not show in the hash")
	}
}

// TestHashAfterGoingBack: what was recorded and taken back leaves nothing behind.
func TestHashAfterGoingBack(t *testing.T) {
	k := kernel.New(1)
	l := New(k)
	none := func(int) any { return nil }
	record(l, 10, none)
	there := l.Snapshot()
	k.SetCause(0)
	record(l, 5, none)
	later := kernel.Hash(l.Snapshot())
	l.Restore(there)
	k.SetCause(0)
	if kernel.Hash(l.Snapshot()) != kernel.Hash(there) {
		t.Error("going back does not lead to the same state")
	}
	record(l, 5, none)
	if kernel.Hash(l.Snapshot()) != later {
		t.Error("the same hops again make another state")
	}
}

// TestFullLog: a story that gets too long ends the run with an error that says so, and
// going back before it takes the error back.
func TestFullLog(t *testing.T) {
	k := kernel.New(1)
	l := New(k)
	l.max = 3
	none := func(int) any { return nil }
	before := k.Snapshot()
	record(l, 3, none)
	if k.Err() != nil {
		t.Fatalf("three hops fit, but: %v", k.Err())
	}
	l.Record(Hop{Background: true})
	if k.Err() != nil {
		t.Fatalf("background hops do not count, but: %v", k.Err())
	}
	record(l, 1, none)
	if err := k.Err(); err == nil || l.Len() != 3 {
		t.Fatalf("a fourth hop: %d hops, error %v", l.Len(), err)
	} else if got, want := err.Error(), "the story has 3 hops, and no more are kept: it ends here"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if k.Step() {
		t.Error("the run goes on")
	}
	k.Restore(before)
	if k.Err() != nil || l.Len() != 0 {
		t.Errorf("after going back: %d hops, error %v", l.Len(), k.Err())
	}
}
