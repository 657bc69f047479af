package session

import (
	"strings"
	"testing"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
)

func realShell(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}

// opened opens a variant of an exercise on the screen's side; points are kept in got.
func opened(t *testing.T, x exercises.Exercise, seed uint64, got *[]int) *app.Session {
	t.Helper()
	s, err := Drill(x, seed, realShell, func(points int, _ stage.ID) { *got = append(*got, points) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Left(0) })
	return s
}

// TestIdentifyFeedback: for every exercise a wrong answer is refuted in both languages with
// what the run shows, and the deciding hop can be played; also where nothing failed.
func TestIdentifyFeedback(t *testing.T) {
	all, err := exercises.Exercises()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.Kind != exercises.Identify {
			continue
		}
		t.Run(x.ID, func(t *testing.T) {
			t.Parallel()
			var got []int
			s := opened(t, x, 2, &got)
			for _, guess := range []stage.ID{stage.Client, stage.Score, stage.Eviction} {
				v := s.Exercise.Answer(guess)
				if v.Right || v.Hop < 0 || v.Hop >= s.Timeline.Len() || v.Evidence == "" {
					t.Errorf("%s: right %v, hop %d of %d, evidence %q", guess, v.Right, v.Hop, s.Timeline.Len(), v.Evidence)
				}
				for _, l := range i18n.Langs() {
					if strings.TrimSpace(v.Why[l]) == "" {
						t.Errorf("%s: nothing is said in %s", guess, l)
					}
				}
			}
			if len(got) != 3 {
				t.Errorf("%d results for 3 answers", len(got))
			}
		})
	}
}

// TestFocus: the Pod that is followed is the one that the question is about, not one that
// was there before.
func TestFocus(t *testing.T) {
	x, err := exercises.ExerciseByID("which-gate")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		v, err := x.Variant(seed)
		if err != nil {
			t.Fatal(err)
		}
		if v.Fault.ID != "quota-exceeded-pod" {
			continue
		}
		var got []int
		if f := opened(t, x, seed, &got).Timeline.Focus(); f.Name != v.Name {
			t.Errorf("%s is followed, not %s", f, v.Name)
		}
		return
	}
	t.Fatal("no seed draws the quota")
}

// TestInjectWithKubectl: commands in the terminal solve an exercise as faults do; a half
// way is nothing yet, and a wrong one says where it fails.
func TestInjectWithKubectl(t *testing.T) {
	x, err := exercises.ExerciseByID("make-it-crash")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	s := opened(t, x, 0, &got)
	v, err := x.Variant(0)
	if err != nil {
		t.Fatal(err)
	}
	type_ := func(line string) {
		t.Helper()
		res := s.Kubectl(s.Timeline.Len()-1, line)
		if res.Failed {
			t.Fatalf("%s: %s", line, res.Output)
		}
	}
	type_("kubectl delete pod " + v.Name)
	if _, done := s.Exercise.Check(); done {
		t.Error("a Pod that is gone is judged")
	}
	type_("kubectl run " + v.Name + " --image=nginx:1.99")
	if v, done := s.Exercise.Check(); !done || v.Right || v.Truth != stage.Image {
		t.Errorf("done %v, right %v at %s", done, v.Right, v.Truth)
	}
	type_("kubectl delete pod " + v.Name)
	for _, line := range v.Ways[0][1:] {
		type_(line)
	}
	if v, done := s.Exercise.Check(); !done || !v.Right || v.Hop < 0 {
		t.Errorf("done %v, right %v at %s, hop %d", done, v.Right, v.Truth, v.Hop)
	}
	if len(got) != 1 || got[0] != 100 {
		t.Errorf("points: %v", got)
	}
}
