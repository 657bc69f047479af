package app

import (
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"podwalk/tui/panes"
	"podwalk/tui/ui"
	"podwalk/tui/views"
)

func (m *Model) playerKey(k string) tea.Cmd {
	m.notice = ""
	if m.questionKey(k) {
		return nil
	}
	if cmd, ok := m.moveKey(k); ok {
		return cmd
	}
	switch {
	case Keys.Zoom.Is(k):
		m.zoom++
		if m.zoom >= len(m.diagrams) {
			m.zoom = -1
		}
		if m.zoom < 0 {
			m.notice = "z " + m.cat.T("diagram.auto")
		}
	case Keys.Tab.Is(k):
		m.show((m.tab + 1) % views.Tabs())
	case Keys.TabBack.Is(k):
		m.show((m.tab + views.Tabs() - 1) % views.Tabs())
	case Keys.Up.Is(k):
		m.scroll = max(m.scroll-1, 0)
	case Keys.Down.Is(k):
		m.scroll = min(m.scroll+1, max(m.rows, 0))
	case k == "pgup":
		m.scroll = max(m.scroll-8, 0)
	case k == "pgdown":
		m.scroll = min(m.scroll+8, max(m.rows, 0))
	case Keys.Why.Is(k):
		m.toggleTab(views.TabWhy)
	case Keys.Compare.Is(k):
		m.toggleTab(views.TabCompare)
	case Keys.Kubectl.Is(k) && m.sess.Kubectl != nil:
		m.show(views.TabKubectl)
		m.typing = true
		m.play.Pause()
	case Keys.Fault.Is(k) && m.sess.Faults != nil && !m.busy:
		m.play.Pause()
		m.faults = views.Faults{Items: m.sess.Faults(m.set.Lang)}
		m.over = overlayFaults
	case Keys.Metaphor.Is(k):
		m.play.ToggleMetaphor()
	case Keys.Mouse.Is(k):
		m.mouse = !m.mouse
		if m.mouse {
			return tea.EnableMouseCellMotion
		}
		return tea.DisableMouse
	case Keys.Choose.Is(k) && m.tab == views.TabKubectl && m.sess.Kubectl != nil:
		m.typing = true
	case Keys.Choose.Is(k) && m.sess.Guide != nil: // enter goes on, as everywhere
		cmd, _ := m.moveKey(Keys.Next.Keys[0])
		return cmd
	case Keys.Choose.Is(k) && m.answered():
		return m.nextDrill()
	case k == "h" && m.sess.Exercise != nil && m.verdict == nil && m.sess.Exercise.HintsLeft() > 0:
		m.hint()
	case Keys.Escape.Is(k):
		if m.zoom >= 0 || m.tab != views.TabStory {
			m.zoom = -1
			m.show(views.TabStory)
			return nil
		}
		return m.leave()
	case Keys.Quit.Is(k):
		return m.leave()
	}
	return nil
}

// moveKey moves the cursor.
func (m *Model) moveKey(k string) (tea.Cmd, bool) {
	if m.busy {
		return nil, false
	}
	forward := Keys.Next.Is(k) || Keys.HopNext.Is(k) || Keys.StepNext.Is(k) || Keys.Play.Is(k) || Keys.End.Is(k)
	if forward && m.sess.Guide != nil {
		if cmd, done := m.guided(k); done {
			return cmd, true
		}
	} else if forward && m.play.Held() {
		m.notice = m.cat.T("quiz.locked")
		m.show(views.TabStory)
		return nil, true
	}
	before := m.play.Cursor()
	switch {
	case Keys.Play.Is(k):
		m.play.Toggle()
	case Keys.Next.Is(k):
		m.play.Pause()
		moving := m.play.Moving()
		m.play.Next()
		if before == m.play.Cursor() && !moving && m.play.AtEnd() {
			m.notice = m.cat.T("app.end")
		}
	case Keys.Back.Is(k):
		m.play.Pause()
		m.play.Back()
	case Keys.HopNext.Is(k):
		m.play.Pause()
		m.play.Hop(1)
	case Keys.HopBack.Is(k):
		m.play.Pause()
		m.play.Hop(-1)
	case Keys.StepNext.Is(k):
		m.play.Step(1)
	case Keys.StepPrev.Is(k):
		m.play.Step(-1)
	case Keys.Home.Is(k):
		m.play.Home()
	case Keys.End.Is(k):
		m.play.End()
	case Keys.Faster.Is(k):
		m.play.Faster(1)
	case Keys.Slower.Is(k):
		m.play.Faster(-1)
	default:
		return nil, false
	}
	return nil, true
}

