package panes

import (
	"podwalk/engine/stage"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

// Badges draws the step badges: number, word where there is room, state.
func Badges(r ui.Region, t *theme, f *frame.Frame) {
	states := f.Steps()
	steps := stage.Steps()
	cur, _ := f.Hop()
	numbered := func(s stage.Step) string { // words for the ten steps only
		if s == "0" || s == "C" || s == "L" {
			return ""
		}
		return f.Cat.StepShort(s)
	}
	for _, mode := range []func(stage.Step) string{f.Cat.StepShort, numbered, func(stage.Step) string { return "" }} {
		w := 1
		for _, s := range steps {
			w += badgeWidth(string(s), mode(s)) + 1
		}
		if w > r.W+1 && mode(steps[1]) != "" {
			continue
		}
		spare := max(r.W-w, 0)
		gap := min(spare/len(steps), 2)
		x := 1
		for _, s := range steps {
			x = badge(r, t, x, s, mode(s), states[s], s == cur.Step() && len(f.Hops) > 0) + 1 + gap
		}
		return
	}
}

func badgeWidth(step, word string) int {
	w := len(step) + 1
	if word != "" {
		w += text.Width(word) + 2
	}
	return w
}

func badge(r ui.Region, t *theme, x int, s stage.Step, word string, st frame.State, here bool) int {
	g, gs := mark(t, st)
	ns, ws := t.Dim, t.Dim
	switch {
	case here && st == frame.Failed:
		ns, ws = t.BadgeFail, t.FailStrong
	case here && st != frame.Here:
		ns, ws = t.BadgeWait, t.Wait
	case here:
		ns, ws = t.Badge, t.NowStrong
	case st == frame.Done:
		ns, ws = t.Text, t.Text
	case st == frame.Todo:
		ns, ws = t.Line, t.Line
	}
	x = r.Text(x, 0, string(s), ns)
	if word != "" {
		if here {
			x = r.Text(r.Text(x, 0, " ", ns), 0, word, ns) // the whole badge
		} else {
			x = r.Text(x+1, 0, word, ws)
		}
		return r.Text(x+1, 0, g, gs)
	}
	return r.Text(x, 0, g, gs)
}

// Track draws all known hops as a line with the cursor on it; what went wrong is marked
// where it happened.
func Track(r ui.Region, t *theme, marks []frame.Mark, cursor int) {
	if r.W < 5 {
		return
	}
	w := r.W - 4
	n := len(marks)
	at := func(i int) int {
		if n <= 1 {
			return 2
		}
		return 2 + i*(w-1)/(n-1)
	}
	r.Text(1, 0, t.Glyph.TrackEndL, t.Line)
	r.Text(r.W-2, 0, t.Glyph.TrackEndR, t.Line)
	r.HLine(2, 0, w, t.Glyph.Track, t.Line)
	if cursor >= 0 && n > 0 {
		r.HLine(2, 0, at(cursor)-1, t.Glyph.TrackDone, t.Now)
	}
	for i, m := range marks {
		switch {
		case i > cursor && m.State == frame.Failed:
			// What lies ahead is not given away: the learner predicts first.
		case m.State == frame.Failed:
			r.Set(at(i), 0, t.Glyph.Failed, t.FailStrong)
		case m.Lap && i > 0 && i <= cursor:
			r.Set(at(i), 0, t.Glyph.Box.Cross, t.Now)
		}
	}
	if cursor >= 0 && n > 0 {
		st := t.NowStrong
		g := t.Glyph.Here
		if marks[min(cursor, n-1)].State == frame.Failed {
			st, g = t.FailStrong, t.Glyph.Failed
		}
		r.Set(at(min(cursor, n-1)), 0, g, st)
	} else {
		r.Set(1, 0, t.Glyph.Here, t.NowStrong)
	}
}
