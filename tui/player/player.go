// Package player moves a cursor through a run: play, pause, the next thing that
// matters, single hops, back, steps. It is the only place where real time becomes
// virtual time, and the only one that starts a tick.
//
// The engine runs ahead of the cursor, a bounded piece at a time, so that a key is never
// slow. Waits (a back-off, five minutes of toleration) are not lived through: the cursor
// jumps over them and the frame says how much time passed.
package player

import (
	"sort"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/i18n"
)

// Timeline is a run that can be looked at from any of its hops. The engine implements
// it.
type Timeline interface {
	// Len returns how many hops in focus are known so far.
	Len() int
	// Hop returns one of them.
	Hop(i int) trace.Hop
	// At returns the cluster right after hop i; -1 is the start.
	At(i int) frame.View
	// RunMore runs the engine on by a bounded piece; more says whether the story goes on.
	RunMore() (more bool, err error)
	// Branch names the branch that is looked at, "" for the first run.
	Branch() string
	// Twin returns the hops of the run that this branch parted from, nil for none.
	Twin() []trace.Hop
	// Origin returns when the story began.
	Origin() kernel.Time
	// Focus returns the Pod that is followed.
	Focus() trace.Ref
}

// Speeds are the steps of the speed keys.
var Speeds = []float64{0.25, 0.5, 1, 2, 4, 8}

const (
	fps         = 20
	motionMax   = 400 * time.Millisecond // a packet's way along its edge at speed 1
	restMin     = 350 * time.Millisecond // between two hops when playing
	restKey     = 1400 * time.Millisecond
	skipFrom    = 2 * time.Second // a wait longer than this is said to be skipped
	ahead       = 80              // hops kept ready beyond the cursor
	piecesMax   = 4               // pieces that the engine may run in one frame
	endPieces   = 200             // hops that the end key looks ahead for
	seekPieces  = 400             // and when a key asks for a hop that is not known yet
	defaultRate = 2               // index into Speeds
)

// TickMsg is the player's own tick.
type TickMsg struct{ tag int }

// Clock makes the command that sends a message after a while: tea.Tick.
type Clock func(d time.Duration, msg func(time.Time) tea.Msg) tea.Cmd

// Player is the cursor and how it moves. It is owned by the one tea.Model.
type Player struct {
	Clock Clock // another one for who will not wait

	tl     Timeline
	cat    *i18n.Catalog
	cursor int // index of the hop looked at; -1 before the first
	more   bool
	err    error

	keys      frame.Keyframes
	Playing   bool
	rate      int
	reduced   bool
	motion    float64 // of the packet: 0…1
	rest      time.Duration
	tag       int
	ticking   bool
	skipped   time.Duration
	cached    *frame.Frame
	views     [2]frame.View
	viewAt    int
	metaphor  bool
	gateUntil int // the cursor may not pass this hop; see Hold
	story     frame.Story
	travel    int // playing only as far as this hop, from one that matters to the next; -1
}

// New returns a player that stands before the first hop.
func New(tl Timeline, cat *i18n.Catalog, reducedMotion bool) *Player {
	p := &Player{Clock: tea.Tick, tl: tl, cat: cat, cursor: -1, more: true, rate: defaultRate, reduced: reducedMotion, motion: 1, viewAt: -2, gateUntil: -1, travel: -1}
	p.runAhead(piecesMax)
	return p
}

// Timeline returns the run.
func (p *Player) Timeline() Timeline { return p.tl }

// Reset takes up a timeline anew: another branch, another run. The cursor stays where
// it can.
func (p *Player) Reset(tl Timeline) {
	p.tl, p.keys, p.more, p.err = tl, frame.Keyframes{}, true, nil
	p.cursor = min(p.cursor, tl.Len()-1)
	p.viewAt = -2
	p.runAhead(piecesMax)
	p.touch()
}

// Renew takes up what has come to the timeline from elsewhere: hops, or just time. The
// cursor stays.
func (p *Player) Renew() {
	if p.cursor >= p.keys.Len()-1 {
		p.viewAt = -2 // it shows the present
	}
	p.more = p.more || p.tl.Len() > p.keys.Len()
	p.runAhead(0)
	p.touch()
}

// Cursor returns the index of the hop looked at, -1 before the first.
func (p *Player) Cursor() int { return p.cursor }

// Err returns the error that ended the run, if one did.
func (p *Player) Err() error { return p.err }

// Speed returns the factor of real time.
func (p *Player) Speed() float64 { return Speeds[p.rate] }

// AtEnd reports whether there is nothing beyond the cursor.
func (p *Player) AtEnd() bool { return !p.more && p.cursor >= p.tl.Len()-1 }

// Hold keeps the cursor from passing hop i until it is lifted with -1: a question is
// open.
func (p *Player) Hold(i int) { p.gateUntil = i }

