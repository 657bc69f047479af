package app

import (
	"context"
	"io"
	"os"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
)

// fps is how often the screen is written: enough for a packet's motion, kind to tmux and
// SSH.
const fps = 30

// NewRenderer returns the renderer for a terminal: what it can show, and whether its
// background is dark. The toolkit has asked the user's own terminal for that at its start;
// it is not asked again, since one that gives no answer is waited for.
func NewRenderer(out io.Writer) *lipgloss.Renderer {
	r := lipgloss.NewRenderer(out)
	if out == os.Stdout {
		r.SetHasDarkBackground(lipgloss.HasDarkBackground())
	}
	return r
}

// Run shows the tutor on a terminal until the learner leaves.
func Run(ctx context.Context, m *Model, in io.Reader, out io.Writer) error {
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithFPS(fps))
	_, err := p.Run()
	if m.play != nil && m.sess != nil && m.sess.Left != nil {
		m.sess.Left(m.play.Cursor())
	}
	return err
}
