package panes

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

// The doors of the corridor, in order.
var doors = []stage.ID{
	stage.Authentication, stage.Authorization, stage.Decode, stage.MutatingAdmission,
	stage.SchemaValidation, stage.ValidatingAdmission, stage.Persist,
}

// drawCorridor draws the API server's gates as doors from left to right. A refused
// request stops at its door, and the answer runs back below.
func drawCorridor(r ui.Region, s *scene, b box) {
	r = s.r.At(b.q.Inset(1)) // every column counts here
	t := s.t
	states := s.f.Stages()
	gap := 1
	w := min((r.W-gap*(len(doors)-1))/len(doors), 14)
	if w < 4 {
		drawGateLine(r, s, box{})
		return
	}
	total := w*len(doors) + gap*(len(doors)-1)
	x := (r.W - total) / 2
	y := 0
	if r.H >= 7 {
		y = 1
	}
	refused := -1
	for i, id := range doors {
		st := states[id]
		fs, ls, frm := t.Line, t.Dim, t.Glyph.Square
		switch st {
		case frame.Here:
			fs, ls, frm = t.Now, t.Strong, t.Glyph.Heavy
		case frame.Failed:
			fs, ls, frm = t.Fail, t.Strong, t.Glyph.Heavy
			refused = i
		case frame.Done:
			ls = t.Text
		}
		q := ui.Rect{X: x, Y: y, W: w, H: 4}
		r.Box(q, frm, fs)
		r.TextCenter(x+1, y+1, w-2, s.f.Cat.StageShort(id), ls)
		g, gs := mark(t, st)
		r.TextCenter(x+1, y+2, w-2, g, gs)
		if i+1 < len(doors) {
			line := t.Line
			if states[doors[i+1]] != frame.Todo {
				line = t.OK
			}
			r.HLine(x+w, y+2, gap, t.Glyph.Box.H, line)
		}
		if h, ok := s.f.LastAt(id); ok && r.H > y+4 {
			st := t.Dim
			if h.Bad() {
				st = t.Fail
			}
			wy, ww := y+4, w+2*gap-1
			if r.H > y+6 { // two rows in turn: longer words have room
				wy, ww = y+4+i%2, 2*w-1
			}
			word := text.Truncate(doorWord(h), ww)
			wx := min(max(x+(w-text.Width(word))/2, 1), r.W-text.Width(word)-1)
			r.Text(wx, wy, word, st)
		}
		x += w + gap
	}
	if refused >= 0 && r.H > y+5 {
		s.answerBack(r, (r.W-total)/2, (r.W-total)/2+refused*(w+gap)+w/2, min(y+6, r.H-1))
	}
}

// doorWord is what one gate has to say in a word.
func doorWord(h trace.Hop) string {
	if a, ok := h.Detail.(trace.Admission); ok {
		n := 0
		last := ""
		for _, p := range a.Plugins {
			switch p.Verdict {
			case "denied":
				return p.Plugin
			case "changed":
				n++
				last = p.Plugin
			}
		}
		if n == 1 {
			return last
		}
		if n > 1 {
			return fmt.Sprintf("+%d", n)
		}
	}
	if h.Bad() && h.Reason != "" {
		return h.Reason
	}
	if h.Revision > 0 && h.Stage == stage.Persist {
		return fmt.Sprintf("rev %d", h.Revision)
	}
	return firstOf(h.Reason, h.Message)
}

// answerBack draws the HTTP answer that a refused client gets.
func (s *scene) answerBack(r ui.Region, x0, x1, y int) {
	t := s.t
	label := " " + s.answer() + " "
	r.Set(x1, y, t.Glyph.Box.BR, t.Fail)
	r.HLine(x0+1, y, x1-x0-1, t.Glyph.Box.H, t.Fail)
	r.Set(x0, y, t.Glyph.Left, t.Fail)
	if w := x1 - x0 - 4; text.Width(label) <= w {
		r.Text(x0+2+(w-text.Width(label))/2, y, label, t.FailStrong)
	} else {
		r.TextMax(x1+2, y, r.W-x1-2, label, t.FailStrong)
	}
}

func (s *scene) answer() string {
	code := 0
	if h, _, ok := frame.Last[trace.HTTP](s.f, func(h trace.Hop) bool { return true }); ok {
		code = h.Code
	}
	if code == 0 {
		switch s.hop.Stage {
		case stage.Authentication:
			code = 401
		case stage.SchemaValidation:
			code = 422
		case stage.Decode, stage.Request:
			code = 400
		default:
			code = 403
		}
	}
	return fmt.Sprintf("%d %s", code, http.StatusText(code))
}

