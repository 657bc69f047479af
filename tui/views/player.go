package views

import (
	"fmt"
	"strings"

	"podwalk/tui/frame"
	"podwalk/tui/panes"
	"podwalk/tui/text"
	"podwalk/tui/theme"
	"podwalk/tui/ui"
)

// The panel's tabs.
const (
	TabStory = iota
	TabObject
	TabEvents
	TabKubectl
	TabWhy
	TabRequest
	TabGrid
	TabHops
	TabCompare
	tabs
)

var tabKeys = [tabs]string{"story", "object", "events", "kubectl", "why", "request", "grid", "hops", "compare"}

// TabNamed returns the tab of a name, as lessons write it.
func TabNamed(name string) (int, bool) {
	for i, k := range tabKeys {
		if k == name {
			return i, true
		}
	}
	return 0, false
}

// Tabs returns how many tabs there are.
func Tabs() int { return tabs }

// Player is all that the player's screen shows.
type Player struct {
	Title   string
	Frame   *frame.Frame
	Passage *frame.Passage
	Choice  int // the marked answer of an open question
	Diagram *panes.Diagram
	Pinned  bool // the diagram was chosen by hand
	Tab     int
	Scroll  int
	Rows    int // set by Draw: rows of the panel's text beyond what fits
	Term    *Terminal
	Typing  bool // the kubectl pane has the keyboard
	Tried   bool // he has: where there is room it stays for what it said
	Try     bool // the learner is asked to type: the terminal stands beside the story
	Marks   []frame.Mark
	Cursor  int
	Playing bool
	Speed   float64
	Keys    []ui.KeyHelp
	Notice  string // one line above the keys' row, in place of the track
	Verdict string // "ready" or "failed at …" once the run is over
}

// Draw draws the player.
func (p *Player) Draw(r ui.Region, t *theme.Theme) {
	l := p.Layout(r.W, r.H, t)
	g := &t.Glyph
	p.header(r.At(l.Header), t)
	for i, y := range l.Rules {
		tees := map[int]string{}
		if l.Side {
			tees[l.Split] = g.Box.TeeD
			if i == 1 {
				tees[l.Split] = g.Box.TeeU
			}
		}
		ui.Rule(r, t, y, tees)
	}
	if l.Side {
		r.VLine(l.Split, l.Rules[0]+1, l.Rules[1]-l.Rules[0]-1, g.Box.V, t.Line)
	}
	if p.Try && !l.Side && p.Tab == TabStory {
		p.Term.Draw(r.At(l.Diagram).Sub(1, 0, l.Diagram.W-2, l.Diagram.H), t, p.Frame.Cat, p.Typing)
	} else {
		p.diagram(r.At(l.Diagram), t)
	}
	p.panel(r.At(l.Panel), t, l.Side)
	if l.LogRule > 0 {
		r.HLine(0, l.LogRule, l.Split, g.Box.H, t.Line)
		r.Set(l.Split, l.LogRule, g.Box.TeeL, t.Line)
		panes.Hops(r.At(l.Log), t, p.Frame)
	}
	if l.TruthRule > 0 {
		r.HLine(l.Split+1, l.TruthRule, r.W-l.Split-1, g.Box.H, t.Line)
		r.Set(l.Split, l.TruthRule, g.Box.TeeR, t.Line)
		if pod := p.Frame.FocusPod(); pod != nil {
			panes.Truth(r.At(l.Truth), t, p.Frame, pod)
		} else {
			r.At(l.Truth).TextMax(0, 0, l.Truth.W, p.Frame.Cat.T("object.none"), t.Dim)
		}
	}
	panes.Badges(r.At(l.Badges), t, p.Frame)
	if p.Notice != "" {
		n := r.At(l.Track)
		n.TextMax(2, 0, n.W-3, p.Notice, t.NowStrong)
	} else {
		panes.Track(r.At(l.Track), t, p.Marks, p.Cursor)
	}
	ui.KeyBar(r.At(l.Keys), t, p.Keys)
}

// Layout computes the rectangles for what is shown now. A question wants to be read as a
// whole.
func (p *Player) Layout(w, h int, t *theme.Theme) Rects {
	wish := 0
	if p.Tab == TabStory && p.Passage != nil && p.Passage.Question != nil {
		wish = panes.StoryRows(t, p.Frame, p.Passage, w-3) + 1
	}
	return Layout(w, h, p.Tab == TabKubectl, wish)
}

