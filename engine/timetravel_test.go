package engine_test

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.29
        readinessProbe: {httpGet: {path: /, port: 80}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// stories are what the tests of this file play: a happy Pod, a Deployment with a Service,
// and runs that fail early, in the middle and late.
var stories = map[string][]scenario.Step{
	"pod":        {{Apply: pod}},
	"deployment": {{Apply: deployment}},
	"refused":    {{Apply: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x"}]}}`}},
	"no tag":     {{Apply: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x","image":"nginx:1.99"}]}}`}},
	"crash":      {{Apply: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x","image":"busybox:1.36","command":["sh","-c","echo no; sleep 2; exit 3"]}]}}`}},
	"stopped":    {{Switch: &scenario.Switch{Point: "kube-scheduler.stopped"}}, {Apply: pod}, {Advance: scenario.Duration(20 * time.Second)}, {Switch: &scenario.Switch{Point: "kube-scheduler.stopped", Clear: true}}},
}

func play(t *testing.T, steps []scenario.Step) *engine.Engine {
	t.Helper()
	e := newEngine(t)
	for _, s := range steps {
		if err := e.Play(s, ""); err != nil {
			t.Fatal(err)
		}
	}
	e.Advance(90 * time.Second)
	return e
}

func text(e *engine.Engine) string {
	var b bytes.Buffer
	for _, h := range e.Trace().Story() {
		b.WriteString(h.Line(e.Origin()) + "\n")
	}
	return b.String()
}

// TestSameStorySameRun plays every story twice: same trace, same state.
func TestSameStorySameRun(t *testing.T) {
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			a, b := play(t, steps), play(t, steps)
			if text(a) != text(b) {
				t.Errorf("two runs, two traces:\n%s", firstDifference(text(a), text(b)))
			}
			compare(t, a.Snapshot(), b.Snapshot())
		})
	}
}

func compare(t *testing.T, a, b *engine.Snapshot) {
	t.Helper()
	if a.Hash() == b.Hash() {
		return
	}
	t.Errorf("the states differ: %v", a.Differences(b))
}

func firstDifference(a, b string) string {
	la, lb := bytes.Split([]byte(a), []byte("\n")), bytes.Split([]byte(b), []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return string(la[i]) + "\n" + string(lb[i])
		}
	}
	return "one is longer"
}

// TestReplay has a fresh engine carry out the recorded commands at their places: the run
// is the same to the bit, and no kubectl is needed.
func TestReplay(t *testing.T) {
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			a := play(t, steps)
			b := newEngine(t)
			if err := b.Replay(a.Commands()); err != nil {
				t.Fatal(err)
			}
			b.Advance(a.Now().Sub(b.Now()))
			compare(t, a.Snapshot(), b.Snapshot())
		})
	}
}

// TestSnapshotIsIndependent goes on after a snapshot, goes back, and goes on again.
func TestSnapshotIsIndependent(t *testing.T) {
	for name, steps := range stories {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			for _, s := range steps {
				if err := e.Play(s, ""); err != nil {
					t.Fatal(err)
				}
			}
			for range 12 {
				snap := e.Snapshot()
				before := snap.Hash()
				e.Advance(3 * time.Second)
				there := e.Snapshot()
				e.Restore(snap)
				compare(t, e.Snapshot(), snap)
				if snap.Hash() != before {
					t.Fatal("going on has changed the snapshot")
				}
				e.Advance(3 * time.Second)
				compare(t, e.Snapshot(), there)
			}
		})
	}
}

// TestSeek goes to every hop, back and forth, and finds the state that was there on the
// way.
func TestSeek(t *testing.T) {
	e := newEngine(t)
	tl, err := engine.NewTimeline(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := tl.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(deployment), "") }); err != nil {
		t.Fatal(err)
	}
	tl.Settle(0)
	n := tl.Len()
	way := map[int]uint64{}
	for i := 0; i <= n; i++ {
		way[i] = tl.Seek(i).Hash()
	}
	for i := n; i >= 0; i -= 3 {
		if got := tl.Seek(i).Hash(); got != way[i] {
			t.Errorf("hop %d looks different on the way back", i)
		}
	}
	for _, i := range []int{n / 2, 0, n, 1, n - 1, n / 3} {
		if got := tl.Seek(i).Hash(); got != way[i] {
			t.Errorf("hop %d looks different after a jump", i)
		}
	}
}

// TestBranch acts in the past: what came after is cut, kept for comparing, and the two
// stories part where the action was.
func TestBranch(t *testing.T) {
	e := newEngine(t)
	tl, err := engine.NewTimeline(e)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(m string) {
		t.Helper()
		tl.Here()
		if err := tl.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(m), "") }); err != nil {
			t.Fatal(err)
		}
	}
	apply(pod)
	tl.Settle(0)
	first := tl.Hops()
	at := 0
	for i, h := range first {
		if h.Stage == stage.BindingSaved {
			at = i
			break
		}
	}
	tl.Seek(at)
	tl.Here()
	if err := tl.Act(func(e *engine.Engine) error {
		return e.Switch(scenario.Switch{Point: "kubelet.stopped"})
	}); err != nil {
		t.Fatal(err)
	}
	v := tl.Settle(2 * time.Minute)
	if v.Ready {
		t.Fatal("with the kubelet stopped before it saw the Pod, the Pod is Ready")
	}
	n, past := tl.Branch()
	if n != 1 || len(past) != 1 || len(past[0].Hops) != len(first) {
		t.Fatalf("branch %d, %d branches kept", n, len(past))
	}
	if d := parting(first, tl.Hops()); d < at {
		t.Errorf("the stories part at hop %d, before the action at %d", d, at)
	}
}

