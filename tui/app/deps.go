// Package app is the tutor's one tea.Model and everything that decides: which screen is
// shown, who gets a key, what a command's answer changes. Screens draw (tui/views), the
// player moves (tui/player), the engine is behind interfaces. What
// may take time runs in a tea.Cmd and comes back with a generation number; all that Update
// itself waits for is the small progress file, which is on the disk before the next key.
package app

import (
	"io/fs"

	"github.com/charmbracelet/lipgloss"

	"podwalk/engine/stage"
	"podwalk/tui/frame"
	"podwalk/tui/i18n"
	"podwalk/tui/player"
	"podwalk/tui/views"
)

// Settings are what the settings screen changes.
type Settings struct {
	Lang          i18n.Lang
	LangChosen    bool // false: ask first
	Theme         string
	ASCII         bool
	Speed         float64
	ReducedMotion bool
}

// Program is what the tutor gets from outside: what there is to open, and the learner's
// progress. Its methods are called inside commands where they may take time.
type Program interface {
	// Home returns what the home screen offers and how well each step is known.
	Home(c *i18n.Catalog) ([]views.Entry, map[stage.Step]float64)
	// Notice returns what the learner must be told at the home screen: progress that cannot
	// be kept. "" is nothing.
	Notice(c *i18n.Catalog) string
	// Open starts a lesson, a drill or the sandbox; it may take time.
	Open(id string) (*Session, error)
	// Save keeps the settings.
	Save(Settings) error
}

// Session is one thing that is played.
type Session struct {
	ID       string
	Title    func(i18n.Lang) string
	Timeline player.Timeline
	Story    frame.Story    // nil: the general story
	Exercise views.Exercise // nil: no question to answer
	Guide    Guide          // nil: the learner goes where he likes
	Start    int            // cursor to begin at; -1 for before the first hop

	// Faults lists what can be injected; Inject injects at the cursor and returns the run
	// from there on. Nil where nothing can be broken.
	Faults func(i18n.Lang) []views.FaultItem
	// It runs in a command.
	Inject func(cursor int, id string) (player.Timeline, error)

	// Kubectl runs a command line at the cursor; Complete lists what its last word may
	// become. Nil where there is no terminal. Both run in commands, never two at once.
	Kubectl  func(cursor int, line string) Result
	Complete func(cursor int, line string) []string

	// Verdict says how the run ended: "ready", "failed at: …", "" while it is open.
	Verdict func(c *i18n.Catalog) string
	// Moved has a word when the run was moved by somebody else, in another terminal; Renew
	// takes over what has come. Nil where nobody can.
	Moved <-chan struct{}
	Renew func()
	// Left is called when the learner leaves, in a command.
	Left func(cursor int)
}

// Result is what a command line came to.
type Result struct {
	Output   string
	Failed   bool
	Timeline player.Timeline // the run from here on; nil if the command changed nothing
	Hop      int             // the first hop that the command caused, -1 for none
}

// Guide leads through a run, step by step: a lesson. The story stands still at each step
// until the learner goes on.
type Guide interface {
	// Target returns how many hops have been told at the present step.
	Target() int
	// Held says why the lesson does not go on: "answer", "try", or "" where it may.
	Held() string
	// Asked is the command line that the present step asks for, "" for none.
	Asked() string
	// Last reports whether this is the last step.
	Last() bool
	// Advance goes on to the next step. It may take time: called in a command.
	Advance() error
	// Did is told that the learner has run a command.
	Did()
	// Panel names the panel's tab for the present step, "" for none.
	Panel() string
}

// Options make a Model.
type Options struct {
	Assets   fs.FS
	Renderer *lipgloss.Renderer
	Program  Program
	Settings Settings
	Open     string       // what to open at once, "" for the home screen
	Local    bool         // this is the user's own terminal: ctrl+z suspends
	Clock    player.Clock // nil is real time
}
