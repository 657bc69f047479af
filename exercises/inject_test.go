package exercises_test

import (
	"strings"
	"testing"

	"podwalk/exercises"
)

// TestInject: nothing done scores 0; each fault of the solution and each way with kubectl
// scores 100; what comes near scores less, and is told from the right thing.
func TestInject(t *testing.T) {
	each(t, exercises.Inject, func(t *testing.T, x exercises.Exercise) {
		v, err := x.Variant(3)
		if err != nil {
			t.Fatal(err)
		}
		if s := begin(t, v).Grade(); s.Points != 0 || s.Deciding != nil {
			t.Errorf("nothing done scores %d", s.Points)
		}
		if len(x.Solution)+len(v.Ways) < 2 {
			t.Error("there is only one way to solve it")
		}
		for _, id := range x.Solution {
			solves(t, inject(t, v, id), id)
		}
		for _, way := range v.Ways {
			a := begin(t, v)
			for _, line := range way {
				if _, err := a.Kubectl(line); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			solves(t, a, strings.Join(way, "; "))
		}
		for _, id := range x.Near {
			a := inject(t, v, id)
			if s := a.Grade(); s.Points >= 100 {
				t.Errorf("%s scores %d as well: %s", id, s.Points, a.Verdict)
			}
		}
	})
}

func inject(t *testing.T, v exercises.Variant, id string) *exercises.Attempt {
	t.Helper()
	a := begin(t, v)
	if err := a.Inject(fault(t, id)); err != nil {
		t.Fatal(err)
	}
	return a
}

func solves(t *testing.T, a *exercises.Attempt, how string) {
	t.Helper()
	s := a.Grade()
	if s.Points != 100 || !s.Symptom {
		t.Errorf("%s scores %d, STATUS %s: %s", how, s.Points, s.Status, a.Verdict)
	}
	if s.Deciding == nil || s.Deciding.Background {
		t.Errorf("%s: there is no deciding hop to show", how)
	}
}

// TestTries: what was refused in a try before does not count against the solution, nor
// does looking around.
func TestTries(t *testing.T) {
	t.Parallel()
	x, err := exercises.ExerciseByID("make-it-back-off")
	if err != nil {
		t.Fatal(err)
	}
	v, err := x.Variant(0)
	if err != nil {
		t.Fatal(err)
	}
	a := begin(t, v)
	for _, line := range []string{
		"kubectl run " + v.Name + " --image=nginx:1.99", // AlreadyExists
		"kubectl set image pod/" + v.Name + " " + v.Name + "=nginx:1.99",
		"kubectl get pods --as jane", // Forbidden
		"kubectl get pods",
		"kubectl logs " + v.Name,
	} {
		if _, err := a.Kubectl(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	solves(t, a, "after some tries")
	if len(a.Looked) != 3 || len(a.Done) != 2 {
		t.Errorf("looked %v, done %v", a.Looked, a.Done)
	}
}
