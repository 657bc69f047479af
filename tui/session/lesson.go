package session

import (
	"podwalk/engine"
	"podwalk/engine/scenario"
	"podwalk/engine/trace"
	"podwalk/exercises"
	"podwalk/lessons"
	"podwalk/tui/app"
	"podwalk/tui/frame"
	"podwalk/tui/i18n"
	"podwalk/tui/progress"
)

// lesson is a walk as the player sees it. It remembers what was told where, so that
// going back shows the lesson's words again.
type lesson struct {
	walk  *lessons.Walk
	tl    *Timeline
	told  map[int]map[i18n.Lang]told // by number of hops
	saved func(step int, answers map[string]string)
}

type told struct {
	words lessons.Words
	err   error
	at    string
	step  lessons.Step
}

// Lesson begins a lesson on a fresh run, or takes it up where it was left: what was done
// up to there is done again. saved is told of every answer and step.
func Lesson(l lessons.Lesson, newShell NewShell, had progress.Lesson, saved func(step int, answers map[string]string)) (*app.Session, error) {
	r, err := engine.StartRun(l.Scenario, newShell)
	if err != nil {
		return nil, err
	}
	w := lessons.NewWalk(l, r, exercises.Palette{})
	if err := w.Start(); err != nil {
		r.Close()
		return nil, err
	}
	g := &lesson{walk: w, told: map[int]map[i18n.Lang]told{}}
	if err := w.Resume(had.Step, had.Answers, g.remember); err != nil {
		r.Close()
		return nil, err
	}
	t := NewTimeline(r, true)
	title := scenario.Text{}
	for _, lang := range scenario.Languages {
		title[lang] = l.Title(lang)
	}
	s := base("lesson/"+l.ID, r, t, title)
	g.tl, g.saved = t, saved
	g.remember()
	s.Start = w.Target() - 1
	s.Story, s.Guide, s.Faults = g, g, nil
	s.Verdict = nil // the run stops wherever the lesson does: that is no end
	return s, nil
}

// remember keeps the present step's words, in every language.
func (g *lesson) remember() {
	step, _ := g.walk.Step()
	in := map[i18n.Lang]told{}
	for _, l := range i18n.Langs() {
		words, err := g.walk.Words(string(l))
		in[l] = told{words, err, step.At, step}
	}
	g.told[g.walk.Target()] = in
}

func (g *lesson) Title(l i18n.Lang) string { return g.walk.Lesson.Title(string(l)) }

// Passage implements frame.Story: the step's words where its story stands.
func (g *lesson) Passage(f *frame.Frame) (frame.Passage, bool) {
	in, ok := g.told[len(f.Hops)]
	if !ok && len(f.Hops) > g.walk.Target() { // what the learner did of his own accord lies ahead of the lesson
		in, ok = g.told[g.walk.Target()]
	}
	if !ok {
		return frame.Passage{}, false
	}
	t := in[f.Cat.Lang]
	if t.err != nil {
		return frame.Passage{Title: f.Cat.T("app.error"), Text: t.err.Error()}, true
	}
	p := frame.Passage{Title: t.words.Title, Text: t.words.Body, Zoom: t.step.Zoom}
	if t.step.Ask == nil {
		return p, true
	}
	q := &frame.Question{ID: t.at, Prompt: t.words.Question, Answered: -1, Onward: !g.Last()}
	answer := g.walk.Answers()[t.at]
	for i, c := range t.words.Choices {
		fc := frame.Choice{Text: c.Label}
		if c.ID == answer {
			q.Answered, fc.Feedback = i, t.words.Feedback
		}
		fc.Right = answer != "" && c.ID == t.words.Answer
		q.Choices = append(q.Choices, fc)
	}
	p.Question = q
	return p, true
}

// Answer implements frame.Story.
func (g *lesson) Answer(question string, choice int) {
	step, n := g.walk.Step()
	if step.At != question || step.Ask == nil || choice >= len(step.Ask.Choices) {
		return
	}
	if _, err := g.walk.Answer(step.Ask.Choices[choice]); err == nil {
		g.remember()
		g.save(n)
	}
}

func (g *lesson) save(step int) {
	if g.saved != nil {
		g.saved(step, g.walk.Answers())
	}
}

// Matters implements frame.Story: on the way the general rule holds.
func (g *lesson) Matters(int, trace.Hop) (stop, known bool) { return false, false }

// Target implements app.Guide.
func (g *lesson) Target() int { return g.walk.Target() }

// Held implements app.Guide.
func (g *lesson) Held() string { return g.walk.Held() }

// Asked implements app.Guide.
func (g *lesson) Asked() string {
	step, _ := g.walk.Step()
	return step.Try
}

// Last implements app.Guide.
func (g *lesson) Last() bool { return g.walk.Last() }

// Advance implements app.Guide.
func (g *lesson) Advance() error {
	if err := g.walk.Next(); err != nil {
		return err
	}
	g.tl.Sync()
	g.remember()
	_, n := g.walk.Step()
	g.save(n)
	return nil
}

// Did implements app.Guide.
func (g *lesson) Did() {
	g.walk.Did()
	g.tl.Sync()
	g.remember()
}

// Panel implements app.Guide.
func (g *lesson) Panel() string {
	step, _ := g.walk.Step()
	return step.Panel
}

var (
	_ frame.Story = (*lesson)(nil)
	_ app.Guide   = (*lesson)(nil)
)
