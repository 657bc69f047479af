package session

import (
	"strings"

	"podwalk/engine/stage"
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
	s := base("exercise/"+x.ID, a.Run, d.tl, x.Title)
	s.Exercise, s.Start = d, d.tl.Len()-1
	looking := s.Kubectl
	s.Kubectl = func(cursor int, line string) app.Result {
		a.Looked = append(a.Looked, line)
		return looking(cursor, line)
	}
	if x.Kind == exercises.Identify {
		s.Faults = nil
		return s, nil
	}
	s.Inject = func(cursor int, id string) (player.Timeline, error) {
		f, err := exercises.FaultByID(id)
		if err != nil {
			return d.tl, err
		}
		d.tl.goTo(f, cursor)
		err = a.Inject(f)
		d.tl.broken = true
		if err == nil {
			d.grade()
		}
		d.tl.Sync()
		return d.tl, err
	}
	return s, nil
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
		Right: said == s.Right, Distance: stage.Distance(said, s.Right), Said: said, Truth: s.Right, Hop: -1, Why: map[i18n.Lang]string{},
	}
	f := d.a.Variant.Fault
	for _, l := range i18n.Langs() {
		var parts []string
		if t := s.Refuted.In(string(l)); t != "" && !v.Right {
			parts = append(parts, t)
		}
		if t := f.Look.In(string(l)); t != "" {
			parts = append(parts, t)
		}
		if t := f.Remedy.In(string(l)); t != "" {
			parts = append(parts, t)
		}
		v.Why[l] = strings.Join(parts, "\n\n")
	}
	if s.Deciding != nil {
		v.Hop = d.tl.index(s.Deciding.Seq)
		v.Evidence = s.Deciding.Message
		if v.Evidence == "" {
			v.Evidence = s.Deciding.Reason
		}
	}
	return v
}

// grade looks at the run after a fault of the learner's.
func (d *drill) grade() {
	s := d.a.Grade()
	v := d.verdict(d.a.Verdict.Stage, s)
	v.Right, v.Truth = s.Points > 60, d.a.Verdict.Stage
	v.Why = map[i18n.Lang]string{}
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