// drawRequest says what is asked for: the request's first line and the user.
func drawRequest(r ui.Region, s *scene, _ box) {
	t := s.t
	h, hop, ok := frame.Last[trace.HTTP](s.f, func(h trace.Hop) bool { return h.Stage == stage.Request })
	if !ok {
		hop, ok = s.f.LastAt(stage.Request)
		if !ok {
			return
		}
		h = trace.HTTP{Method: hop.Verb, Path: hop.Object.String()}
	}
	x := r.Text(0, 0, h.Method+" ", t.Strong)
	path, _, _ := strings.Cut(h.Path, "?")
	for i, l := range text.Wrap(path, r.W-x) {
		if i < 2 {
			r.TextMax(x, i, r.W-x, l, t.Code)
		}
	}
	if n := s.f.Lap(); n > 1 && r.H > 2 {
		r.TextMax(0, 2, r.W, s.f.Cat.T("box.lap", "n", n)+" "+t.Glyph.Dot+" "+strings.TrimSuffix(strings.ToLower(hop.Object.Kind)+"/"+hop.Object.Name, "/"), t.Dim)
	} else if h.User != "" && r.H > 2 {
		r.TextMax(0, 2, r.W, s.f.Cat.T("request.user")+" "+h.User, t.Dim)
	}
}

// drawObject shows the object as it is now, what the hop added in front.
func drawObject(r ui.Region, s *scene, _ box) {
	before, after := s.f.ObjectChange()
	diffs := slices.DeleteFunc(frame.Compare(before, after), func(d frame.Diff) bool { return dull(d.Path) })
	slices.SortStableFunc(diffs, func(a, b frame.Diff) int { return rank(a.Path) - rank(b.Path) })
	if len(diffs) == 0 {
		// Between two changes the object is shown as it was last changed.
		if c, _, ok := frame.Last[trace.Change](s.f, nil); ok && c.After != nil {
			for i, l := range interesting(frame.Leaves(c.After)) {
				if i >= r.H {
					break
				}
				r.TextMax(2, i, r.W-2, l.Path+": "+l.Value, s.t.Dim)
			}
		}
		return
	}
	DrawDiffs(r, s.t, s.f, diffs, 0)
}

// interesting leaves out what every object has and nobody asks for.
func interesting(ls []frame.Leaf) []frame.Leaf {
	var out []frame.Leaf
	for _, l := range ls {
		if !dull(l.Path) {
			out = append(out, l)
		}
	}
	return out
}

// rank puts what the learner wrote before what the cluster noted.
func rank(path string) int {
	for i, p := range []string{"metadata.name", "spec.", "data.", "status."} {
		if strings.HasPrefix(path, p) && path != "metadata.namespace" {
			return i
		}
	}
	return 9
}

// dull fields are set on every object and tell a learner nothing here.
func dull(path string) bool {
	for _, p := range []string{"apiVersion", "kind", "metadata.creationTimestamp", "metadata.generation", "metadata.generateName", "metadata.resourceVersion", "metadata.uid"} {
		if path == p {
			return true
		}
	}
	return strings.HasPrefix(path, "metadata.managedFields")
}

// DrawDiffs lists changed fields, one a line, and returns the row after them.
func DrawDiffs(r ui.Region, t *theme, f *frame.Frame, diffs []frame.Diff, y int) int {
	for i, d := range diffs {
		if y >= r.H-1 && i < len(diffs)-1 {
			r.TextMax(0, y, r.W, "  "+f.Cat.T("object.more", "n", len(diffs)-i), t.Dim)
			return y + 1
		}
		sign, st := "+", t.Add
		switch {
		case d.New == "":
			sign, st = "-", t.Del
		case d.Old != "":
			sign, st = "~", t.Changed
		}
		x := r.Text(0, y, sign+" ", st)
		path := d.Path
		if w := r.W - x - 12; text.Width(path) > w && w > 10 {
			path = text.TruncateLeft(path, w)
		}
		x = r.TextMax(x, y, r.W-x, path+": ", t.Text)
		v := d.New
		if v == "" {
			v = d.Old
		}
		if d.Old != "" && d.New != "" && text.Width(d.Old)+text.Width(d.New)+4 <= r.W-x {
			x = r.Text(x, y, d.Old+" "+t.Glyph.ArrowRight+" ", t.Dim)
		}
		r.TextMax(x, y, r.W-x, v, st)
		y++
	}
	return y
}
