package panes

import (
	"fmt"
	"strings"
	"time"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

// Story tells what happens at the cursor: the lesson's words where there are some, else
// the general story of the stage; what Kubernetes itself says; and a question that waits
// for an answer. It returns the number of rows that the whole text takes. The title is
// drawn apart, by StoryTitle.
func Story(r ui.Region, t *theme, f *frame.Frame, p *frame.Passage, choice int) int {
	if r.W < 4 {
		return 0
	}
	h, ok := f.Hop()
	y := 0
	switch {
	case p != nil && p.Text != "":
		y = paragraphs(r, t, y, p.Text)
	case ok:
		y = paragraphs(r, t, y, f.Cat.Story(h.Stage))
	default:
		y = paragraphs(r, t, y, f.Cat.T("app.start"))
	}
	if p != nil && p.Question != nil {
		y = question(r, t, f, y+1, p.Question, choice)
	}
	if !ok || p != nil && p.Question.Open() {
		return y
	}
	if f.Skipped > 0 {
		y++
		r.TextMax(0, y, r.W, t.Glyph.Waiting+" "+f.Cat.T("hop.wait", "t", Duration(f.Skipped)), t.Wait)
		y++
	}
	y = metaphor(r, t, f, y, h)
	y = said(r, t, f, y, h)
	if h.Bad() || h.Outcome == trace.Retry {
		y = paragraphs(r, t, y+1, f.Cat.Trouble(h.Stage))
	}
	return detail(r, t, f, y+1, h)
}

// metaphor tells what the component at work would be in the picture, and where the picture
// misleads.
func metaphor(r ui.Region, t *theme, f *frame.Frame, y int, h trace.Hop) int {
	if !f.Metaphor {
		return y
	}
	kind, _ := h.To.Split()
	if kind == "" || !f.Cat.Has("metaphor."+string(kind)+".name") {
		kind, _ = h.From.Split()
	}
	key := "metaphor." + string(kind)
	if !f.Cat.Has(key + ".name") {
		return y
	}
	y = r.Rich(0, y+1, r.W, f.Cat.T("metaphor.title")+": **"+string(kind)+" · "+f.Cat.T(key+".name")+"**", t.Dim, t.Strong, t.Code)
	y = paragraphs(r, t, y, f.Cat.T(key+".text"))
	return r.Rich(0, y, r.W, f.Cat.T("metaphor.breaks")+": "+f.Cat.T(key+".limit"), t.Dim, t.Dim, t.Code)
}

// StoryTitle draws the step's badge and what the hop is called, in one row.
func StoryTitle(r ui.Region, t *theme, f *frame.Frame, p *frame.Passage) {
	h, ok := f.Hop()
	x, right := 0, r.W
	if ok {
		bs := t.Badge
		switch frame.Of(h.Outcome) {
		case frame.Failed:
			bs = t.BadgeFail
		case frame.Waiting, frame.Retry:
			bs = t.BadgeWait
		}
		x = r.Text(0, 0, " "+string(h.Step())+" ", bs) + 1
	}
	title := ""
	if p != nil {
		title = p.Title
	}
	if ok && h.Outcome != trace.OK {
		g, st := mark(t, frame.Of(h.Outcome))
		word := g + " " + f.Cat.T("outcome."+string(h.Outcome))
		if x+max(text.Width(title), 11)+1+text.Width(word) <= r.W {
			right = r.TextRight(r.W, 0, word, st) - 1
		}
	}
	if title == "" && ok {
		title = text.First(right-x, StageTitle(f, h.Stage), f.Cat.Stage(h.Stage))
	}
	r.TextMax(x, 0, right-x, title, t.Strong)
}

// StageTitle is "Schedule · Filter": the step and the stage, once where they are the
// same.
func StageTitle(f *frame.Frame, id stage.ID) string {
	step, st := f.Cat.Step(stage.StepOf(id)), f.Cat.Stage(id)
	if step == st || strings.HasPrefix(st, step) {
		return st
	}
	return step + " · " + st
}

func paragraphs(r ui.Region, t *theme, y int, s string) int {
	return r.Rich(0, y, r.W, strings.TrimSpace(s), t.Text, t.Strong, t.Code)
}

// said shows the literal words of Kubernetes, set apart, and what its reason means.
func said(r ui.Region, t *theme, f *frame.Frame, y int, h trace.Hop) int {
	if h.Message == "" && h.Reason == "" {
		return y
	}
	st := t.Code
	bar := t.Dim
	if h.Bad() {
		st, bar = t.Fail, t.Fail
	}
	y++
	if h.Reason != "" {
		r.Text(0, y, t.Glyph.Change, bar)
		r.TextMax(2, y, r.W-2, h.Reason, t.Strong)
		y++
	}
	if h.Message != "" {
		for i, l := range text.Wrap(h.Message, r.W-2) {
			if i == 12 {
				r.Text(0, y, t.Glyph.Change, bar)
				r.Text(2, y, text.Ellipsis, st)
				y++
				break
			}
			r.Text(0, y, t.Glyph.Change, bar)
			r.Text(2, y, l, st)
			y++
		}
	}
	if e := f.Cat.Reason(h.Reason); e != "" {
		y = r.Rich(0, y+1, r.W, e, t.Dim, t.Dim, t.Dim)
	}
	return y
}

// cycleWidthMin is how wide the nodes × plugins table must be to be read.
const cycleWidthMin = 48

// detail adds what the hop's typed detail has to say beyond the diagram.
func detail(r ui.Region, t *theme, f *frame.Frame, y int, h trace.Hop) int {
	switch d := h.Detail.(type) {
	case trace.Admission:
		for _, p := range d.Plugins {
			g, st := t.Glyph.Done, t.OK
			switch p.Verdict {
			case "changed":
				g, st = "+", t.Add
			case "denied":
				g, st = t.Glyph.Failed, t.FailStrong
			}
			x := r.Text(0, y, g+" ", st)
			r.TextMax(x, y, r.W-x, p.Plugin, t.Text)
			y++
		}
	case trace.SchedulingCycle:
		if r.W < cycleWidthMin {
			break // the diagram shows it
		}
		rows := min(len(d.Plugins)+1, 10)
		DrawCycle(r.Sub(0, y, r.W, rows), t, f)
		y += rows
	case trace.Probe:
		g, st := mark(t, frame.Done)
		if !d.Success {
			g, st = mark(t, frame.Failed)
		}
		x := r.Text(0, y, g+" ", st)
		x = r.Text(x, y, d.Kind, t.Text)
		if !d.Success && d.Threshold > 0 {
			r.TextMax(x+1, y, r.W-x-1, fmt.Sprintf("%d/%d", d.Failures, d.Threshold), t.Dim)
		}
		y++
	case trace.Pull:
		n := d.Layers
		if h.Outcome != trace.OK {
			n = d.Cached
		}
		note := f.Cat.T("box.layers", "n", n, "m", d.Layers, "c", d.Cached)
		r.TextMax(0, y, r.W, t.Glyph.Blueprint+" "+d.Image+"  "+size(d.SizeBytes), t.Text)
		r.TextMax(2, y+1, r.W-2, note, t.Dim)
		y += 2
	}
	return y
}

func size(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%d MB", (n+5e5)/1e6)
}

func question(r ui.Region, t *theme, f *frame.Frame, y int, q *frame.Question, choice int) int {
	r.Text(0, y, f.Cat.T("quiz.your"), t.NowStrong)
	y++
	y = r.Rich(0, y, r.W, q.Prompt, t.Strong, t.Strong, t.Code) + 1
	for i, c := range q.Choices {
		lead, st := "  ", t.Text
		switch {
		case q.Open() && i == choice:
			lead, st = t.Glyph.Select+" ", t.Select
		case q.Answered == i && c.Right:
			lead, st = t.Glyph.Done+" ", t.OK
		case q.Answered == i:
			lead, st = t.Glyph.Failed+" ", t.Fail
		case q.Answered >= 0 && c.Right:
			lead, st = t.Glyph.Done+" ", t.OK
		case q.Answered >= 0:
			st = t.Dim
		}
		x := r.Text(0, y, lead, st)
		x = r.Text(x, y, fmt.Sprint(i+1)+" ", t.Key)
		for _, l := range text.Wrap(text.Strip(c.Text), r.W-x) {
			r.Text(x, y, l, st)
			y++
		}
	}
	if q.Answered >= 0 && q.Answered < len(q.Choices) {
		c := q.Choices[q.Answered]
		word, st := f.Cat.T("quiz.wrong"), t.FailStrong
		if c.Right {
			word, st = f.Cat.T("quiz.right"), t.BadgeOK
		}
		y++
		r.Text(0, y, word, st)
		y = r.Rich(0, y+1, r.W, c.Feedback, t.Text, t.Strong, t.Code)
		if !c.Right {
			for _, c := range q.Choices {
				if c.Right {
					y = r.Rich(0, y+1, r.W, t.Glyph.Done+" "+c.Text, t.OK, t.OK, t.OK)
				}
			}
		}
		if q.Onward {
			y = r.Rich(0, y+1, r.W, f.Cat.T("quiz.next"), t.Dim, t.Dim, t.Dim)
		}
	} else {
		y++
		y = r.Rich(0, y, r.W, f.Cat.T("quiz.locked"), t.Dim, t.Dim, t.Dim)
	}
	return y
}

// Duration writes a time as people read it: 0.184 s, 12 s, 4m 10s.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.3f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
}

// StoryRows returns how many rows a story takes in w columns.
func StoryRows(t *theme, f *frame.Frame, p *frame.Passage, w int) int {
	return Story(ui.NewCanvas(w, 0).All(), t, f, p, 0)
}

// Scrolled draws a panel of any length into r from row skip on and returns the number
// of rows there are in all.
//
// With air, a text that is short enough has an empty row above it.
func Scrolled(r ui.Region, t *theme, skip int, air bool, draw func(ui.Region) int) int {
	const rowsMax = 400
	c := ui.NewCanvas(r.W, rowsMax)
	n := min(draw(c.All()), rowsMax)
	skip = min(max(skip, 0), max(n-r.H, 0))
	if n < r.H-1 && air {
		skip = -1
	}
	r.Blit(c, skip)
	if skip > 0 {
		r.TextRight(r.W, 0, t.Glyph.Up, t.Dim)
	}
	if n-skip > r.H {
		r.TextRight(r.W, r.H-1, t.Glyph.Down, t.Dim)
	}
	return n
}
