package app

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"podwalk/engine/stage"
	"podwalk/tui/frame"
	"podwalk/tui/views"
)

func (m *Model) identifyKey(k string) tea.Cmd {
	p := &m.picker
	switch {
	case k == "left":
		p.Move(-1, 0)
	case k == "right":
		p.Move(1, 0)
	case Keys.Up.Is(k):
		p.Move(0, -1)
	case Keys.Down.Is(k):
		p.Move(0, 1)
	case Keys.Tab.Is(k), Keys.Kubectl.Is(k):
		m.typing = m.sess.Kubectl != nil
	case k == "h":
		if m.sess.Exercise.HintsLeft() > 0 {
			m.hint()
		}
	case Keys.Choose.Is(k):
		if id, ok := p.Enter(); ok {
			m.answer(id)
		}
	case Keys.Escape.Is(k), Keys.Quit.Is(k):
		if !p.Back() {
			return m.leave()
		}
	}
	return nil
}

func (m *Model) hint() {
	h, _ := m.sess.Exercise.Hint(m.set.Lang)
	m.identify.Hints = append(m.identify.Hints, h)
}

// answered reports whether the exercise is over: the next one may come.
func (m *Model) answered() bool {
	if m.sess.Exercise == nil || m.opt.Program == nil {
		return false
	}
	if m.verdict != nil {
		return true
	}
	v, done := m.check()
	return done && v.Right
}

// check is the verdict on an inject exercise, once the learner has seen what decides it.
func (m *Model) check() (views.Verdict, bool) {
	v, done := m.sess.Exercise.Check()
	return v, done && m.play.Cursor() >= v.Hop
}

// nextDrill leaves this exercise for the next one.
func (m *Model) nextDrill() tea.Cmd {
	left := m.leave()
	return tea.Batch(left, m.open("drill"))
}

// showFailure plays on to where an inject exercise's run fails.
func (m *Model) showFailure() {
	if m.sess.Exercise == nil || m.sess.Exercise.Kind() != "inject" {
		return
	}
	if v, done := m.sess.Exercise.Check(); done && v.Hop >= 0 {
		m.show(views.TabStory)
		m.play.Travel(v.Hop)
	}
}

// answer takes the learner's word and shows the hop that decides, with why.
func (m *Model) answer(id stage.ID) {
	v := m.sess.Exercise.Answer(id)
	v.Said = id
	m.verdict = &v
	m.screen = screenPlayer
	m.show(views.TabStory)
	if v.Hop >= 0 {
		m.play.Seek(v.Hop - 1)
		m.play.Arrive()
		m.play.Seek(v.Hop)
		return
	}
	m.play.End()
	m.play.Arrive()
	v.Hop = m.play.Cursor()
}

// injectPassage says what to produce, and whether it has been.
func (m *Model) injectPassage() *frame.Passage {
	ex := m.sess.Exercise
	p := &frame.Passage{Title: m.cat.T("inject.title"), Text: ex.Task(m.set.Lang) + "\n\n" + m.cat.T("inject.choose")}
	if v, done := m.check(); done {
		word := m.cat.T("inject.other", "stage", m.cat.Stage(v.Truth))
		switch why := v.Why[m.set.Lang]; {
		case v.Right:
			word = m.cat.T("inject.done")
		case why != "":
			word = why
		}
		p.Text = "**" + word + "**\n\n" + ex.Task(m.set.Lang)
		if v.Right {
			p.Text += "\n\n" + v.Onward(m.cat)
			return p
		}
	}
	for i, h := range m.identify.Hints {
		p.Text += fmt.Sprintf("\n\n**%s %d** %s", m.cat.T("quiz.hint"), i+1, h)
	}
	if n := ex.HintsLeft(); n > 0 {
		p.Text += "\n\n" + m.cat.T("quiz.hints", "n", n)
	}
	return p
}
