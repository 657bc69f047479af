package exercises_test

import (
	"strings"
	"testing"

	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/exercises"
)

// each runs a test for every exercise of a kind, or for all where kind is "".
func each(t *testing.T, kind string, f func(t *testing.T, x exercises.Exercise)) {
	t.Helper()
	all, err := exercises.Exercises()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("there are %d exercises; at least 10 are needed", len(all))
	}
	for _, x := range all {
		if kind == "" || x.Kind == kind {
			t.Run(x.ID, func(t *testing.T) { t.Parallel(); f(t, x) })
		}
	}
}

// variantsTried is how many variants of each pair of exercise and fault are played.
const variantsTried = 2

// seedsTried bounds the search for the seeds that draw each fault.
const seedsTried = 200

// variants are the first seeds' variants of each fault that an exercise may draw.
func variants(t *testing.T, x exercises.Exercise, of int) map[string][]exercises.Variant {
	t.Helper()
	out, missing := map[string][]exercises.Variant{}, of*len(x.Faults)
	for seed := uint64(0); seed < seedsTried && missing > 0; seed++ {
		v, err := x.Variant(seed)
		if err != nil {
			t.Fatal(err)
		}
		if have := out[v.Fault.ID]; len(have) < of {
			out[v.Fault.ID] = append(have, v)
			missing--
		}
	}
	for _, id := range x.Faults {
		if len(out[id]) < of {
			t.Errorf("%s is drawn by %d of %d seeds", id, len(out[id]), seedsTried)
		}
	}
	return out
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

// TestIdentify plays variants of every fault that every exercise may draw: it is broken as
// it says, only its stage scores 100, and there is a hop to show with the answer.
func TestIdentify(t *testing.T) {
	each(t, exercises.Identify, func(t *testing.T, x exercises.Exercise) {
		for _, vs := range variants(t, x, variantsTried) {
			for i, v := range vs {
				a := identify(t, v)
				if i == 0 {
					shown(t, a)
				}
			}
		}
	})
}

func identify(t *testing.T, v exercises.Variant) *exercises.Attempt {
	t.Helper()
	a := begin(t, v)
	if a.Verdict.Ready || a.Verdict.Stage != v.Fault.Stage {
		t.Fatalf("seed %d: %s fails at %s, want %s", v.Seed, v.Fault.ID, a.Verdict, v.Fault.Stage)
	}
	for _, s := range stage.All() {
		if got := a.Answer(s.ID).Points; (got == 100) != (s.ID == v.Fault.Stage) {
			t.Errorf("seed %d: %s: answering %s scores %d", v.Seed, v.Fault.ID, s.ID, got)
		}
		feedback(t, a, s.ID)
	}
	deciding(t, a)
	return a
}

// shown wants something to read from every command that the learner sees first.
func shown(t *testing.T, a *exercises.Attempt) {
	t.Helper()
	for _, line := range a.Variant.Show {
		out, err := a.Kubectl(line)
		if err != nil || out.Stdout+out.Stderr == "" {
			t.Errorf("%s: %s prints nothing, %v", a.Variant.Fault.ID, line, err)
		}
	}
}

// feedback wants words in every language against every stage that is not the one, and for
// what was passed the hop that shows it.
func feedback(t *testing.T, a *exercises.Attempt, guess stage.ID) {
	t.Helper()
	s, id := a.Answer(guess), a.Variant.Fault.ID
	if guess == s.Right {
		if s.Rule != "" || len(s.Refuted) > 0 {
			t.Errorf("%s: the right answer is refuted: %s", id, s.Refuted.In("en"))
		}
		return
	}
	if err := s.Refuted.Check("the feedback"); err != nil {
		t.Errorf("%s: answering %s: %v", id, guess, err)
	}
	switch s.Rule {
	case exercises.Passed, exercises.After, exercises.Followed:
		if s.Evidence == nil || s.Evidence.Stage != guess {
			t.Errorf("%s: answering %s: %s, and no hop of that stage shows it", id, guess, s.Rule)
		}
	case exercises.Answered:
		if s.Evidence == nil {
			t.Errorf("%s: answering %s: nobody answered", id, guess)
		}
	case exercises.Never, exercises.NoPart:
		if s.Evidence != nil {
			t.Errorf("%s: answering %s: %s, and yet there is a hop: %s", id, guess, s.Rule, s.Evidence.Edge())
		}
	case exercises.Own:
	default:
		t.Errorf("%s: answering %s: the rule is %q", id, guess, s.Rule)
	}
}

// deciding wants a hop of the story that can be played: the one that failed, or, where
// nothing failed, the last thing that happened to the object.
func deciding(t *testing.T, a *exercises.Attempt) {
	t.Helper()
	s, id := a.Answer(a.Variant.Fault.Stage), a.Variant.Fault.ID
	if s.Deciding == nil {
		t.Errorf("%s: there is no deciding hop", id)
		return
	}
	if s.Deciding.Background {
		t.Errorf("%s: the deciding hop is not in the story", id)
	}
	if len(s.Silent) == 0 {
		if s.Deciding.Stage != s.Right || s.Deciding.Outcome == "ok" {
			t.Errorf("%s: the deciding hop is %s %s at %s", id, s.Deciding.Edge(), s.Deciding.Outcome, s.Deciding.Stage)
		}
		return
	}
	if s.Deciding.Object != a.Verdict.Object {
		t.Errorf("%s: the last thing is about %s, not %s", id, s.Deciding.Object, a.Verdict.Object)
	}
	for _, h := range a.Run.Hops() {
		if h.Object == s.Deciding.Object && h.Seq > s.Deciding.Seq {
			t.Errorf("%s: after the last thing came %s at %s", id, h.Edge(), h.Stage)
		}
	}
}

// TestSiblings: a stage that another fault of the same exercise has is what a learner will
// weigh against the right one, so that the fault itself must have words against it.
func TestSiblings(t *testing.T) {
	each(t, exercises.Identify, func(t *testing.T, x exercises.Exercise) {
		for _, id := range x.Faults {
			f := fault(t, id)
			has := map[stage.ID]bool{f.Stage: true}
			for _, w := range f.Wrong {
				has[w.Stage] = true
			}
			for _, other := range x.Faults {
				if st := fault(t, other).Stage; !has[st] {
					t.Errorf("%s: %s has no words against %s", x.ID, id, st)
				}
			}
		}
	})
}

// TestAnswerVaries: a question whose answer is always the same asks nothing.
func TestAnswerVaries(t *testing.T) {
	each(t, exercises.Identify, func(t *testing.T, x exercises.Exercise) {
		answers := map[stage.ID]bool{}
		for _, id := range x.Faults {
			answers[fault(t, id).Stage] = true
		}
		if len(answers) < 2 {
			t.Errorf("%s: the answer is always the same: %v", x.ID, answers)
		}
	})
}

func fault(t *testing.T, id string) exercises.Fault {
	t.Helper()
	f, err := exercises.FaultByID(id)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var langs = scenario.Languages

// TestNothingLeft: no placeholder is left in what the learner reads.
func TestNothingLeft(t *testing.T) {
	each(t, "", func(t *testing.T, x exercises.Exercise) {
		v, err := x.Variant(1)
		if err != nil {
			t.Fatal(err)
		}
		texts := append([]scenario.Text{v.Exercise.Title, v.Exercise.Prompt}, v.Exercise.Hints...)
		for _, lang := range langs {
			for _, text := range texts {
				if s := text.In(lang); strings.Contains(s, "$") {
					t.Errorf("%s: %s", x.ID, s)
				}
			}
		}
	})
}
