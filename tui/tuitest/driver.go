package tuitest

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"podwalk/assets"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/player"
)

// Driver plays a Model without a terminal: keys go straight into Update, commands run
// at once, ticks come as fast as they are asked for.
type Driver struct {
	M *app.Model
	P *Program
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// atOnce is a clock for a learner who does not wait.
func atOnce(_ time.Duration, msg func(time.Time) tea.Msg) tea.Cmd {
	return func() tea.Msg { return msg(time.Time{}) }
}

// New opens a recorded run ("" is the home screen) in a terminal of w×h cells.
func New(w, h int, lang i18n.Lang, open string, edit func(*app.Options)) (*Driver, error) {
	r := lipgloss.NewRenderer(nowhere{})
	r.SetColorProfile(termenv.Ascii)
	p := &Program{}
	o := app.Options{
		Assets: assets.FS, Renderer: r, Program: p, Open: open,
		Clock:    atOnce,
		Settings: app.Settings{Lang: lang, LangChosen: true, Theme: "mono", Speed: 1, ReducedMotion: true},
	}
	if edit != nil {
		edit(&o)
	}
	m, err := app.New(o)
	if err != nil {
		return nil, err
	}
	d := &Driver{M: m, P: p}
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	d.run(m.Init())
	return d, nil
}

func (d *Driver) send(msg tea.Msg) {
	_, cmd := d.M.Update(msg)
	d.run(cmd)
}

// ticksMax bounds how long a driver lets a run play by itself.
const ticksMax = 5000

func (d *Driver) run(cmd tea.Cmd) {
	for range ticksMax {
		if cmd == nil {
			return
		}
		msg := cmd()
		switch msg := msg.(type) {
		case nil, tea.QuitMsg:
			return
		case tea.BatchMsg:
			for _, c := range msg {
				d.run(c)
			}
			return
		case player.TickMsg:
			_, cmd = d.M.Update(msg)
			continue
		}
		_, cmd = d.M.Update(msg)
	}
}

var named = map[string]tea.KeyType{
	"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "space": tea.KeySpace, "backspace": tea.KeyBackspace,
	"home": tea.KeyHome, "end": tea.KeyEnd, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "ctrl+u": tea.KeyCtrlU,
}

// Keys presses keys: names such as "enter", or single characters.
func (d *Driver) Keys(keys ...string) {
	for _, k := range keys {
		if t, ok := named[k]; ok {
			msg := tea.KeyMsg{Type: t}
			if t == tea.KeySpace {
				msg.Runes = []rune{' '}
			}
			d.send(msg)
			continue
		}
		for _, r := range k {
			d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		}
	}
}

// Type types text.
func (d *Driver) Type(s string) {
	for _, r := range s {
		if r == ' ' {
			d.Keys("space")
		} else {
			d.Keys(string(r))
		}
	}
}

// Burst sends text as a terminal does that is fed faster than it is read: many characters
// in one message. A pasted one is marked as such.
func (d *Driver) Burst(s string, pasted bool) {
	d.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s), Paste: pasted})
}

// Start shows a session.
func (d *Driver) Start(s *app.Session) {
	d.M.Start(s)
	d.send(nil)
}

// Resize gives the terminal another size.
func (d *Driver) Resize(w, h int) { d.send(tea.WindowSizeMsg{Width: w, Height: h}) }

// Screen returns what the terminal shows.
func (d *Driver) Screen() string { return d.M.View() }
