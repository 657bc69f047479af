package engine_test

import (
	"testing"
	"time"

	"podwalk/engine"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
)

// TestPublicDoor: who comes from another terminal sees the head, whatever the learner
// looks at; its time does not go back, and what it changes is the head's future.
func TestPublicDoor(t *testing.T) {
	tl, err := engine.NewTimeline(newEngine(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := tl.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(pod), "") }); err != nil {
		t.Fatal(err)
	}
	tl.Settle(0)
	n, door, prompt := tl.Len(), tl.Public(), tl.Outside()
	get := wire.Request{Verb: wire.Get, Resource: kube.Pods, Namespace: "default", Name: "nginx", Credential: engine.Admin, Client: stage.Kubectl}
	last := door.Now()
	for _, at := range []int{3, n, 8} {
		tl.Seek(at)
		if err := tl.Look(); err != nil {
			t.Fatal(err)
		}
		prompt.Do(get)
		prompt.Advance(3 * time.Second)
		if a := door.Do(get); a.Err() != nil {
			t.Errorf("with the cursor at %d the Pod at the head is not found: %v", at, a.Err())
		}
		if now := door.Now(); now < last {
			t.Errorf("time at the head went back from %d to %d", last, now)
		} else {
			last = now
		}
	}
	select {
	case <-tl.Moved():
	default:
		t.Error("nobody says that the head was moved")
	}
	tl.Seek(3)
	del := get
	del.Verb = wire.Delete
	if a := door.Do(del); a.Err() != nil {
		t.Fatal(a.Err())
	}
	if branch, _ := tl.Branch(); branch != 0 || tl.Len() <= n || tl.Cursor() != 3 {
		t.Errorf("a change from outside has moved the screen: branch %d, %d hops of %d, cursor %d", branch, tl.Len(), n, tl.Cursor())
	}
}

// TestWatchesOfTwoDoors: a watch at one door takes nothing from the other's, ends when the
// story is cut, and leaves nothing behind at the API server.
func TestWatchesOfTwoDoors(t *testing.T) {
	tl, err := engine.NewTimeline(newEngine(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := tl.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(pod), "") }); err != nil {
		t.Fatal(err)
	}
	watch := wire.Request{Verb: wire.Watch, Resource: kube.Pods, Credential: engine.Admin, Client: stage.Kubectl}
	door, prompt := tl.Public(), tl.Outside()
	outer, a := door.Watch(watch)
	tl.Settle(0)
	tl.Seek(5)
	if err := tl.Look(); err != nil {
		t.Fatal(err)
	}
	inner, b := prompt.Watch(watch)
	if inner == outer {
		t.Fatal("two watches have one number")
	}
	prompt.Unwatch(inner, b.WatchID)
	if len(door.Watched(outer)) == 0 {
		t.Error("the watch from outside has heard nothing of the Pod")
	}
	tl.Here()
	if ev := door.Watched(outer); len(ev) != 1 || ev[0].Type != wire.Closed {
		t.Errorf("after a cut the watch goes on: %v", ev)
	}
	door.Unwatch(outer, a.WatchID)
	if ev := door.Watched(outer); ev != nil {
		t.Errorf("a watch that was given up still has events: %v", ev)
	}
}

// TestIdleTimeCostsNoMemory: a cluster that is left alone for a day keeps no more moments
// than it needs to be seen at each of its hops.
func TestIdleTimeCostsNoMemory(t *testing.T) {
	tl, err := engine.NewTimeline(newEngine(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		tl.Run(1000, time.Minute)
	}
	if n := tl.Keyframes(); n > 3 {
		t.Errorf("%d keyframes of an hour in which nothing happened", n)
	}
	at := tl.Seek(tl.Len()).Now()
	if at != tl.HeadTime() {
		t.Errorf("the head's present is %d, shown is %d", tl.HeadTime(), at)
	}
}
