package engine_test

import (
	"slices"
	"testing"

	"podwalk/engine"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
)

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"nginx"},"spec":{"containers":[{"name":"nginx","image":"nginx"}]}}`

func newEngine(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(scenario.Default())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOnePodWalksItsSteps(t *testing.T) {
	e := newEngine(t)
	if err := e.ApplyManifest([]byte(pod), ""); err != nil {
		t.Fatal(err)
	}
	if v := e.Settle(0); !v.Ready {
		t.Fatalf("failed at: %s", v)
	}
	var order []stage.Step
	seen := map[stage.Step]bool{}
	for _, h := range e.Trace().Story() {
		if h.Stage == stage.Status && !seen["9"] {
			continue // the kubelet says early that it has begun
		}
		if s := h.Step(); !seen[s] {
			seen[s] = true
			order = append(order, s)
		}
	}
	want := []stage.Step{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}
	if !slices.Equal(order, want) {
		t.Errorf("the steps come in the order %v, want %v", order, want)
	}
}