func (m *Model) show(tab int) { m.tab, m.scroll = tab, 0 }

func (m *Model) toggleTab(tab int) {
	if m.tab == tab {
		tab = views.TabStory
	}
	m.show(tab)
}

// questionKey answers an open question.
func (m *Model) questionKey(k string) bool {
	if m.passage == nil || !m.passage.Question.Open() || m.sess.Story == nil || m.tab != views.TabStory {
		return false
	}
	q := m.passage.Question
	switch {
	case Keys.Up.Is(k) && m.choice == 0:
		m.scroll = max(m.scroll-1, 0)
	case Keys.Up.Is(k):
		m.choice--
	case (Keys.Down.Is(k) || Keys.Choose.Is(k)) && m.scroll < m.rows:
		m.scroll = m.rows // the choices are read before one is made
	case Keys.Down.Is(k):
		m.choice = min(m.choice+1, len(q.Choices)-1)
	case len(k) == 1 && k[0] >= '1' && int(k[0]-'1') < len(q.Choices):
		m.choice = int(k[0] - '1')
		m.sess.Story.Answer(q.ID, m.choice)
		m.toEnd = true
	case Keys.Choose.Is(k):
		m.sess.Story.Answer(q.ID, m.choice)
		m.toEnd = true
	default:
		return false
	}
	return true
}

// refresh asks the story what it says now, and closes or opens the gate of a question.
func (m *Model) refresh() {
	if m.play == nil || m.busy {
		return
	}
	if err := m.play.Err(); err != nil {
		m.notice = m.cat.T("app.error") + ": " + err.Error()
	}
	before := m.passage
	m.passage = nil
	f := m.play.Frame()
	switch {
	case m.verdict != nil && m.play.Cursor() == m.verdict.Hop:
		m.passage = m.verdict.Passage(m.cat)
	case m.sess.Story != nil:
		if p, ok := m.sess.Story.Passage(f); ok {
			m.passage = &p
		}
	}
	if m.passage == nil && m.sess.Exercise != nil && m.sess.Exercise.Kind() == "inject" {
		m.passage = m.injectPassage()
	}
	q := ""
	if m.passage != nil && m.passage.Question.Open() {
		q = m.passage.Question.ID
	}
	if q != m.held {
		m.held, m.choice = q, 0
		if q == "" {
			m.play.Hold(-1)
			if m.sess.Guide != nil {
				m.play.Hold(m.sess.Guide.Target() - 1)
			}
		} else {
			m.play.Pause()
			m.play.Hold(m.play.Cursor())
			m.show(views.TabStory)
		}
	}
	if (before == nil) != (m.passage == nil) {
		m.scroll = 0
	}
}

// diagram returns what to draw: chosen by hand, by the lesson, or by the stage.
func (m *Model) diagram() *panes.Diagram {
	if m.zoom >= 0 {
		return m.diagrams[m.zoom]
	}
	if m.passage != nil && m.passage.Zoom != "" {
		for _, d := range m.diagrams {
			if d.ID == m.passage.Zoom {
				return d
			}
		}
	}
	h, ok := m.play.Frame().Hop()
	if !ok {
		return m.diagrams[0]
	}
	return panes.Zoom(m.diagrams, h)
}

