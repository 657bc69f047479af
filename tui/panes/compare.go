package panes

import (
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

// Compare puts the run beside the one that it parted from: the stages that ended in
// another way or were not reached, in the order of the first run, and what was said where
// it went wrong.
func Compare(r ui.Region, t *theme, f *frame.Frame) int {
	if len(f.Twin) == 0 {
		return r.Rich(0, 0, r.W, f.Cat.T("compare.none"), t.Text, t.Strong, t.Code)
	}
	before, now := ends(f.Twin), ends(f.Hops)
	var differ []stage.ID
	alike := 0
	for _, id := range reached(f.Twin, f.Hops) {
		if ended(before, id) == ended(now, id) {
			alike++
			continue
		}
		differ = append(differ, id)
	}
	y := r.Rich(0, 0, r.W, f.Cat.T("compare.title"), t.Dim, t.Dim, t.Dim)
	y = r.Rich(0, y, r.W, f.Cat.T("compare.alike", "n", alike), t.Text, t.Strong, t.Code)
	if f.More || len(f.Hops) < f.Total {
		y = r.Rich(0, y, r.W, f.Cat.T("compare.more"), t.Wait, t.Wait, t.Wait)
	}
	if len(differ) == 0 {
		return y
	}
	was, is := f.Cat.T("compare.was"), f.Cat.T("compare.is")
	right := r.W - text.Width(is)
	left := right - 2 - text.Width(was)
	y++
	r.TextMax(0, y, left-2, f.Cat.T("compare.differ"), t.Text)
	r.Text(left, y, was, t.Dim)
	r.Text(right, y, is, t.Dim)
	y++
	for _, id := range differ {
		h, is := now[id]
		st := t.Dim
		if is && h.Outcome != trace.OK {
			st = t.Strong
		}
		x := r.Text(0, y, text.PadLeft(string(stage.StepOf(id)), 2)+" ", t.Key)
		r.TextMax(x, y, left-2-x, f.Cat.Stage(id), st)
		g, gs := mark(t, ended(before, id))
		r.Text(left, y, g, gs)
		g, gs = mark(t, ended(now, id))
		r.Text(right, y, g, gs)
		y++
		if is && h.Outcome != trace.OK {
			for i, l := range text.Wrap(firstOf(h.Message, h.Reason), max(r.W-5, 4)) {
				if i == 4 {
					break
				}
				r.Text(3, y, l, gs)
				y++
			}
		}
	}
	return y
}

func ended(ends map[stage.ID]trace.Hop, id stage.ID) frame.State {
	h, ok := ends[id]
	if !ok {
		return frame.Todo
	}
	return frame.Of(h.Outcome)
}

// ends returns the last hop at every stage.
func ends(hops []trace.Hop) map[stage.ID]trace.Hop {
	out := map[stage.ID]trace.Hop{}
	for _, h := range hops {
		out[h.Stage] = h
	}
	return out
}

// reached lists the stages of two runs in the order of the first, those of the second
// alone after it.
func reached(a, b []trace.Hop) []stage.ID {
	var out []stage.ID
	seen := map[stage.ID]bool{}
	for _, hops := range [][]trace.Hop{a, b} {
		for _, h := range hops {
			if !seen[h.Stage] {
				seen[h.Stage] = true
				out = append(out, h.Stage)
			}
		}
	}
	return out
}
