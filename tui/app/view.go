package app

import (
	"podwalk/tui/ui"
	"podwalk/tui/views"
)

// View implements tea.Model: exactly as many lines as the terminal has, each exactly as
// wide.
func (m *Model) View() string {
	c := m.Canvas()
	return c.String()
}

// Canvas draws the screen.
func (m *Model) Canvas() *ui.Canvas {
	c := ui.NewCanvas(m.w, m.h)
	r, t := c.All(), m.theme
	if m.w < views.WidthMin || m.h < views.HeightMin {
		views.TooSmall(r, t, m.cat)
		return c
	}
	switch m.screen {
	case screenLanguage:
		(&views.Language{Bundle: m.bundle, Sel: m.langSel}).Draw(r, t)
	case screenHome:
		m.home.Keys = []ui.KeyHelp{
			{Key: "↑ ↓"}, help(m.cat, Keys.Choose, ""), help(m.cat, Keys.Lang, "lang"), help(m.cat, Keys.Help, ""), help(m.cat, Keys.Quit, ""),
		}
		if m.loading {
			m.home.Notice = m.cat.T("app.loading")
		}
		m.home.Draw(r, t)
	case screenSettings:
		s := views.Settings{Cat: m.cat, Rows: m.settingRows(), Sel: m.setSel, Keys: keyHelp(m.cat, Keys.Up, Keys.Down, Keys.Escape)}
		s.Draw(r, t)
	case screenIdentify:
		m.drawIdentify(r)
	case screenPlayer:
		m.drawPlayer(r)
	}
	switch m.over {
	case overlayHelp:
		views.Help(r, t, m.cat, helpGroups(m.cat))
	case overlayFaults:
		m.faults.Draw(r, t, m.cat)
	}
	if m.set.ASCII {
		c.Translate(plainASCII)
	}
	return c
}

func (m *Model) drawPlayer(r ui.Region) {
	p := views.Player{
		Title: m.sess.Title(m.set.Lang), Frame: m.play.Frame(), Passage: m.passage, Choice: m.choice,
		Diagram: m.diagram(), Pinned: m.zoom >= 0, Tab: m.tab, Scroll: m.scroll,
		Term: m.term, Typing: m.typing, Marks: m.play.Outline(), Cursor: m.play.Cursor(),
		Playing: m.play.Playing, Speed: m.play.Speed(), Keys: m.playerBar(), Notice: m.notice,
	}
	if m.sess.Kubectl == nil {
		p.Term = nil
	}
	p.Tried = m.tried
	p.Try = m.sess.Guide != nil && !m.busy && m.sess.Guide.Held() == "try" && p.Term != nil
	if m.sess.Verdict != nil && m.play.AtEnd() && m.play.Cursor() >= 0 {
		p.Verdict = m.sess.Verdict(m.cat)
	}
	p.Draw(r, m.theme)
	m.rows = p.Rows
	if m.toEnd {
		m.toEnd = false
		if m.rows > m.scroll {
			m.scroll, p.Scroll = m.rows, m.rows
			r.Clear()
			p.Draw(r, m.theme)
		}
	}
}

func (m *Model) drawIdentify(r ui.Region) {
	v := &m.identify
	v.Cat, v.Ex, v.Picker, v.Term, v.Typing = m.cat, m.sess.Exercise, &m.picker, m.term, m.typing
	v.Keys = []ui.KeyHelp{
		{Key: "↑ ↓ ← →"}, help(m.cat, Keys.Choose, ""), help(m.cat, Keys.Kubectl, ""), {Key: "h", Does: m.cat.T("quiz.hint")},
		help(m.cat, Keys.Lang, "lang"), help(m.cat, Keys.Escape, ""),
	}
	if m.typing {
		v.Keys = m.typingBar()
	}
	v.Draw(r, m.theme)
}

// plainASCII replaces what stands in texts and key names; the theme's glyphs are ASCII
// by themselves.
var plainASCII = map[string]string{
	"→": ">", "←": "<", "↑": "^", "↓": "v", "…": "~", "·": "-", "×": "x", "–": "-", "“": "\"", "”": "\"", "’": "'",
}