func (m *Model) onMouse(msg tea.MouseMsg) {
	if m.screen != screenPlayer || m.over != overlayNone || m.busy {
		return
	}
	switch {
	case msg.Button == tea.MouseButtonWheelUp:
		m.scroll = max(m.scroll-2, 0)
	case msg.Button == tea.MouseButtonWheelDown:
		m.scroll = min(m.scroll+2, max(m.rows, 0))
	case msg.Button == tea.MouseButtonLeft && msg.Action == tea.MouseActionPress:
		l := views.Layout(m.w, m.h, m.tab == views.TabKubectl, 0) // the track does not move
		if n := m.play.Timeline().Len(); l.Track.In(msg.X, msg.Y) && l.Track.W > 5 && n > 0 {
			m.play.Pause()
			m.play.Seek((msg.X - l.Track.X - 2) * (n - 1) / (l.Track.W - 5))
		}
	}
}

// typingKey edits the kubectl line.
func (m *Model) typingKey(msg tea.KeyMsg) tea.Cmd {
	e := &m.term.Edit
	if msg.Type == tea.KeyRunes || msg.Type == tea.KeySpace {
		if msg.Alt {
			return nil
		}
		return m.typed(string(msg.Runes))
	}
	switch msg.String() {
	case "esc":
		m.typing = false
	case "enter":
		return m.run()
	case "tab":
		return m.complete()
	case "up":
		m.term.History(-1)
	case "down":
		m.term.History(1)
	case "pgup":
		m.term.Scroll += 6
	case "pgdown":
		m.term.Scroll = max(m.term.Scroll-6, 0)
	case "left":
		e.Move(-1)
	case "right":
		e.Move(1)
	case "home", "ctrl+a":
		e.Home()
	case "end", "ctrl+e":
		e.End()
	case "backspace", "ctrl+h":
		e.Backspace()
	case "delete":
		e.Delete()
	case "ctrl+u":
		e.KillBefore()
	case "ctrl+k":
		e.KillAfter()
	case "ctrl+w":
		e.KillWord()
	case "ctrl+l":
		m.term.Clear()
	case "ctrl+d":
		if e.Value() == "" {
			m.typing = false
		}
	}
	return nil
}

// typed takes text. Several lines, as they are pasted, are commands that run one after the
// other; what follows the last of them stays to be edited.
func (m *Model) typed(s string) tea.Cmd {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\n")
	if len(m.pasted) > 0 || m.busy && len(lines) > 1 { // after what is still to run
		m.pasted = append(m.pasted, lines...)
		return nil
	}
	if !m.term.Edit.Insert(lines[0]) {
		m.notice = m.cat.T("terminal.tooLong")
		return nil
	}
	m.pasted = lines[1:]
	if len(m.pasted) == 0 {
		return nil
	}
	if cmd := m.run(); cmd != nil {
		return cmd
	}
	return m.nextPasted()
}

// nextPasted runs the next line that was pasted.
func (m *Model) nextPasted() tea.Cmd {
	for len(m.pasted) > 0 && !m.busy {
		line := m.pasted[0]
		m.pasted = m.pasted[1:]
		if !m.term.Edit.Insert(line) {
			m.pasted, m.notice = nil, m.cat.T("terminal.tooLong")
			return nil
		}
		if len(m.pasted) == 0 {
			return nil
		}
		if cmd := m.run(); cmd != nil {
			return cmd
		}
	}
	return nil
}

// run starts the typed command. Until it is done the engine belongs to it.
func (m *Model) run() tea.Cmd {
	line := strings.TrimSpace(m.term.Edit.Value())
	if line == "" || m.busy {
		return nil
	}
	if line == "clear" {
		m.term.Clear()
		m.term.Edit.Set("")
		return nil
	}
	if line == "exit" {
		m.term.Edit.Set("")
		m.typing = false
		return nil
	}
	m.term.Echo(line)
	m.term.Edit.Set("")
	m.term.Busy, m.busy = true, true
	gen, at, s := m.gen, m.play.Cursor(), m.sess
	asked := s.Guide != nil && s.Guide.Held() == "try"
	return func() tea.Msg { return kubectlMsg{gen, asked, s.Kubectl(at, line)} }
}

