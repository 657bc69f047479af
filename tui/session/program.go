package session

import (
	"fmt"
	"strings"
	"time"

	"podwalk/engine"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/lessons"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/progress"
	"podwalk/tui/views"
)

// Program is what the tutor's home screen opens. It implements app.Program.
type Program struct {
	NewShell NewShell
	Progress *progress.Store
	Seed     uint64
	// Wall is the real time, for the results' dates.
	Wall func() time.Time
}

// Notice implements app.Program.
func (p *Program) Notice(c *i18n.Catalog) string {
	if err := p.Progress.Lost(); err != nil {
		return c.T("app.lost", "why", err)
	}
	if to := p.Progress.Aside(); to != "" {
		return c.T("app.aside", "file", to)
	}
	return ""
}

// Home implements app.Program.
func (p *Program) Home(c *i18n.Catalog) ([]views.Entry, map[stage.Step]float64) {
	d := p.Progress.Get()
	var out []views.Entry
	all, err := lessons.All()
	if err != nil {
		return []views.Entry{{ID: "quit", Label: c.T("home.quit"), Why: err.Error()}}, nil
	}
	next := true
	for i, l := range all {
		st, begun := d.Lessons[l.ID]
		e := views.Entry{ID: "lesson/" + l.ID, Label: fmt.Sprintf("%d  %s", i+1, l.Title(string(c.Lang))), Note: c.T("home.minutes", "n", l.Minutes)}
		switch {
		case st.Done:
			e.Note = c.T("home.done")
		case begun && st.Step > 0:
			e.Note = c.T("home.step", "n", st.Step+1, "m", len(l.Steps))
		case next:
			e.Note = c.T("home.noteLesson") + " · " + e.Note
		}
		next = next && st.Done
		out = append(out, e)
	}
	drill := views.Entry{ID: "drill", Label: c.T("home.drill"), Note: c.T("home.noteDrill")}
	if x, err := p.nextExercise(); err == nil {
		drill.Why = x.Title.In(string(c.Lang))
	}
	out = append(out, drill,
		views.Entry{ID: "sandbox", Label: c.T("home.sandbox"), Note: c.T("home.noteSandbox")},
		views.Entry{ID: "settings", Label: c.T("home.settings")},
		views.Entry{ID: "language", Label: c.T("home.language"), Note: c.T("lang.self")},
		views.Entry{ID: "quit", Label: c.T("home.quit")},
	)
	return out, d.Mastery()
}

// nextExercise is the one that was answered least often.
func (p *Program) nextExercise() (exercises.Exercise, error) {
	all, err := exercises.Exercises()
	if err != nil {
		return exercises.Exercise{}, err
	}
	return exercises.ExerciseByID(p.Progress.Get().LeastTried(exercises.IDs(all)))
}

// Open implements app.Program. Ids are "lesson/ID", "exercise/ID", "drill" and
// "sandbox".
func (p *Program) Open(id string) (*app.Session, error) {
	// A write that fails is told at the home screen, not in the middle of a lesson.
	_ = p.Progress.Change(func(d *progress.Data) { d.Last = id })
	kind, name, _ := strings.Cut(id, "/")
	switch kind {
	case "lesson":
		return p.lesson(name)
	case "exercise":
		x, err := exercises.ExerciseByID(name)
		if err != nil {
			return nil, err
		}
		return p.drill(x)
	case "drill":
		x, err := p.nextExercise()
		if err != nil {
			return nil, err
		}
		return p.drill(x)
	case "sandbox":
		return p.sandbox()
	}
	return nil, fmt.Errorf("there is no %q", id)
}

func (p *Program) lesson(id string) (*app.Session, error) {
	l, err := lessons.ByID(id)
	if err != nil {
		return nil, err
	}
	return Lesson(l, p.NewShell, p.Progress.Get().Resume(l.ID), func(step int, answers map[string]string) {
		_ = p.Progress.Reached(l.ID, step, len(l.Steps), answers)
	})
}

func (p *Program) drill(x exercises.Exercise) (*app.Session, error) {
	n, _ := p.Progress.Get().Tries(x.ID)
	seed := p.Seed + uint64(n)
	return Drill(x, seed, p.NewShell, func(points int, truth stage.ID) {
		_ = p.Progress.Answered(progress.Result{Exercise: x.ID, Seed: seed, Stage: truth, Points: points, At: p.Wall()})
	})
}

// sandbox is a cluster with one command typed already, so that there is something to
// see.
func (p *Program) sandbox() (*app.Session, error) {
	r, err := engine.StartRun(scenario.Scenario{Cluster: scenario.Cluster{Seed: p.Seed}}, p.NewShell)
	if err != nil {
		return nil, err
	}
	if err := r.Play([]scenario.Step{{Kubectl: "run nginx --image=nginx"}}); err != nil {
		r.Close()
		return nil, err
	}
	return Play("sandbox", r, scenario.Text{"en": "Sandbox: kubectl run nginx --image=nginx", "zh-TW": "沙盒：kubectl run nginx --image=nginx"}), nil
}

// Save implements app.Program.
func (p *Program) Save(s app.Settings) error {
	return p.Progress.Change(func(d *progress.Data) {
		d.Settings = &progress.Settings{Lang: string(s.Lang), Theme: s.Theme, ASCII: s.ASCII, Speed: s.Speed, ReducedMotion: s.ReducedMotion}
	})
}

// Settings returns what was saved over what the configuration says; settings that a flag
// or a variable gave stay.
func Settings(d progress.Data, set app.Settings, given func(key string) bool) app.Settings {
	s := d.Settings
	if s == nil {
		return set
	}
	if l, ok := i18n.Parse(s.Lang); ok && !given("lang") {
		set.Lang, set.LangChosen = l, true
	}
	if s.Theme != "" && !given("theme") {
		set.Theme = s.Theme
	}
	if !given("glyphs") {
		set.ASCII = s.ASCII
	}
	if s.Speed > 0 && !given("speed") {
		set.Speed = s.Speed
	}
	if !given("motion") {
		set.ReducedMotion = s.ReducedMotion
	}
	return set
}

var _ app.Program = (*Program)(nil)