func (p *Player) header(r ui.Region, t *theme.Theme) {
	f := p.Frame
	state := t.Glyph.Pause
	ss := t.Dim
	if p.Playing {
		state, ss = t.Glyph.Play, t.NowStrong
	}
	counter := f.Cat.T("head.hop", "n", len(f.Hops), "m", total(f))
	if r.W < 70 {
		counter = f.Cat.T("head.hopShort", "n", len(f.Hops), "m", total(f))
	}
	x := r.W - 1
	lang := "EN"
	if f.Cat.Lang != "en" {
		lang = "中文"
	}
	x = r.TextRight(x, 0, lang, t.Dim) - 3
	x = r.TextRight(x, 0, speed(p.Speed), t.Dim) - 2
	x = r.TextRight(x, 0, state, ss) - 3
	x = r.TextRight(x, 0, panes.Duration(f.Elapsed()), t.Text) - 3
	x = r.TextRight(x, 0, counter, t.Text) - 3
	if f.Branch != "" {
		label := f.Cat.T("head.branch", "name", f.Branch)
		if x-text.Width(label) > 30 {
			x = r.TextRight(x, 0, label, t.Wait) - 3
		}
	}
	if p.Verdict != "" && x-text.Width(p.Verdict) > 34 {
		st := t.BadgeOK
		if p.Verdict != f.Cat.T("app.ready") {
			st = t.FailStrong
		}
		x = r.TextRight(x, 0, p.Verdict, st) - 3
	}
	lx := r.Text(1, 0, "podwalk", t.Brand) + 2
	lx = r.TextMax(lx, 0, max(x-lx, 0), p.Title, t.Text) + 2
	if p.Pinned && p.Diagram != nil {
		r.TextMax(lx, 0, max(x-lx, 0), "z "+f.Cat.T("diagram."+p.Diagram.ID), t.Now)
	}
}

func total(f *frame.Frame) string {
	if f.More {
		return fmt.Sprintf("%d+", f.Total)
	}
	return fmt.Sprint(f.Total)
}

func speed(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".") + "×"
}

func (p *Player) diagram(r ui.Region, t *theme.Theme) {
	d := p.Diagram
	if d == nil {
		return
	}
	panes.DrawDiagram(r, t, p.Frame, d)
}

func (p *Player) panel(r ui.Region, t *theme.Theme, side bool) {
	cat := p.Frame.Cat
	labels := make([]string, tabs)
	for i, k := range tabKeys {
		labels[i] = cat.T("tab." + k)
	}
	body := r.Sub(0, 1, r.W-1, r.H-1)
	if side {
		ui.Tabs(r.Sub(-1, 0, r.W+1, 1), t, labels, p.Tab)
		body = r.Sub(0, 2, r.W-1, r.H-2)
		if p.Tab == TabStory {
			panes.StoryTitle(r.Sub(0, 2, r.W-1, 1), t, p.Frame, p.Passage)
			body = r.Sub(0, 4, r.W-1, r.H-4)
		}
	} else {
		tw := min(r.W*6/10, tabsWidth(labels))
		ui.Tabs(r.Sub(r.W-tw, 0, tw, 1), t, labels, p.Tab)
		panes.StoryTitle(r.Sub(0, 0, r.W-tw-1, 1), t, p.Frame, p.Passage)
	}
	if p.Tab == TabKubectl {
		if p.Term != nil {
			p.Term.Draw(body, t, cat, p.Typing)
		} else {
			body.TextMax(0, 0, body.W, cat.T("terminal.offline"), t.Dim)
		}
		return
	}
	if (p.Try || p.Tried && p.Term != nil) && side && p.Tab == TabStory {
		th := min(max(body.H/2, 6), 14)
		below := body.Sub(0, body.H-th, body.W, th)
		below.HLine(0, 0, below.W, t.Glyph.Box.H, t.Line)
		p.Term.Draw(below.Sub(0, 1, below.W, th-1), t, cat, p.Typing)
		body = body.Sub(0, 0, body.W, body.H-th)
	}
	p.Rows = panes.Scrolled(body, t, p.Scroll, !side, func(r ui.Region) int { return p.tab(r, t, body.H) }) - body.H
}

func tabsWidth(labels []string) int {
	n := 0
	for _, l := range labels {
		n += text.Width(l) + 2
	}
	return n
}

func (p *Player) tab(r ui.Region, t *theme.Theme, h int) int {
	switch p.Tab {
	case TabObject:
		return panes.Object(r, t, p.Frame)
	case TabEvents:
		return panes.Events(r, t, p.Frame)
	case TabRequest:
		return panes.Request(r, t, p.Frame)
	case TabGrid:
		panes.DrawCycle(r.Sub(0, 0, r.W, max(h, 18)), t, p.Frame)
		return h
	case TabWhy:
		return panes.Why(r, t, p.Frame)
	case TabCompare:
		return panes.Compare(r, t, p.Frame)
	case TabHops:
		return panes.Hops(r.Sub(0, 0, r.W, h), t, p.Frame)
	}
	return panes.Story(r, t, p.Frame, p.Passage, p.Choice)
}
