package panes

import (
	"fmt"
	"strings"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

var stops = []stage.ID{
	stage.PreEnqueue, stage.QueueSort, stage.PreFilter, stage.Filter, stage.PostFilter, stage.PreScore,
	stage.Score, stage.Reserve, stage.Permit, stage.PreBind, stage.Bind,
}

// drawPoints draws the extension points as stops of a line, labels above and below in
// turn.
func drawPoints(r ui.Region, s *scene, _ box) {
	t := s.t
	states := s.schedulerStates()
	step := float64(r.W-8) / float64(len(stops)-1)
	at := func(i int) int { return 4 + int(float64(i)*step+0.5) }
	mid := 1
	last := -1
	for i, id := range stops {
		if states[id] != frame.Todo {
			last = i
		}
	}
	for i := range stops {
		if i+1 < len(stops) {
			st, line := t.Line, t.Glyph.Track
			if i < last {
				st, line = t.OK, t.Glyph.TrackDone
			}
			r.HLine(at(i)+1, mid, at(i+1)-at(i)-1, line, st)
		}
	}
	for i, id := range stops {
		g, st := mark(t, states[id])
		r.Set(at(i), mid, g, st)
		ls := t.Dim
		switch states[id] {
		case frame.Here, frame.Failed, frame.Waiting, frame.Retry:
			ls = t.Strong
		case frame.Done:
			ls = t.Text
		}
		label := s.f.Cat.StageShort(id)
		y := mid - 1
		if i%2 == 1 {
			y = mid + 1
		}
		w := text.Width(label)
		r.Text(min(max(at(i)-w/2, 0), r.W-w), y, label, ls)
	}
}

// schedulerStates is the state of the stops in the newest cycle: what came before the
// last queue hop does not count.
func (s *scene) schedulerStates() map[stage.ID]frame.State {
	out := map[stage.ID]frame.State{}
	for _, h := range s.f.Hops {
		if stage.StepOf(h.Stage) != "5" {
			continue
		}
		if h.Stage == stage.PreEnqueue || h.Stage == stage.PreFilter && out[stage.Filter] != frame.Todo {
			q := out[stage.QueueSort]
			clear(out)
			if h.Stage == stage.PreFilter {
				out[stage.PreEnqueue], out[stage.QueueSort] = frame.Done, q
			}
		}
		out[h.Stage] = frame.Of(h.Outcome)
	}
	if h, ok := s.f.Hop(); ok && out[h.Stage] == frame.Done {
		out[h.Stage] = frame.Here
	}
	return out
}

func drawQueues(r ui.Region, s *scene, b box) {
	t := s.t
	q, _, _ := frame.Last[trace.Queue](s.f, nil)
	lanes := []struct {
		label string
		pods  []string
	}{
		{"box.queueActive", q.Active},
		{"box.queueBackoff", q.Backoff},
		{"box.queueUnschedulable", append(append([]string(nil), q.Unschedulable...), q.Gated...)},
	}
	lw := 0
	for _, l := range lanes {
		lw = max(lw, text.Width(s.f.Cat.T(l.label)))
	}
	for i, l := range lanes {
		if i >= r.H {
			break
		}
		r.Text(0, i, s.f.Cat.T(l.label), t.Dim)
		x := lw + 2
		if len(l.pods) == 0 {
			r.Text(x, i, t.Glyph.Todo, t.Line)
			continue
		}
		var names []string
		for _, p := range l.pods {
			names = append(names, p[strings.LastIndex(p, "/")+1:])
		}
		st := t.Text
		if i == 2 {
			st = t.Wait
		}
		r.TextMax(x, i, r.W-x, t.Glyph.Select+" "+strings.Join(names, "  "), st)
	}
}

// cycle returns the newest node × plugin table of the newest scheduling attempt.
func cycle(f *frame.Frame) (trace.SchedulingCycle, trace.Hop, bool) {
	return frame.Last[trace.SchedulingCycle](f, nil)
}

func drawGrid(r ui.Region, s *scene, _ box) { DrawCycle(r, s.t, s.f) }

// DrawCycle draws the node × plugin table, or the scores where scoring is on.
func DrawCycle(r ui.Region, t *theme, f *frame.Frame) {
	c, h, ok := cycle(f)
	if !ok || len(c.Nodes) == 0 {
		r.TextMax(0, 0, r.W, f.Cat.T("box.notYet"), t.Line)
		return
	}
	if hasScores(c, h) {
		drawScores(r, t, f, c)
		return
	}
	drawMatrix(r, t, f, c)
}

func hasScores(c trace.SchedulingCycle, h trace.Hop) bool {
	for _, n := range c.Nodes {
		if len(n.Scores) > 0 {
			return h.Stage != stage.Filter
		}
	}
	return false
}

// scored reports whether the newest table is one of scores.
func scored(f *frame.Frame) bool {
	c, h, ok := cycle(f)
	return ok && hasScores(c, h)
}

// drawMatrix has a row for each plugin that said something worth a row, a column for
// each node.
func drawMatrix(r ui.Region, t *theme, f *frame.Frame, c trace.SchedulingCycle) {
	rows := matrixRows(c, max(r.H-2, 1))
	lw := 0
	for _, i := range rows {
		lw = max(lw, text.Width(c.Plugins[i]))
	}
	lw = min(lw, max(r.W/3, 10))
	nodes := c.Nodes
	cw := min(max((r.W-lw-2)/max(len(nodes), 1), 6), 22)
	for len(nodes) > 1 && lw+2+cw*len(nodes) > r.W {
		nodes = nodes[:len(nodes)-1]
	}
	for j, n := range nodes {
		st := t.Strong
		if n.Chosen {
			st = t.NowStrong
		}
		r.TextMax(lw+2+j*cw, 0, cw-1, n.Node, st)
	}
	y := 1
	for _, i := range rows {
		if y >= r.H {
			break
		}
		r.TextMax(0, y, lw, c.Plugins[i], t.Text)
		for j, n := range nodes {
			v := ""
			if i < len(n.Status) {
				v = n.Status[i]
			}
			x := lw + 2 + j*cw
			switch v {
			case "":
				r.Text(x, y, t.Glyph.Done, t.OK)
			case "-":
				r.Text(x, y, t.Glyph.Todo, t.Line)
			default:
				nx := r.Text(x, y, t.Glyph.Failed+" ", t.FailStrong)
				r.TextMax(nx, y, cw-3, v, t.Fail)
			}
		}
		y++
	}
	if rest := len(c.Plugins) - len(rows); rest > 0 && y < r.H {
		r.TextMax(0, y, r.W, f.Cat.T("object.more", "n", rest)+" "+t.Glyph.Done, t.Line)
		y++
	}
	matrixReasons(r, t, c, y+1, cw-3)
}

// matrixReasons writes below the table what did not fit into its cells.
func matrixReasons(r ui.Region, t *theme, c trace.SchedulingCycle, y, cell int) {
	nw := 0
	for _, n := range c.Nodes {
		nw = max(nw, text.Width(n.Node))
	}
	for _, n := range c.Nodes {
		for _, v := range n.Status {
			if v == "" || v == "-" || text.Width(v) <= cell || y >= r.H {
				continue
			}
			r.Text(0, y, text.Pad(n.Node, nw), t.Dim)
			x := r.Text(nw+2, y, t.Glyph.Failed+" ", t.FailStrong)
			r.TextMax(x, y, r.W-x, v, t.Fail)
			y++
		}
	}
}

// matrixRows picks the plugins to show: those that refused a node first of all, then
// the others as far as there is room, in their order.
func matrixRows(c trace.SchedulingCycle, room int) []int {
	said := map[int]bool{}
	for i := range c.Plugins {
		for _, n := range c.Nodes {
			if i < len(n.Status) && n.Status[i] != "" && n.Status[i] != "-" {
				said[i] = true
			}
		}
	}
	left := room - len(said)
	if len(c.Plugins) > room {
		left--
	}
	var out []int
	for i := range c.Plugins {
		if said[i] {
			out = append(out, i)
		} else if left > 0 {
			out = append(out, i)
			left--
		}
	}
	if len(out) > room {
		out = out[:room]
	}
	return out
}

// drawScores draws one bar a node that adds up its plugins' points.
func drawScores(r ui.Region, t *theme, f *frame.Frame, c trace.SchedulingCycle) {
	var top int64 = 1
	nw := 0
	for _, n := range c.Nodes {
		if len(n.Scores) > 0 {
			top = max(top, n.Total)
			nw = max(nw, text.Width(n.Node))
		}
	}
	y := 0
	bw := max(min(r.W-nw-18, 44), 6)
	for _, n := range c.Nodes {
		if len(n.Scores) == 0 {
			continue
		}
		if y >= r.H {
			return
		}
		st, ns := t.Dim, t.Text
		if n.Chosen {
			st, ns = t.Now, t.NowStrong
		}
		r.Text(0, y, text.Pad(n.Node, nw), ns)
		x := ui.Bar(r, t, nw+2, y, bw, float64(n.Total), float64(top), st)
		x = r.Text(x+1, y, fmt.Sprint(n.Total), ns)
		if n.Chosen {
			r.TextMax(x+1, y, r.W-x-1, t.Glyph.Left+" "+f.Cat.T("box.chosen"), t.NowStrong)
		}
		y++
		rows := 1
		if r.H >= 8 {
			rows = 3
		}
		y = drawScoreParts(r, t, n, nw+2, y, rows)
		if r.H >= 8 {
			y++
		}
	}
}

// drawScoreParts lists the parts of a sum: "NodeResourcesFit 72×1".
func drawScoreParts(r ui.Region, t *theme, n trace.NodeRow, x0, y, rows int) int {
	x := x0
	last := y + rows
	for _, p := range n.Scores {
		part := fmt.Sprintf("%s %d×%d", p.Plugin, p.Raw, p.Weight)
		if p.Weight == 1 {
			part = fmt.Sprintf("%s %d", p.Plugin, p.Raw)
		}
		if x > x0 && x+text.Width(part) > r.W {
			x, y = x0, y+1
		}
		if y >= last || y >= r.H {
			return min(y, last)
		}
		x = r.TextMax(x, y, r.W-x, part, t.Dim) + 3
	}
	return y + 1
}

func drawSchedulingEvent(r ui.Region, s *scene, _ box) {
	t := s.t
	c, _, ok := cycle(s.f)
	msg := c.Event
	if !ok || msg == "" {
		return
	}
	for i, l := range text.Wrap(msg, r.W-2) {
		if i >= r.H {
			break
		}
		if i == 0 {
			r.Text(0, 0, t.Glyph.Change, t.Fail)
		} else {
			r.Text(0, i, t.Glyph.Change, t.Fail)
		}
		r.Text(2, i, l, t.Fail)
	}
}
