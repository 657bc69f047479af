package app

import (
	"context"
	"io"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
)

// fps is how often the screen is written: enough for a packet's motion, kind to tmux and
// SSH.
const fps = 30

// NewRenderer returns the renderer for a terminal: what it can show, and whether its
// background is dark.
func NewRenderer(out io.Writer) *lipgloss.Renderer { return lipgloss.NewRenderer(out) }

// Run shows the tutor on a terminal until the learner leaves.
func Run(ctx context.Context, m *Model, in io.Reader, out io.Writer) error {
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithFPS(fps))
	_, err := p.Run()
	if m.play != nil && m.sess != nil && m.sess.Left != nil {
		m.sess.Left(m.play.Cursor())
	}
	if err != nil {
		return err
	}
	return m.err
}