// TestWhy walks from a symptom back to what the user did.
func TestWhy(t *testing.T) {
	e := play(t, stories["no tag"])
	var last trace.Hop
	for _, h := range e.Trace().Hops() {
		if h.Stage == stage.Image && h.Outcome == trace.Retry {
			last = h
		}
	}
	chain := e.Trace().Why(last.Seq)
	if len(chain) < 5 || chain[0].Stage != stage.Client {
		for _, h := range chain {
			t.Log(h.Line(e.Origin()))
		}
		t.Fatal("the chain of causes does not lead back to the client")
	}
}

// TestLooking: a command that only looks is answered from the moment at the cursor and
// leaves the story alone; the first write of a command cuts it there.
func TestLooking(t *testing.T) {
	tl, err := engine.NewTimeline(newEngine(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := tl.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(pod), "") }); err != nil {
		t.Fatal(err)
	}
	tl.Settle(0)
	n, at := tl.Len(), 0
	for i, h := range tl.Hops() {
		if h.Stage == stage.Persist {
			at = i + 1
			break
		}
	}
	tl.Seek(at)
	if err := tl.Look(); err != nil {
		t.Fatal(err)
	}
	out := tl.Outside()
	get := wire.Request{Verb: wire.Get, Resource: kube.Pods, Namespace: "default", Name: "nginx", Credential: engine.Admin}
	a := out.Do(get)
	if a.Err() != nil || a.Object.(*corev1.Pod).Spec.NodeName != "" {
		t.Errorf("right after it was saved the Pod has a node: %v %v", a.Err(), a.Object)
	}
	out.Advance(20 * time.Second)
	if a := out.Do(get); a.Err() != nil || a.Object.(*corev1.Pod).Status.Phase != corev1.PodRunning {
		t.Errorf("a command that waits does not see time pass")
	}
	if branch, _ := tl.Branch(); branch != 0 || tl.Len() != n || tl.Cursor() != at {
		t.Errorf("looking has changed the story: branch %d, %d hops, cursor %d", branch, tl.Len(), tl.Cursor())
	}
	if err := tl.Look(); err != nil {
		t.Fatal(err)
	}
	out.Do(get)
	out.Do(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: "nginx", Credential: engine.Admin})
	if branch, _ := tl.Branch(); branch != 1 {
		t.Errorf("a write in the past has not begun a branch")
	}
	if a := out.Do(get); a.Code != 404 {
		t.Errorf("a Pod without a node is deleted at once, but it is there: %d", a.Code)
	}
}

// parting returns the index of the first hop at which two stories part, or -1.
func parting(a, b []trace.Hop) int {
	for i := range min(len(a), len(b)) {
		if !a[i].Like(b[i]) {
			return i
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return min(len(a), len(b))
}

// TestAsideAndBack: what somebody else did, and what was forgiven, is so too after going
// back and acting there.
func TestAsideAndBack(t *testing.T) {
	r, err := engine.StartRun(scenario.Scenario{Cluster: scenario.Default()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lonely := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"lonely"},"spec":{"selector":{"app":"nobody"},"ports":[{"port":80}]}}`
	nameless := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x"}]}}`
	settled := func(when string) {
		t.Helper()
		if v := r.Settle(0); !v.Ready {
			t.Errorf("%s: %s", when, v)
		}
	}
	if err := r.PlayAside([]scenario.Step{{Apply: lonely}}); err != nil {
		t.Fatal(err)
	}
	if err := r.PlayAside([]scenario.Step{{Apply: nameless}}); err == nil {
		t.Error("that somebody else is refused is no error")
	}
	if err := r.Play([]scenario.Step{{Apply: nameless}}); err != nil {
		t.Fatal(err)
	}
	r.Forgive()
	if err := r.Play([]scenario.Step{{Apply: pod}}); err != nil {
		t.Fatal(err)
	}
	settled("at first")
	r.Seek(r.Len() - 3)
	r.Here()
	settled("after going back")
	var there, again *engine.Snapshot
	_ = r.Engine(func(e *engine.Engine) error {
		there = e.Snapshot()
		fresh := newEngine(t)
		if err := fresh.Replay(e.Commands()); err != nil {
			return err
		}
		fresh.Advance(e.Now().Sub(fresh.Now()))
		again = fresh.Snapshot()
		return nil
	})
	compare(t, there, again)
}

// TestLongRunsKeepFewKeyframes: however long a run gets, the moments that are kept of it
// are few, and every hop can still be reached.
func TestLongRunsKeepFewKeyframes(t *testing.T) {
	tl, err := engine.NewTimeline(newEngine(t))
	if err != nil {
		t.Fatal(err)
	}
	tl.KeyframesEvery(2)
	if err := tl.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(deployment), "") }); err != nil {
		t.Fatal(err)
	}
	states := map[int]uint64{}
	for tl.Run(1, 20*time.Second) {
		states[tl.Len()] = tl.Seek(tl.Len() - 1).Hash()
	}
	if n := tl.Keyframes(); n > engine.KeyframesMax || n < engine.KeyframesMax/4 {
		t.Errorf("%d keyframes, at most %d", n, engine.KeyframesMax)
	}
	for n, hash := range states {
		if tl.Seek(n-1).Hash() != hash {
			t.Errorf("hop %d is not what it was", n-1)
		}
	}
}
