package controllers_test

import (
	"testing"
	"time"

	"podwalk/engine/kernel"
)

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: nginx, image: "nginx:1.27"}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {pods: "20"}}
`

// rollout is a run in which every controller has something to do.
func rollout(t *testing.T) *story {
	s := &story{w: newWorld(t, "node01", "node02")}
	if out := s.apply(webDeployment); out != "" {
		t.Fatal(out)
	}
	s.w.advance(2 * time.Second)
	s.w.nodes.state.Down["node01"] = true
	if out := s.patch("Deployment", "web", `{spec: {template: {spec: {containers: [{name: nginx, image: "nginx:1.28"}]}}}}`); out != "" {
		t.Fatal(out)
	}
	return s
}

// TestTimeTravel goes on from snapshots taken all along a rollout, in the middle of
// syncs, and must arrive where the run without them did.
func TestTimeTravel(t *testing.T) {
	s := rollout(t)
	k := s.w.k
	end := k.Now().Add(90 * time.Second)
	var snaps []*kernel.Snapshot
	var hashes []uint64
	for i := 0; ; i++ {
		if at, ok := k.Next(); !ok || at > end {
			break
		}
		if i%97 == 0 {
			snap := k.Snapshot()
			snaps, hashes = append(snaps, snap), append(hashes, snap.Hash())
		}
		k.Step()
	}
	k.AdvanceTo(end)
	last := k.Snapshot()
	want := last.Hash()
	if len(snaps) < 10 {
		t.Fatalf("only %d snapshots", len(snaps))
	}
	for i := 0; i < len(snaps); i += 1 + len(snaps)/12 {
		k.Restore(snaps[i])
		if got := k.Snapshot().Hash(); got != hashes[i] {
			t.Fatalf("snapshot %d at %v: restored to another state", i, time.Duration(snaps[i].At()))
		}
		k.AdvanceTo(end)
		if again := k.Snapshot(); again.Hash() != want {
			for _, name := range last.StateNames() {
				if again.StateHash(name) != last.StateHash(name) {
					t.Errorf("%s differs", name)
				}
			}
			t.Fatalf("snapshot %d at %v: another end", i, time.Duration(snaps[i].At()))
		}
	}
}

// TestSameRun runs twice and compares.
func TestSameRun(t *testing.T) {
	var hash [2]uint64
	for i := range hash {
		s := rollout(t)
		s.w.advance(20 * time.Second)
		hash[i] = s.w.k.Snapshot().Hash()
	}
	if hash[0] != hash[1] {
		t.Error("two runs with the same seed differ")
	}
}