// Held reports whether an open question stops the cursor here.
func (p *Player) Held() bool { return p.gateUntil >= 0 && p.cursor >= p.gateUntil }

// SetCatalog changes the language.
func (p *Player) SetCatalog(c *i18n.Catalog) { p.cat = c; p.touch() }

// ToggleMetaphor switches the metaphor's labels.
func (p *Player) ToggleMetaphor() { p.metaphor = !p.metaphor; p.touch() }

// SetStory gives a lesson its say in which hops matter.
func (p *Player) SetStory(s frame.Story) {
	p.story = s
	p.keys = frame.Keyframes{}
	p.runAhead(0)
}

func (p *Player) touch() { p.cached = nil }

// move renews only the packet's place.
func (p *Player) move() {
	if p.cached != nil {
		f := *p.cached
		f.Progress = p.motion
		p.cached = &f
	}
}

// runAhead lets the engine run until enough hops are ready, at most n pieces.
func (p *Player) runAhead(n int) {
	for p.more && p.err == nil && n > 0 && p.tl.Len() < p.cursor+1+ahead {
		p.runMore()
		n--
	}
	for p.keys.Len() < p.tl.Len() {
		i := p.keys.Len()
		h := p.tl.Hop(i)
		p.keys.Add(h)
		if p.story != nil {
			if stop, known := p.story.Matters(i, h); known {
				p.keys.Set(i, stop)
			}
		}
	}
}

// runMore lets the run go on by a piece. At the last hop the present is shown, which is
// another one then.
func (p *Player) runMore() {
	if p.cursor >= p.tl.Len()-1 {
		p.viewAt = -2
	}
	p.more, p.err = p.tl.RunMore()
	if p.err != nil {
		p.more = false
	}
}

// ensure makes hop i known if the run has it.
func (p *Player) ensure(i int) bool {
	for n := 0; i >= p.tl.Len() && p.more && n < seekPieces; n++ {
		p.runMore()
	}
	p.runAhead(0)
	return i < p.tl.Len()
}

// Seek puts the cursor on hop i, as near as the run and an open question allow.
func (p *Player) Seek(i int) {
	i = max(i, -1)
	if p.gateUntil >= 0 {
		i = min(i, max(p.gateUntil, p.cursor))
	}
	if !p.ensure(i) {
		i = p.tl.Len() - 1
	}
	if i == p.cursor {
		p.motion = 1
		p.touch()
		return
	}
	forward := i > p.cursor
	p.skipped = 0
	if forward && i >= 0 {
		from := p.tl.Origin()
		if p.cursor >= 0 {
			from = p.tl.Hop(p.cursor).At
		}
		for j := p.cursor + 1; j <= i; j++ { // the longest wait on the way
			at := p.tl.Hop(j).At
			if d := at.Sub(from); d >= skipFrom && d > p.skipped {
				p.skipped = d
			}
			from = at
		}
	}
	p.cursor = i
	p.motion = 1
	if forward && !p.reduced {
		p.motion = 0
	}
	p.rest = 0
	p.touch()
	p.runAhead(piecesMax)
}

// Moving reports whether a packet is on its way.
func (p *Player) Moving() bool { return p.motion < 1 }

// Arrive completes a motion at once.
func (p *Player) Arrive() { p.motion = 1; p.touch() }

// Next goes to the next hop that matters; during a motion it completes that first.
func (p *Player) Next() {
	if p.Moving() {
		p.Arrive()
		return
	}
	for {
		if j, ok := p.keys.Next(p.cursor); ok {
			p.Seek(j)
			return
		}
		if !p.more || !p.ensure(p.keys.Len()) {
			p.Seek(p.tl.Len() - 1)
			return
		}
	}
}

// Back goes to the hop before that mattered.
func (p *Player) Back() { p.Seek(p.keys.Prev(p.cursor)) }

// Hop goes one hop forward or back.
func (p *Player) Hop(n int) {
	if n > 0 && p.Moving() {
		p.Arrive()
		return
	}
	p.Seek(p.cursor + n)
}

// Home goes before the first hop, End to the last one that is known.
func (p *Player) Home() { p.Seek(-1) }

// End goes to the last hop of the run.
func (p *Player) End() {
	for n := 0; p.more && p.gateUntil < 0 && n < endPieces; n++ {
		p.ensure(p.tl.Len())
	}
	p.Seek(p.tl.Len() - 1)
}

// Step goes to the first hop of the next or the previous step badge.
func (p *Player) Step(n int) {
	at := func(i int) stage.Step {
		if i < 0 {
			return ""
		}
		return p.tl.Hop(i).Step()
	}
	here := at(p.cursor)
	if n > 0 {
		for i := p.cursor + 1; p.ensure(i); i++ {
			if at(i) != here {
				p.Seek(i)
				return
			}
		}
		p.Seek(p.tl.Len() - 1)
		return
	}
	i := p.cursor
	for i >= 0 && at(i-1) == here && i-1 >= 0 {
		i--
	}
	if i == p.cursor && i >= 0 {
		here = at(i - 1)
		i--
		for i > 0 && at(i-1) == here {
			i--
		}
	}
	p.Seek(i)
}

