package player

import (
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
)

// tape is a run of a few hops, all known from the start.
type tape []trace.Hop

func (t tape) Len() int               { return len(t) }
func (t tape) Hop(i int) trace.Hop    { return t[i] }
func (t tape) At(int) frame.View      { return nil }
func (t tape) RunMore() (bool, error) { return false, nil }
func (t tape) Branch() string         { return "" }
func (t tape) Twin() []trace.Hop      { return nil }
func (t tape) Origin() kernel.Time    { return 0 }
func (t tape) Focus() trace.Ref       { return trace.Ref{Kind: "Pod", Name: "web"} }

// story: asked, let in, queued (quiet), filtered, and a minute later refused.
func story() tape {
	at := func(d time.Duration) kernel.Time { return kernel.Time(0).Add(d) }
	return tape{
		{Seq: 1, At: at(0), Stage: stage.Client, Outcome: trace.OK},
		{Seq: 2, At: at(time.Millisecond), Stage: stage.Authentication, Outcome: trace.OK},
		{Seq: 3, At: at(2 * time.Millisecond), Stage: stage.QueueSort, Outcome: trace.OK},
		{Seq: 4, At: at(3 * time.Millisecond), Stage: stage.Filter, Outcome: trace.OK},
		{Seq: 5, At: at(time.Minute), Stage: stage.Filter, Outcome: trace.Failed, Reason: "Unschedulable"},
	}
}

// stand returns a player whose clock rings at once, and what makes it tick.
func stand(reduced bool) (*Player, func(n int)) {
	p := New(story(), nil, reduced)
	p.Clock = func(_ time.Duration, msg func(time.Time) tea.Msg) tea.Cmd {
		return func() tea.Msg { return msg(time.Time{}) }
	}
	return p, func(n int) {
		for ; n > 0; n-- {
			cmd := p.Tick()
			if cmd == nil {
				return
			}
			p.Update(cmd().(TickMsg))
		}
	}
}

func at(t *testing.T, p *Player, want int, what string) {
	t.Helper()
	if p.Cursor() != want {
		t.Fatalf("%s: at hop %d, want %d", what, p.Cursor(), want)
	}
}

func TestKeysMoveTheCursor(t *testing.T) {
	p, _ := stand(true)
	at(t, p, -1, "before the story")
	for _, k := range []struct {
		name string
		do   func()
		want int
	}{
		{"next", p.Next, 0}, {"next", p.Next, 1}, {"next passes the quiet hop", p.Next, 3}, {"back", p.Back, 1},
		{"hop does not", func() { p.Hop(1) }, 2}, {"hop back", func() { p.Hop(-1) }, 1},
		{"step", func() { p.Step(1) }, 2}, {"step", func() { p.Step(1) }, 4}, {"home", p.Home, -1}, {"end", p.End, 4},
		{"beyond the end", func() { p.Seek(99) }, 4}, {"before the start", func() { p.Seek(-9) }, -1},
	} {
		k.do()
		at(t, p, k.want, k.name)
	}
}

func TestAnOpenQuestionHoldsTheCursor(t *testing.T) {
	p, _ := stand(true)
	p.Hold(2)
	p.End()
	at(t, p, 2, "end with a question at 2")
	if !p.Held() {
		t.Error("it is held here")
	}
	p.Hold(-1)
	p.End()
	at(t, p, 4, "answered")
}

func TestAWaitIsSkippedAndSaid(t *testing.T) {
	p, _ := stand(true)
	p.Seek(3)
	if d := p.Frame().Skipped; d != 0 {
		t.Errorf("%s skipped where nothing took long", d)
	}
	p.Next()
	if d := p.Frame().Skipped; d < 59*time.Second || d > time.Minute {
		t.Errorf("skipped %s, want a minute", d)
	}
}

func TestMotion(t *testing.T) {
	p, tick := stand(false)
	p.Next()
	if !p.Moving() {
		t.Fatal("a packet is on its way")
	}
	p.Next()
	at(t, p, 0, "the first key completes the motion")
	if p.Moving() {
		t.Error("it has arrived")
	}
	p.Next()
	tick(100)
	if p.Moving() || p.Tick() != nil {
		t.Error("after a while it stands, and no tick is asked for")
	}
	still, _ := stand(true)
	still.Next()
	if still.Moving() {
		t.Error("nothing moves with reduced motion")
	}
}

func TestPlayingAndTravelling(t *testing.T) {
	p, tick := stand(false)
	p.Travel(3)
	tick(1000)
	at(t, p, 3, "travelled")
	if p.Travelling() || p.Playing {
		t.Error("it pauses where it was to go")
	}
	p.Toggle()
	tick(1000)
	at(t, p, 4, "played to the end")
	if p.Playing {
		t.Error("at the end it pauses")
	}
	p.Update(TickMsg{tag: -1})
	p.SetSpeed(100)
	if p.Speed() != 8 {
		t.Errorf("speed %v", p.Speed())
	}
	p.Reset(story()[:2])
	at(t, p, 1, "a shorter run")
}