// movedEvery is how often the screen follows what moves in other terminals.
const movedEvery = 200 * time.Millisecond

// listen waits for the next word from other terminals, once at a time.
func (m *Model) listen() tea.Cmd {
	s := m.sess
	if s == nil || s.Moved == nil || m.heard == s {
		return nil
	}
	m.heard = s
	return func() tea.Msg {
		if _, ok := <-s.Moved; !ok {
			return nil
		}
		time.Sleep(movedEvery)
		return movedMsg{s}
	}
}

// moved shows what somebody did in another terminal: at the end of the story the cursor
// goes to the first hop that came of it, elsewhere it stays.
func (m *Model) moved(msg movedMsg) {
	if m.sess != msg.sess || m.play == nil {
		return
	}
	m.heard = nil
	if m.busy {
		return // what is under way takes it over
	}
	n := m.play.Timeline().Len()
	m.sess.Renew()
	m.play.Renew()
	if m.play.Timeline().Len() > n && m.play.Cursor() == n-1 && !m.typing {
		m.play.Seek(n)
	}
}

func (m *Model) complete() tea.Cmd {
	if m.sess.Complete == nil || m.busy {
		return nil
	}
	gen, at, s, line := m.gen, m.play.Cursor(), m.sess, m.term.Edit.Before()
	return func() tea.Msg { return completeMsg{gen, line, s.Complete(at, line)} }
}

func (m *Model) kubectlDone(msg kubectlMsg) tea.Cmd {
	if msg.gen != m.gen || m.term == nil {
		return nil
	}
	m.busy, m.term.Busy = false, false
	m.term.Print(msg.res.Output, msg.res.Failed)
	if msg.res.Timeline != nil {
		m.play.Reset(msg.res.Timeline)
	}
	if g := m.sess.Guide; g != nil {
		g.Did()
		m.play.Hold(g.Target() - 1)
		switch {
		case msg.asked && g.Held() == "": // done: the lesson goes on by itself
			m.tried, m.pasted = true, nil
			return m.advance()
		case m.play.Cursor() < g.Target()-1:
			m.typing = false
			m.show(views.TabStory)
			m.play.Travel(g.Target() - 1)
		case msg.res.Hop >= 0: // something else: the next command shall see what it did
			m.play.Seek(m.play.Timeline().Len() - 1)
			if msg.asked {
				m.notice = m.cat.T("quiz.again", "line", g.Asked())
			}
		}
		return m.nextPasted()
	}
	if msg.res.Hop >= 0 {
		m.play.Seek(msg.res.Hop)
	}
	m.showFailure()
	return m.nextPasted()
}

// guided is what the forward keys do in a lesson: first on to the present step's moment,
// then on to the next step. done is false where the key has its usual meaning.
func (m *Model) guided(k string) (cmd tea.Cmd, done bool) {
	g := m.sess.Guide
	if at := g.Target() - 1; m.play.Cursor() < at {
		if Keys.Next.Is(k) {
			if m.play.Moving() && !m.play.Travelling() {
				m.play.Arrive()
				return nil, true
			}
			m.play.Pause()
			m.play.Seek(at)
			return nil, true
		}
		if Keys.Play.Is(k) && !m.play.Playing {
			m.play.Travel(at)
			return nil, true
		}
		return nil, false
	}
	if m.play.Moving() {
		m.play.Arrive()
		return nil, true
	}
	switch g.Held() {
	case "answer":
		m.notice = m.cat.T("quiz.locked")
		m.show(views.TabStory)
		return nil, true
	case "try":
		m.notice = m.cat.T("quiz.try")
		m.typing = m.sess.Kubectl != nil
		return nil, true
	}
	if g.Last() {
		m.notice = m.cat.T("app.end")
		return nil, true
	}
	m.tried = false
	return m.advance(), true
}

