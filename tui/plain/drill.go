package plain

import (
	"fmt"
	"slices"
	"strings"

	"podwalk/engine/kubectl"
	"podwalk/engine/stage"
	"podwalk/exercises"
)

// Drill goes through one variant of an exercise. again is false when the learner leaves.
func (t *Tutor) Drill(a *exercises.Attempt, keep Keep) (again bool, err error) {
	x := a.Variant.Exercise
	lang := string(t.words.Lang)
	t.say("", x.Title.In(lang), "")
	t.prose(x.Prompt.In(lang))
	for _, line := range a.Variant.Show {
		t.say("", "$ "+line)
		t.kubectl(a.Run, a.Run.Len(), line)
	}
	t.say("")
	var ok bool
	if x.Kind == exercises.Identify {
		ok = t.identify(a, keep)
	} else if ok, err = t.inject(a, keep); err != nil {
		return false, err
	}
	if !ok {
		return false, nil
	}
	_, again = t.ask(t.words.T("plain.next"))
	return again, nil
}

// pick asks for one of the labels and returns its index; hints and kubectl on the way. It
// ends with -1 when a command of the learner's was what was asked for.
func (t *Tutor) pick(a *exercises.Attempt, labels []string, prompt string, done func(line string) bool) (int, bool) {
	for {
		line, ok := t.ask(prompt)
		switch {
		case !ok:
			return 0, false
		case line == "h":
			t.hint(a)
		case isKubectl(line):
			t.printed(a.Kubectl(line))
			if done(line) {
				return -1, true
			}
		default:
			if i := slices.Index(labels, strings.ToLower(line)); i >= 0 {
				return i, true
			}
			t.say(t.words.T("plain.invalid"))
		}
	}
}

func (t *Tutor) hint(a *exercises.Attempt) {
	hints := a.Variant.Exercise.Hints
	if a.Hints >= len(hints) {
		t.say(t.words.T("plain.noHints"))
		return
	}
	t.prose(hints[a.Hints].In(string(t.words.Lang)))
	a.Hints++
}

// StageChoices returns the stages that may be pointed at, and what to type for each: its
// step, with a letter where the step has several ("8b").
func StageChoices() (ids []stage.ID, labels []string) {
	for _, step := range stage.Steps() {
		var of []stage.ID
		for _, s := range stage.All() {
			if s.Visible && s.Step == step {
				of = append(of, s.ID)
			}
		}
		for i, id := range of {
			label := strings.ToLower(string(step))
			if len(of) > 1 {
				label += string(rune('a' + i))
			}
			ids, labels = append(ids, id), append(labels, label)
		}
	}
	return ids, labels
}

func (t *Tutor) identify(a *exercises.Attempt, keep Keep) bool {
	choices, labels := StageChoices()
	for i, id := range choices {
		t.say(fmt.Sprintf("%3s  %s", labels[i], t.words.Stage(id)))
	}
	n, ok := t.pick(a, labels, t.words.T("plain.which"), func(string) bool { return false })
	if !ok {
		return false
	}
	guess := choices[n]
	s := a.Answer(guess)
	keep.result(s)
	lang := string(t.words.Lang)
	if guess == s.Right {
		t.say(t.words.T("plain.right"))
	} else {
		t.say(t.words.T("plain.wrong"))
		t.prose(s.Refuted.In(lang))
		if s.Evidence != nil {
			t.say(s.Evidence.Line(a.Run.Origin()))
		}
	}
	t.say(t.words.T("plain.truth", "stage", t.words.Stage(s.Right)))
	if s.Deciding != nil {
		t.say(s.Deciding.Line(a.Run.Origin()))
	}
	if len(s.Silent) > 0 {
		t.prose(s.Silent.In(lang))
	}
	t.say("", t.words.T("identify.look"))
	t.prose(a.Variant.Fault.Look.In(lang))
	t.say("", t.words.T("identify.mend"))
	t.prose(a.Variant.Fault.Remedy.In(lang))
	t.say(t.words.T("plain.points", "n", s.Points))
	return true
}

func (t *Tutor) inject(a *exercises.Attempt, keep Keep) (bool, error) {
	all, err := exercises.Faults()
	if err != nil {
		return false, err
	}
	var labels []string
	for i, f := range all {
		labels = append(labels, fmt.Sprint(i+1))
		t.say(fmt.Sprintf("%d. %s %s", i+1, stage.StepOf(f.Stage), f.Title.In(string(t.words.Lang))))
	}
	n, ok := t.pick(a, labels, t.words.T("plain.inject"), func(line string) bool { return t.broke(a, line) })
	if !ok {
		return false, nil
	}
	if n >= 0 {
		if err := a.Inject(all[n]); err != nil {
			return false, err
		}
	}
	s := a.Grade()
	keep.result(s)
	if s.Deciding == nil { // it did no harm
		t.hops(a.Run, max(0, a.Run.Len()-8), a.Run.Len())
	}
	if s.Solved {
		t.say(t.words.T("plain.right"))
	} else {
		t.say(t.words.T("plain.wrong"))
	}
	if !a.Verdict.Ready {
		t.say(t.words.T("plain.truth", "stage", t.words.Stage(a.Verdict.Stage)))
	}
	if s.Deciding != nil {
		t.say(s.Deciding.Line(a.Run.Origin()))
	}
	if len(s.Amiss) > 0 {
		t.prose(s.Amiss.In(string(t.words.Lang)))
	}
	t.say(t.words.T("plain.points", "n", s.Points))
	return true, nil
}

// broke looks at what a command of the learner's has brought about, and reports whether it
// is what the exercise asks for.
func (t *Tutor) broke(a *exercises.Attempt, line string) bool {
	if !kubectl.Changes(line) {
		return false
	}
	s := a.Grade()
	switch {
	case s.Solved:
		return true
	case len(s.Amiss) > 0:
		t.prose(s.Amiss.In(string(t.words.Lang)))
	case !a.Verdict.Ready:
		t.say(t.words.T("plain.now", "stage", t.words.Stage(a.Verdict.Stage)))
	}
	return false
}

func (k Keep) result(s exercises.Score) {
	if k.Result != nil {
		k.Result(s.Points, s.Right)
	}
}
