package ui

import (
	"strings"

	"podwalk/tui/text"
	"podwalk/tui/theme"
)

// Tabs draws labels in one row, the selected one marked by weight and an underline of
// its own; it returns the columns taken. Labels that do not fit are left out from the
// right, but never the selected one.
func Tabs(r Region, t *theme.Theme, labels []string, sel int) int {
	first := 0
	for first < sel && tabsWidth(labels[first:sel+1]) > r.W {
		first++
	}
	x := 0
	for i := first; i < len(labels); i++ {
		w := text.Width(labels[i])
		if i > sel && x+w > r.W {
			break
		}
		st := t.Dim
		if i == sel {
			st = t.Select
			x = r.Text(x, 0, " "+labels[i]+" ", st)
		} else {
			x = r.Text(x, 0, " "+labels[i]+" ", st)
		}
	}
	return x
}

func tabsWidth(labels []string) int {
	n := 0
	for _, l := range labels {
		n += text.Width(l) + 2
	}
	return n
}

// KeyHelp is one key and what it does, for a key bar.
type KeyHelp struct {
	Key, Does string
	Off       bool // shown faint
}

// KeyBar draws keys and their words in one row, as many as fit.
func KeyBar(r Region, t *theme.Theme, keys []KeyHelp) {
	x := 1
	for i, k := range keys {
		w := text.Width(k.Key)
		if k.Does != "" {
			w += 1 + text.Width(k.Does)
		}
		if x+w > r.W {
			break
		}
		ks, ds := t.Key, t.Dim
		if k.Off {
			ks, ds = t.Line, t.Line
		}
		x = r.Text(x, 0, k.Key, ks)
		if k.Does != "" {
			x = r.Text(x+1, 0, k.Does, ds)
		}
		if i+1 < len(keys) {
			x += 2
		}
	}
}

// Bar draws a proportion in w cells.
func Bar(r Region, t *theme.Theme, x, y, w int, part, whole float64, st *theme.Style) int {
	n := 0
	if whole > 0 {
		n = min(max(int(part/whole*float64(w)+0.5), 0), w)
	}
	if n == 0 && part > 0 && w > 0 {
		n = 1
	}
	r.HLine(x, y, n, t.Glyph.Full, st)
	r.HLine(x+n, y, w-n, t.Glyph.Empty, t.Line)
	return x + w
}

// Item is a line of a list.
type Item struct {
	Label, Note string
	Off         bool
	Head        bool // a heading: not selectable
}

// List draws items with the selected one marked, scrolled so that it is visible.
func List(r Region, t *theme.Theme, items []Item, sel int) {
	first := 0
	if len(items) > r.H {
		first = min(max(sel-r.H/2, 0), len(items)-r.H)
	}
	for y := 0; y < r.H && first+y < len(items); y++ {
		it := items[first+y]
		st, note := t.Text, t.Dim
		switch {
		case it.Head:
			r.TextMax(0, y, r.W, it.Label, t.Strong)
			continue
		case first+y == sel:
			r.Fill(Rect{0, y, r.W, 1}, " ", t.Select)
			r.Text(0, y, t.Glyph.Select, t.Select)
			st, note = t.Select, t.Select
		case it.Off:
			st = t.Dim
		}
		nw := min(text.Width(it.Note), r.W/2)
		r.TextMax(2, y, r.W-4-nw, it.Label, st)
		if it.Note != "" {
			r.TextRight(r.W-1, y, text.Truncate(it.Note, nw), note)
		}
	}
	if first > 0 {
		r.TextRight(r.W, 0, t.Glyph.Up, t.Dim)
	}
	if first+r.H < len(items) {
		r.TextRight(r.W, r.H-1, t.Glyph.Down, t.Dim)
	}
}

// Rule draws a line across, with tees where other lines meet it.
func Rule(r Region, t *theme.Theme, y int, tees map[int]string) {
	r.HLine(0, y, r.W, t.Glyph.Box.H, t.Line)
	for x, s := range tees {
		r.Set(x, y, s, t.Line)
	}
}

// Overlay draws a framed dialogue of at most w×h in the middle of r and returns its
// inside.
func Overlay(r Region, t *theme.Theme, w, h int, title string) Region {
	w, h = min(w, r.W), min(h, r.H)
	q := Rect{(r.W - w) / 2, (r.H - h) / 2, w, h}
	r.Fill(q, " ", nil)
	r.TitledBox(q, t.Glyph.Box, t.Now, title, t.Strong)
	return r.Sub(q.X+2, q.Y+1, q.W-4, q.H-2)
}

// Join puts short words after one another with a separator, as many as fit in w.
func Join(w int, sep string, words ...string) string {
	var b strings.Builder
	n := 0
	for _, s := range words {
		if s == "" {
			continue
		}
		add := text.Width(s)
		if n > 0 {
			add += text.Width(sep)
		}
		if n+add > w {
			break
		}
		if n > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
		n += add
	}
	return b.String()
}
