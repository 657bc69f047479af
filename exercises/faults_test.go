package exercises_test

import (
	"os"
	"testing"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/stage"
	"podwalk/exercises"
)

func TestMain(m *testing.M) {
	kubectl.ChildMain() // this program is its own kubectl
	os.Exit(m.Run())
}

func shell(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}

func start(t *testing.T, f exercises.Fault) *engine.Run {
	t.Helper()
	run, err := engine.StartRun(f.Scenario, shell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run
}

// TestFaults proves of every fault that its scenario is healthy without it, fails at its
// stage with it, and is healthy again when it is mended.
func TestFaults(t *testing.T) {
	all, err := exercises.Faults()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		t.Run(f.ID, func(t *testing.T) {
			t.Parallel()
			healthy, err := exercises.PlayWith(start(t, f), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !healthy.Ready {
				t.Fatalf("without the fault it fails at: %s", healthy)
			}
			run := start(t, f)
			v, err := exercises.PlayWith(run, []exercises.Fault{f})
			if err != nil {
				t.Fatal(err)
			}
			if v.Ready != (f.Verdict == "ready") || !v.Ready && v.Stage != f.Stage {
				t.Fatalf("with the fault: %s, want %s at %s", v, f.Verdict, f.Stage)
			}
			repaired(t, run, f)
		})
	}
}

// repaired mends the fault, asks again for what was refused, and wants all to be well.
func repaired(t *testing.T, run *engine.Run, f exercises.Fault) {
	t.Helper()
	if err := f.Repair(run); err != nil {
		t.Fatal(err)
	}
	if stage.Order(f.Stage) <= stage.Order(stage.Persist) && f.Needs == "" { // nothing was saved
		if err := run.Play(run.Scenario.Steps); err != nil {
			t.Fatal(err)
		}
	}
	if v := run.Settle(0); !v.Ready {
		t.Errorf("mended, it still fails at: %s", v)
	}
}