// advance goes on to the lesson's next step.
func (m *Model) advance() tea.Cmd {
	m.busy = true
	m.notice = m.cat.T("app.working")
	gen, g := m.gen, m.sess.Guide
	return func() tea.Msg { return advancedMsg{gen, g.Advance()} }
}

func (m *Model) advanced(msg advancedMsg) {
	if msg.gen != m.gen {
		return
	}
	m.busy, m.notice = false, ""
	if msg.err != nil {
		m.notice = m.cat.T("app.error") + ": " + msg.err.Error()
		return
	}
	g := m.sess.Guide
	m.play.Hold(-1)
	m.play.Reset(m.sess.Timeline)
	m.play.Hold(g.Target() - 1)
	m.held = ""
	m.zoom, m.scroll = -1, 0
	m.stepPanel()
	m.play.Travel(g.Target() - 1)
}

// stepPanel shows the panel that a lesson's step asks for; where the learner is to type,
// the terminal stands under the story.
func (m *Model) stepPanel() {
	g := m.sess.Guide
	m.show(views.TabStory)
	if t, ok := views.TabNamed(g.Panel()); ok {
		m.show(t)
	}
	m.typing = g.Held() == "try" && m.sess.Kubectl != nil
}

// faultKey is the fault palette's.
func (m *Model) faultKey(msg tea.KeyMsg) tea.Cmd {
	p := &m.faults
	switch k := msg.String(); k {
	case "esc":
		m.over = overlayNone
	case "up":
		p.Move(-1)
	case "down", "tab":
		p.Move(1)
	case "pgup":
		p.Move(-8)
	case "pgdown":
		p.Move(8)
	case "backspace":
		p.Edit.Backspace()
		p.Sel = 0
	case "ctrl+u":
		p.Edit.Set("")
		p.Sel = 0
	case "enter":
		if it, ok := p.Chosen(); ok {
			m.over = overlayNone
			return m.inject(it)
		}
	default:
		if msg.Type == tea.KeyRunes || msg.Type == tea.KeySpace {
			p.Edit.Insert(string(msg.Runes))
			p.Sel = 0
		}
	}
	return nil
}

func (m *Model) inject(it views.FaultItem) tea.Cmd {
	m.busy = true
	m.notice = m.cat.T("app.working")
	gen, at, s := m.gen, m.play.Cursor(), m.sess
	return func() tea.Msg {
		tl, err := s.Inject(at, it.ID)
		return injectMsg{gen, it, tl, err}
	}
}

func (m *Model) injected(msg injectMsg) {
	if msg.gen != m.gen {
		return
	}
	m.busy = false
	if msg.err != nil {
		m.notice = m.cat.T("app.error") + ": " + msg.err.Error()
		return
	}
	m.play.Reset(msg.tl)
	m.notice = m.cat.T("fault.injected", "name", msg.item.Title)
	if msg.item.Rewrites {
		m.notice = m.cat.T("fault.rewritten", "name", msg.item.Title)
	}
	m.showFailure()
}

// typingBar is the key bar while the terminal has the keyboard.
func (m *Model) typingBar() []ui.KeyHelp {
	return []ui.KeyHelp{
		help(m.cat, Keys.Choose, "run"), {Key: "tab", Does: m.cat.T("key.complete")}, {Key: "↑ ↓", Does: m.cat.T("key.history")},
		{Key: "pgup", Does: m.cat.T("key.scroll")}, help(m.cat, Keys.Escape, ""),
	}
}

func (m *Model) playerBar() []ui.KeyHelp {
	if m.typing {
		return m.typingBar()
	}
	return playerBar(m.cat, m.w, m.play.Playing, m.sess.Faults != nil, m.sess.Kubectl != nil)
}
