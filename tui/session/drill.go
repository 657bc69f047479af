package session

import (
	"slices"
	"strings"

	"podwalk/engine/kubectl"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/exercises"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/player"
	"podwalk/tui/views"
)

// drill is an attempt as the screens see it.
type drill struct {
	a      *exercises.Attempt
	tl     *Timeline
	shown  []views.Shown
	result *views.Verdict // of an inject exercise
	done   func(points int, truth stage.ID)
}

// Drill begins a variant of an exercise. done is told what an answer was worth.
func Drill(x exercises.Exercise, seed uint64, newShell NewShell, done func(points int, truth stage.ID)) (*app.Session, error) {
	v, err := x.Variant(seed)
	if err != nil {
		return nil, err
	}
	a, err := v.Begin(newShell)
	if err != nil {
		return nil, err
	}
	d := &drill{a: a, done: done}
	for _, line := range v.Show {
		out, err := a.Run.Kubectl(line)
		if err != nil {
			a.Run.Close()
			return nil, err
		}
		d.shown = append(d.shown, views.Shown{Command: line, Output: out.Stdout + out.Stderr})
	}
	d.tl = NewTimeline(a.Run, x.Kind == exercises.Identify)
	if a.Verdict.Object.Kind == "Pod" { // others' Pods may have come before it
		d.tl.focus = a.Verdict.Object
	}
	s := base("exercise/"+x.ID, a.Run, d.tl, x.Title)
	s.Exercise, s.Start = d, d.tl.Len()-1
	s.Kubectl = d.kubectl
	if x.Kind == exercises.Identify {
		s.Faults = nil
		return s, nil
	}
	s.Inject = func(cursor int, id string) (player.Timeline, error) {
		f, err := exercises.FaultByID(id)
		if err != nil {
			return d.tl, err
		}
		d.tl.breaks()
		d.tl.goTo(f, cursor)
		err = a.Inject(f)
		if err == nil {
			d.grade()
		}
		d.tl.Sync()
		return d.tl, err
	}
	return s, nil
}

// kubectl runs a command of the learner's; what changes something may be the solution.
func (d *drill) kubectl(cursor int, line string) app.Result {
	changes := d.a.Variant.Exercise.Kind == exercises.Inject && kubectl.Changes(line)
	if changes {
		d.tl.breaks()
	}
	res := run(d.a.Run, d.tl, cursor, line, d.a.Kubectl)
	if changes {
		d.grade()
		d.tl.Sync()
	}
	return res
}

// Title implements views.Exercise.
func (d *drill) Title(l i18n.Lang) string { return d.a.Variant.Exercise.Title.In(string(l)) }

// Kind implements views.Exercise.
func (d *drill) Kind() string { return d.a.Variant.Exercise.Kind }

// Task implements views.Exercise.
func (d *drill) Task(l i18n.Lang) string { return d.a.Variant.Exercise.Prompt.In(string(l)) }

// Evidence implements views.Exercise.
func (d *drill) Evidence() []views.Shown { return d.shown }

// Answer implements views.Exercise.
func (d *drill) Answer(id stage.ID) views.Verdict {
	s := d.a.Answer(id)
	if d.done != nil {
		d.done(s.Points, s.Right)
	}
	d.tl.Sync()
	return d.verdict(id, s)
}

func (d *drill) verdict(said stage.ID, s exercises.Score) views.Verdict {
	v := views.Verdict{
		Right: said == s.Right, Points: s.Points, Distance: stage.Distance(said, s.Right), Said: said, Truth: s.Right, Hop: -1,
		Why: map[i18n.Lang]string{}, Look: map[i18n.Lang]string{}, Mend: map[i18n.Lang]string{},
	}
	f := d.a.Variant.Fault
	for _, l := range i18n.Langs() {
		lang, against := string(l), s.Refuted.In(string(l))
		if against != "" && s.Evidence != nil {
			against += "\n`" + d.line(s.Evidence) + "`"
		}
		v.Why[l] = paragraphs(against, s.Silent.In(lang))
		v.Look[l], v.Mend[l] = f.Look.In(lang), f.Remedy.In(lang)
	}
	d.decide(&v, s)
	return v
}

// decide says which hop decides, and in which words.
func (d *drill) decide(v *views.Verdict, s exercises.Score) {
	if s.Deciding == nil {
		return
	}
	v.Hop = d.tl.index(s.Deciding.Seq)
	v.Evidence = s.Deciding.Message
	if v.Evidence == "" {
		v.Evidence = d.line(s.Deciding)
	}
}

// line is a hop in one line without columns.
func (d *drill) line(h *trace.Hop) string {
	return strings.Join(strings.Fields(h.Line(d.a.Run.Origin())), " ")
}

func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n")
}

// grade looks at the run after a fault or a command of the learner's. A run that is well
// is on its way: nothing is said about it.
func (d *drill) grade() {
	s := d.a.Grade()
	if d.a.Verdict.Ready {
		d.result = nil
		return
	}
	v := views.Verdict{Right: s.Solved, Points: s.Points, Said: s.Right, Truth: d.a.Verdict.Stage, Hop: -1, Why: map[i18n.Lang]string{}}
	for _, l := range i18n.Langs() {
		v.Why[l] = s.Amiss.In(string(l))
	}
	d.tl.Sync()
	d.decide(&v, s)
	d.result = &v
	if v.Right && d.done != nil {
		d.done(s.Points, s.Right)
	}
}

// Check implements views.Exercise.
func (d *drill) Check() (views.Verdict, bool) {
	if d.result == nil {
		return views.Verdict{}, false
	}
	return *d.result, true
}

// HintsLeft implements views.Exercise.
func (d *drill) HintsLeft() int { return len(d.a.Variant.Exercise.Hints) - d.a.Hints }

// Hint implements views.Exercise.
func (d *drill) Hint(l i18n.Lang) (string, int) {
	hints := d.a.Variant.Exercise.Hints
	n := min(d.a.Hints, len(hints)-1)
	d.a.Hints = min(d.a.Hints+1, len(hints))
	return hints[n].In(string(l)), d.HintsLeft()
}

var _ views.Exercise = (*drill)(nil)
