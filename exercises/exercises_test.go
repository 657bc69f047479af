package exercises_test

import (
	"testing"

	"podwalk/engine/stage"
	"podwalk/exercises"
)

// seedsTried is how many variants of each exercise are played here.
const seedsTried = 3

// TestExercises plays variants of every exercise: it is broken (or healthy) as it says,
// nothing done scores 0, the solution scores 100, and a wrong stage never does.
func TestExercises(t *testing.T) {
	all, err := exercises.Exercises()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("there are %d exercises; at least 10 are needed", len(all))
	}
	for _, x := range all {
		t.Run(x.ID, func(t *testing.T) {
			for seed := range uint64(seedsTried) {
				v, err := x.Variant(seed)
				if err != nil {
					t.Fatal(err)
				}
				if x.Kind == exercises.Identify {
					identify(t, v)
				} else {
					inject(t, v)
				}
			}
		})
	}
}

func begin(t *testing.T, v exercises.Variant) *exercises.Attempt {
	t.Helper()
	a, err := v.Begin(shell)
	if err != nil {
		t.Fatalf("seed %d (%s): %v", v.Seed, v.Fault.ID, err)
	}
	t.Cleanup(func() { a.Run.Close() })
	return a
}

func identify(t *testing.T, v exercises.Variant) {
	t.Helper()
	a := begin(t, v)
	if a.Verdict.Ready || a.Verdict.Stage != v.Fault.Stage {
		t.Fatalf("seed %d: %s fails at %s, want %s", v.Seed, v.Fault.ID, a.Verdict, v.Fault.Stage)
	}
	for _, s := range stage.All() {
		if got := a.Answer(s.ID).Points; (got == 100) != (s.ID == v.Fault.Stage) {
			t.Errorf("seed %d: %s: answering %s scores %d", v.Seed, v.Fault.ID, s.ID, got)
		}
	}
	for _, line := range v.Show {
		if _, err := a.Run.Kubectl(line); err != nil {
			t.Errorf("seed %d: %s: %v", v.Seed, line, err)
		}
	}
}

func inject(t *testing.T, v exercises.Variant) {
	t.Helper()
	if s := begin(t, v).Grade(); s.Points != 0 {
		t.Errorf("seed %d: nothing done scores %d", v.Seed, s.Points)
	}
	a := begin(t, v)
	for _, id := range v.Exercise.Solution {
		f, err := exercises.FaultByID(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	if s := a.Grade(); s.Points != 100 {
		t.Errorf("seed %d: the solution scores %d: %s", v.Seed, s.Points, a.Verdict)
	}
}
