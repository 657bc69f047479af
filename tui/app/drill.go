package app

import (
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
			m.identify.Hint, _ = m.sess.Exercise.Hint(m.set.Lang)
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
	if v, done := ex.Check(); done {
		word := m.cat.T("inject.other", "stage", m.cat.Stage(v.Truth))
		switch why := v.Why[m.set.Lang]; {
		case v.Right:
			word = m.cat.T("inject.done")
		case why != "":
			word = why
		}
		p.Text = "**" + word + "**\n\n" + ex.Task(m.set.Lang)
	}
	return p
}
