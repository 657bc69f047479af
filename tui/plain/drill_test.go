package plain_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"podwalk/assets"
	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/tui/i18n"
	"podwalk/tui/plain"
)

func TestMain(m *testing.M) {
	kubectl.ChildMain() // this program is its own kubectl
	os.Exit(m.Run())
}

func shell(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}

// drilled goes through a variant in a language with what the learner types, and returns
// what he reads and his points (-1 for no answer).
func drilled(t *testing.T, v exercises.Variant, a *exercises.Attempt, lang i18n.Lang, typed ...string) (out string, points int) {
	t.Helper()
	words, err := i18n.Load(assets.FS)
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		if a, err = v.Begin(shell); err != nil {
			t.Fatal(err)
		}
		defer a.Run.Close()
	}
	a.Hints, points = 0, -1
	var b bytes.Buffer
	tutor := plain.New(strings.NewReader(strings.Join(typed, "\n")+"\n"), &b, words.In(lang))
	if _, err := tutor.Drill(a, plain.Keep{Result: func(p int, _ stage.ID) { points = p }}); err != nil {
		t.Fatal(err)
	}
	out = b.String()
	for _, bad := range []string{"plain.", "stage.", "identify.", "{{", "{st", "$NAME", "$IMAGE"} {
		if strings.Contains(strings.ReplaceAll(out, "kubectl explain", ""), bad) && !strings.Contains(v.Name, bad) {
			t.Errorf("%s %s: %q is left in what is read:\n%s", v.Exercise.ID, lang, bad, out)
		}
	}
	return out, points
}

// label is what the choices call a stage.
func label(id stage.ID) string {
	ids, labels := plain.StageChoices()
	return labels[slices.Index(ids, id)]
}

func variant(t *testing.T, x exercises.Exercise) exercises.Variant {
	t.Helper()
	v, err := x.Variant(1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDrills goes through every exercise in both languages: solved, and wrong with hints;
// of the same broken cluster where only looking is needed.
func TestDrills(t *testing.T) {
	all, err := exercises.Exercises()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		t.Run(x.ID, func(t *testing.T) {
			t.Parallel()
			v := variant(t, x)
			if x.Kind == exercises.Identify {
				identified(t, v)
				return
			}
			for _, lang := range i18n.Langs() {
				injected(t, v, lang)
			}
		})
	}
}

func identified(t *testing.T, v exercises.Variant) {
	a, err := v.Begin(shell)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Run.Close()
	for _, lang := range i18n.Langs() {
		l := string(lang)
		out, points := drilled(t, v, a, lang, "kubectl get pods", label(v.Fault.Stage), "q")
		if points != 100 {
			t.Errorf("%s: solved, %d points:\n%s", lang, points, out)
		}
		holds(t, out, v.Exercise.Title.In(l), v.Fault.Look.In(l), v.Fault.Remedy.In(l))
		for _, w := range v.Fault.Wrong[:1] {
			out, points = drilled(t, v, a, lang, "h", "nonsense", label(w.Stage), "q")
			if points >= 100 || points < 0 {
				t.Errorf("%s: wrong, %d points", lang, points)
			}
			holds(t, out, v.Exercise.Hints[0].In(l), w.Refuted.In(l), v.Fault.Look.In(l))
		}
	}
}

func injected(t *testing.T, v exercises.Variant, lang i18n.Lang) {
	all, err := exercises.Faults()
	if err != nil {
		t.Fatal(err)
	}
	choose := func(id string) string {
		return fmt.Sprint(slices.IndexFunc(all, func(f exercises.Fault) bool { return f.ID == id }) + 1)
	}
	out, points := drilled(t, v, nil, lang, "kubectl get pods", choose(v.Exercise.Solution[0]), "q")
	if points != 100 {
		t.Errorf("%s: solved, %d points:\n%s", lang, points, out)
	}
	holds(t, out, v.Exercise.Prompt.In(string(lang)))
	out, points = drilled(t, v, nil, lang, append(slices.Clone(v.Ways[0]), "q")...)
	if points != 100 {
		t.Errorf("%s: solved with kubectl, %d points:\n%s", lang, points, out)
	}
	out, points = drilled(t, v, nil, lang, "h", choose(v.Exercise.Near[0]), "q")
	if points >= 90 || points < 0 {
		t.Errorf("%s: %s gets %d points:\n%s", lang, v.Exercise.Near[0], points, out)
	}
	holds(t, out, v.Exercise.Hints[0].In(string(lang)))
}

// holds wants texts in what is read, however it is wrapped.
func holds(t *testing.T, out string, texts ...string) {
	t.Helper()
	squeeze := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "`", "")), "") }
	for _, want := range texts {
		if !strings.Contains(squeeze(out), squeeze(want)) {
			t.Errorf("%q is not in what is read:\n%s", want, out)
		}
	}
}

// TestLeave: whoever leaves, or whose input ends, has no result.
func TestLeave(t *testing.T) {
	x, err := exercises.ExerciseByID("pending")
	if err != nil {
		t.Fatal(err)
	}
	for _, typed := range []string{"q", "h\nh\nh\nh", "kubectl get nodes"} {
		if _, points := drilled(t, variant(t, x), nil, i18n.Chinese, typed); points != -1 {
			t.Errorf("%q: %d points", typed, points)
		}
	}
}
