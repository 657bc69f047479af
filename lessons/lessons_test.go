package lessons_test

import (
	"os"
	"strings"
	"testing"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/lessons"
)

func TestMain(m *testing.M) {
	kubectl.ChildMain() // this program is its own kubectl
	os.Exit(m.Run())
}

func shell(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}

// TestLessonsPlayToTheirEnd walks through every lesson as a learner does who types what
// he is asked to and always answers right: every step is reached because what it waits
// for has come, and every word that it fills in is there in every language.
func TestLessonsPlayToTheirEnd(t *testing.T) {
	all, err := lessons.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		t.Run(l.ID, func(t *testing.T) {
			run, err := engine.StartRun(l.Scenario, shell)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			w := lessons.NewWalk(l, run, exercises.Palette{})
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			for {
				step(t, w, run)
				if w.Last() {
					break
				}
				if err := w.Next(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func step(t *testing.T, w *lessons.Walk, run *engine.Run) {
	t.Helper()
	s, _ := w.Step()
	if s.Try != "" {
		run.Seek(w.Target())
		out, err := run.Kubectl(s.Try)
		if err != nil || out.Code != 0 {
			t.Fatalf("%s: %s: %v %s", s.At, s.Try, err, out.Stderr)
		}
		run.Timeline.Run(400, engine.DeadlineDefault)
		w.Did()
	}
	if s.Ask != nil {
		answer(t, w, s)
	}
	if why := w.Held(); why != "" {
		t.Fatalf("step %s is held: %s", s.At, why)
	}
	if s.Until != nil && !s.Until.Settled {
		if hops := run.Hops(); w.Target() == 0 || !s.Until.Matches(hops[w.Target()-1]) {
			t.Fatalf("step %s: what it waits for has not come", s.At)
		}
	}
	if s.Until != nil && s.Until.Settled {
		if v := run.Verdict(); !v.Ready {
			t.Fatalf("step %s: it has settled, but fails at: %s", s.At, v)
		}
	}
	for _, lang := range scenario.Languages {
		words, err := w.Words(lang)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{words.Title, words.Body, words.Question, words.Feedback} {
			if strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
				t.Errorf("step %s, %s: not filled in: %s", s.At, lang, text)
			}
		}
	}
}

// answer tries every choice: exactly one is right, and each has its feedback.
func answer(t *testing.T, w *lessons.Walk, s lessons.Step) {
	t.Helper()
	right := ""
	for _, c := range s.Ask.Choices {
		ok, err := w.Answer(c)
		if err != nil {
			t.Fatal(err)
		}
		if words, _ := w.Words("en"); words.Feedback == "" || words.Right != ok {
			t.Errorf("step %s: no feedback for %q", s.At, c)
		}
		if ok {
			if right != "" {
				t.Errorf("step %s: both %q and %q are right", s.At, right, c)
			}
			right = c
		}
	}
	if right == "" {
		t.Fatalf("step %s: no choice is right", s.At)
	}
	if _, err := w.Answer(right); err != nil {
		t.Fatal(err)
	}
}