// Faster changes the speed by n steps.
func (p *Player) Faster(n int) { p.rate = min(max(p.rate+n, 0), len(Speeds)-1); p.touch() }

// SetSpeed sets the nearest speed there is.
func (p *Player) SetSpeed(x float64) {
	p.rate = min(sort.SearchFloat64s(Speeds, x), len(Speeds)-1)
	p.touch()
}

// Toggle plays or pauses.
func (p *Player) Toggle() {
	p.Playing = !p.Playing && !p.AtEnd()
	p.rest = 0
	p.touch()
}

// Pause stops playing.
func (p *Player) Pause() { p.Playing, p.travel = false, -1; p.touch() }

// Travel plays up to hop i, stopping at what matters only, and pauses there. Without
// motion it is there at once.
func (p *Player) Travel(i int) {
	if p.reduced || i <= p.cursor {
		p.Seek(i)
		return
	}
	p.Playing, p.travel, p.rest = true, i, restMin
}

// Travelling reports whether a Travel is under way.
func (p *Player) Travelling() bool { return p.travel >= 0 }

// Tick returns the command for the next tick, nil where none is needed or one is on its
// way. Call it at the end of every update.
func (p *Player) Tick() tea.Cmd {
	if p.ticking || !(p.Playing || p.Moving()) {
		return nil
	}
	p.ticking = true
	p.tag++
	tag := p.tag
	return p.Clock(time.Second/fps, func(time.Time) tea.Msg { return TickMsg{tag} })
}

// Update takes a tick; ticks of an older chain are dropped.
func (p *Player) Update(msg TickMsg) {
	if msg.tag != p.tag {
		return
	}
	p.ticking = false
	frameTime := time.Second / fps
	if p.Moving() {
		way := time.Duration(float64(motionMax) / max(p.Speed(), 1))
		p.motion = min(p.motion+float64(frameTime)/float64(way), 1)
		p.move()
		return
	}
	if !p.Playing {
		return
	}
	p.rest += frameTime
	want := restMin
	if p.keys.Is(p.cursor) && p.travel < 0 {
		want = restKey
	}
	if p.rest < time.Duration(float64(want)/p.Speed()) {
		return
	}
	if p.Held() || p.AtEnd() {
		p.Pause()
		return
	}
	next := p.cursor + 1
	if p.travel >= 0 {
		next = p.travel
		if j, ok := p.keys.Next(p.cursor); ok {
			next = min(j, p.travel)
		}
	}
	p.Seek(next)
	if p.travel >= 0 && p.cursor >= p.travel {
		p.Playing, p.travel = false, -1
	}
}

// Frame returns what the views get to see now.
func (p *Player) Frame() *frame.Frame {
	if p.cached != nil {
		return p.cached
	}
	if p.viewAt != p.cursor {
		// From one hop to the next the old present is the new past; else the earlier moment
		// is asked for first, which leaves the engine at the later one.
		p.views[0] = p.views[1]
		if p.viewAt != p.cursor-1 || p.cursor < 0 {
			p.views[0] = nil
			if p.cursor >= 0 {
				p.views[0] = p.tl.At(p.cursor - 1)
			}
		}
		p.views[1] = p.tl.At(p.cursor)
		p.viewAt = p.cursor
	}
	hops := make([]trace.Hop, p.cursor+1)
	for i := range hops {
		hops[i] = p.tl.Hop(i)
	}
	f := &frame.Frame{
		Hops: hops, Total: p.tl.Len(), More: p.more, Branch: p.tl.Branch(), Origin: p.tl.Origin(),
		View: p.views[1], Before: p.views[0], Pod: p.focus(hops), Progress: p.motion,
		Skipped: p.skipped, Cat: p.cat, Metaphor: p.metaphor, Twin: p.tl.Twin(),
	}
	p.cached = f
	return f
}

// focus is the Pod that the newest hop is about; before there was one, the run's own.
func (p *Player) focus(hops []trace.Hop) trace.Ref {
	for i := len(hops) - 1; i >= 0; i-- {
		if o := hops[i].Object; o.Kind == "Pod" && o.Name != "" && o.Namespace != "kube-system" {
			return o
		}
	}
	return p.tl.Focus()
}

// Outline returns, for every known hop, its badge and how it ended: what the timeline
// draws.
func (p *Player) Outline() []frame.Mark {
	out := make([]frame.Mark, p.tl.Len())
	for i := range out {
		h := p.tl.Hop(i)
		out[i] = frame.Mark{Step: h.Step(), State: frame.Of(h.Outcome), Key: p.keys.Is(i), Lap: frame.StartsLap(h)}
	}
	return out
}
