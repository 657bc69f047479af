package app

import (
	"fmt"
	"math"

	tea "github.com/charmbracelet/bubbletea"

	"podwalk/tui/i18n"
	"podwalk/tui/player"
	"podwalk/tui/views"
)

// Update implements tea.Model. Who gets a key is decided from the top of a stack:
// overlay, text entry, open question, screen.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyMsg:
		cmd = m.keys(msg)
	case tea.MouseMsg:
		m.onMouse(msg)
	case player.TickMsg:
		if m.play != nil && !m.busy {
			m.play.Update(msg)
		}
	case openedMsg:
		m.opened(msg)
	case kubectlMsg:
		cmd = m.kubectlDone(msg)
	case injectMsg:
		m.injected(msg)
	case advancedMsg:
		m.advanced(msg)
	case completeMsg:
		if msg.gen == m.gen && m.term != nil && m.term.Edit.Before() == msg.line {
			m.term.Complete(msg.cands)
		}
	case movedMsg:
		m.moved(msg)
	case savedMsg:
		if msg.err != nil {
			m.notice = m.cat.T("app.error") + ": " + msg.err.Error()
			m.home.Notice = m.notice
		}
	}
	cmd = tea.Batch(cmd, m.listen())
	m.refresh()
	if m.play != nil {
		if tick := m.play.Tick(); tick != nil {
			cmd = tea.Batch(cmd, tick)
		}
	}
	return m, cmd
}

// keys takes what a terminal sends at once: several characters are several keys, unless
// text is being typed.
func (m *Model) keys(msg tea.KeyMsg) tea.Cmd {
	if msg.Type != tea.KeyRunes || msg.Paste || msg.Alt || len(msg.Runes) == 1 {
		return m.key(msg)
	}
	var cmds []tea.Cmd
	for i, r := range msg.Runes {
		if m.typing || m.over == overlayFaults {
			cmds = append(cmds, m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i:]}))
			break
		}
		cmds = append(cmds, m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
	}
	return tea.Batch(cmds...)
}

func (m *Model) key(msg tea.KeyMsg) tea.Cmd {
	k := msg.String()
	if k == "ctrl+c" {
		return tea.Quit
	}
	if k == "ctrl+z" && m.opt.Local {
		return tea.Suspend
	}
	if m.w < views.WidthMin || m.h < views.HeightMin {
		if Keys.Quit.Is(k) {
			return tea.Quit
		}
		return nil
	}
	m.home.Notice = ""
	switch {
	case m.over == overlayFaults:
		return m.faultKey(msg)
	case m.over == overlayHelp:
		m.over = overlayNone
		return nil
	case m.typing:
		return m.typingKey(msg)
	}
	if Keys.Help.Is(k) && m.screen != screenLanguage {
		m.over = overlayHelp
		return nil
	}
	if Keys.Lang.Is(k) && m.screen != screenLanguage {
		return m.changeLang()
	}
	switch m.screen {
	case screenLanguage:
		return m.languageKey(k)
	case screenHome:
		return m.homeKey(k)
	case screenSettings:
		return m.settingsKey(k)
	case screenIdentify:
		return m.identifyKey(k)
	}
	return m.playerKey(k)
}

func (m *Model) languageKey(k string) tea.Cmd {
	langs := i18n.Langs()
	switch {
	case Keys.Up.Is(k):
		m.langSel = max(m.langSel-1, 0)
	case Keys.Down.Is(k):
		m.langSel = min(m.langSel+1, len(langs)-1)
	case Keys.Quit.Is(k), Keys.Escape.Is(k):
		return tea.Quit
	case Keys.Choose.Is(k), k == " ":
		m.set.LangChosen = true
		m.setLang(langs[m.langSel])
		m.goHome()
		return m.save()
	}
	return nil
}

func (m *Model) homeKey(k string) tea.Cmd {
	n := len(m.home.Entries)
	switch {
	case Keys.Up.Is(k):
		m.home.Sel = max(m.home.Sel-1, 0)
	case Keys.Down.Is(k), Keys.Tab.Is(k):
		m.home.Sel = min(m.home.Sel+1, n-1)
	case Keys.Quit.Is(k), Keys.Escape.Is(k):
		return tea.Quit
	case (Keys.Choose.Is(k) || k == " " || k == "right") && m.home.Sel < n && !m.loading:
		e := m.home.Entries[m.home.Sel]
		switch {
		case e.Off:
		case e.ID == "settings":
			m.screen, m.setSel = screenSettings, 0
		case e.ID == "language":
			return m.changeLang()
		case e.ID == "quit":
			return tea.Quit
		default:
			return m.open(e.ID)
		}
	}
	return nil
}

func (m *Model) settingsKey(k string) tea.Cmd {
	rows := len(m.settingRows())
	switch {
	case Keys.Up.Is(k):
		m.setSel = max(m.setSel-1, 0)
	case Keys.Down.Is(k):
		m.setSel = min(m.setSel+1, rows-1)
	case Keys.Escape.Is(k), Keys.Quit.Is(k):
		m.goHome()
		return m.save()
	case k == "left" || k == "right" || Keys.Choose.Is(k) || k == " ":
		n := 1
		if k == "left" {
			n = -1
		}
		m.changeSetting(n)
	}
	return nil
}

func (m *Model) settingRows() []views.Setting {
	c := m.cat
	glyphs, motion := c.T("settings.unicode"), c.T("settings.on")
	if m.set.ASCII {
		glyphs = c.T("settings.ascii")
	}
	if m.set.ReducedMotion {
		motion = c.T("settings.off")
	}
	name := m.set.Theme
	if name == "" {
		name = "auto"
	}
	return []views.Setting{
		{Label: c.T("home.language"), Value: c.T("lang.self")},
		{Label: c.T("settings.theme"), Value: name},
		{Label: c.T("settings.glyphs"), Value: glyphs},
		{Label: c.T("settings.speed"), Value: fmt.Sprintf("%g×", m.set.Speed)},
		{Label: c.T("settings.motion"), Value: motion},
	}
}

func (m *Model) changeSetting(n int) {
	switch m.setSel {
	case 0:
		m.setLang(i18n.Other(m.set.Lang))
	case 1:
		i := 0
		for j, name := range m.themes {
			if name == m.set.Theme {
				i = j
			}
		}
		m.set.Theme = m.themes[(i+n+len(m.themes))%len(m.themes)]
	case 2:
		m.set.ASCII = !m.set.ASCII
	case 3:
		best, at := math.Inf(1), 0
		for i, s := range player.Speeds {
			if d := math.Abs(s - m.set.Speed); d < best {
				best, at = d, i
			}
		}
		m.set.Speed = player.Speeds[min(max(at+n, 0), len(player.Speeds)-1)]
	case 4:
		m.set.ReducedMotion = !m.set.ReducedMotion
	}
	if err := m.applyTheme(); err != nil {
		m.notice = err.Error()
	}
}
