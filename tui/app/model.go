package app

import (
	tea "github.com/charmbracelet/bubbletea"

	"podwalk/tui/frame"
	"podwalk/tui/i18n"
	"podwalk/tui/panes"
	"podwalk/tui/player"
	"podwalk/tui/theme"
	"podwalk/tui/ui"
	"podwalk/tui/views"
)

type screen uint8

const (
	screenHome screen = iota
	screenLanguage
	screenSettings
	screenPlayer
	screenIdentify
)

type overlay uint8

const (
	overlayNone overlay = iota
	overlayHelp
	overlayFaults
)

// Model is the tutor. Make it with New and give it to tea.NewProgram.
type Model struct {
	opt      Options
	w, h     int
	screen   screen
	over     overlay
	bundle   *i18n.Bundle
	cat      *i18n.Catalog
	set      Settings
	theme    *theme.Theme
	themes   []string
	diagrams []*panes.Diagram
	gen      int // of the session: answers for an older one are dropped
	loading  bool

	home     views.Home
	langSel  int
	setSel   int
	faults   views.Faults
	identify views.Identify
	picker   views.Picker

	sess    *Session
	heard   *Session // whose word from other terminals is waited for
	play    *player.Player
	term    *views.Terminal
	typing  bool
	busy    bool
	pasted  []string // lines that are still to run, or to be edited
	tried   bool     // what the lesson asked for has just been done: its output stays in sight
	zoom    int      // index of the diagram chosen by hand, -1 for the story's
	tab     int
	scroll  int
	toEnd   bool // show the end of the panel: what was said to an answer stands there
	rows    int
	choice  int
	passage *frame.Passage
	verdict *views.Verdict
	held    string // id of the question that holds the cursor
	notice  string
	mouse   bool
}

// New returns a model that asks for the language, opens what it was told to, or shows
// the home screen.
func New(o Options) (*Model, error) {
	b, err := i18n.Load(o.Assets)
	if err != nil {
		return nil, err
	}
	ds, err := panes.LoadDiagrams(o.Assets)
	if err != nil {
		return nil, err
	}
	m := &Model{opt: o, bundle: b, set: o.Settings, diagrams: ds, zoom: -1, w: 80, h: 24}
	m.themes = append([]string{"auto"}, theme.Names(o.Assets)...)
	if m.set.Speed == 0 {
		m.set.Speed = 1
	}
	if err := m.applyTheme(); err != nil {
		return nil, err
	}
	m.setLang(m.set.Lang)
	m.goHome()
	if !m.set.LangChosen && o.Open == "" {
		m.screen = screenLanguage
		for i, l := range i18n.Langs() {
			if l == m.set.Lang {
				m.langSel = i
			}
		}
	}
	return m, nil
}

func (m *Model) applyTheme() error {
	t, err := theme.Load(m.opt.Renderer, theme.Options{Name: m.set.Theme, ASCII: m.set.ASCII, Assets: m.opt.Assets})
	if err != nil {
		return err
	}
	m.theme = t
	return nil
}

func (m *Model) setLang(l i18n.Lang) {
	m.set.Lang = l
	m.cat = m.bundle.In(l)
	if m.play != nil {
		m.play.SetCatalog(m.cat)
	}
	m.home.Cat = m.cat
	if m.opt.Program != nil {
		m.home.Entries, m.home.Mastery = m.opt.Program.Home(m.cat)
	}
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd {
	if m.opt.Open != "" {
		return m.open(m.opt.Open)
	}
	return nil
}

type openedMsg struct {
	gen  int
	sess *Session
	err  error
}

type savedMsg struct{ err error }

type kubectlMsg struct {
	gen   int
	asked bool // the lesson had asked for something to be typed
	res   Result
}

type injectMsg struct {
	gen  int
	item views.FaultItem
	tl   player.Timeline
	err  error
}

type advancedMsg struct {
	gen int
	err error
}

// movedMsg says that somebody in another terminal has moved the run.
type movedMsg struct{ sess *Session }

type completeMsg struct {
	gen   int
	line  string
	cands []string
}

// open starts a session in a command.
func (m *Model) open(id string) tea.Cmd {
	m.gen++
	m.loading = true
	gen, prog := m.gen, m.opt.Program
	return func() tea.Msg {
		s, err := prog.Open(id)
		return openedMsg{gen, s, err}
	}
}

func (m *Model) opened(msg openedMsg) {
	if msg.gen != m.gen {
		return
	}
	m.loading = false
	if msg.err != nil {
		m.home.Notice = m.cat.T("app.error") + ": " + msg.err.Error()
		return
	}
	m.Start(msg.sess)
}

// Start shows a session that has been opened already.
func (m *Model) Start(s *Session) {
	m.sess = s
	m.play = player.New(s.Timeline, m.cat, m.set.ReducedMotion)
	if m.opt.Clock != nil {
		m.play.Clock = m.opt.Clock
	}
	m.play.SetSpeed(m.set.Speed)
	m.play.SetStory(s.Story)
	m.term, m.typing, m.busy = &views.Terminal{}, false, false
	m.zoom, m.tab, m.scroll, m.choice, m.passage, m.verdict, m.held, m.notice = -1, 0, 0, 0, nil, nil, "", ""
	m.screen, m.over = screenPlayer, overlayNone
	m.picker, m.identify = views.Picker{}, views.Identify{}
	m.pasted, m.tried = nil, false
	if s.Start >= 0 {
		m.play.Seek(s.Start)
		m.play.Arrive()
	}
	if s.Guide != nil {
		m.play.Hold(s.Guide.Target() - 1)
		m.stepPanel()
	}
	if s.Exercise != nil {
		for _, e := range s.Exercise.Evidence() {
			m.term.Echo(e.Command)
			m.term.Print(e.Output, false)
		}
		if s.Exercise.Kind() == "identify" {
			m.screen = screenIdentify
		}
	}
}

func (m *Model) goHome() {
	m.screen, m.over, m.typing = screenHome, overlayNone, false
	m.setLang(m.set.Lang)
	if m.opt.Program != nil {
		m.home.Notice = m.opt.Program.Notice(m.cat)
	}
}

// leave ends the session and goes home.
func (m *Model) leave() tea.Cmd {
	s := m.sess
	if s == nil {
		m.goHome()
		return nil
	}
	at := m.play.Cursor()
	m.gen++
	m.sess, m.play = nil, nil
	m.goHome()
	if s.Left == nil {
		return nil
	}
	return func() tea.Msg { s.Left(at); return savedMsg{} }
}

func (m *Model) save() tea.Cmd {
	set, prog := m.set, m.opt.Program
	if prog == nil {
		return nil
	}
	return func() tea.Msg { return savedMsg{prog.Save(set)} }
}

func (m *Model) changeLang() tea.Cmd {
	m.setLang(i18n.Other(m.set.Lang))
	m.set.LangChosen = true
	m.refresh()
	return m.save()
}

func keyHelp(c *i18n.Catalog, bs ...Binding) []ui.KeyHelp {
	var out []ui.KeyHelp
	for _, b := range bs {
		out = append(out, help(c, b, ""))
	}
	return out
}
