package views

import (
	"strings"

	"podwalk/engine/stage"
	"podwalk/tui/i18n"
	"podwalk/tui/text"
	"podwalk/tui/theme"
	"podwalk/tui/ui"
)

// HelpGroup is a headed list of keys.
type HelpGroup struct {
	Title string
	Keys  []ui.KeyHelp
}

// Help draws every key, in columns.
func Help(r ui.Region, t *theme.Theme, cat *i18n.Catalog, groups []HelpGroup) {
	rows := 0
	for _, g := range groups {
		rows += len(g.Keys) + 2
	}
	cols := 2
	colW := 34
	if r.W < 76 {
		colW = 28
	}
	h := min(rows/cols+6, r.H)
	in := ui.Overlay(r, t, cols*colW+4, h, cat.T("help.title"))
	x, y := 0, 1
	for _, g := range groups {
		if x == 0 && y-1 >= rows/cols {
			x, y = x+colW, 1
		}
		in.Text(x, y, g.Title, t.Dim)
		y++
		for _, k := range g.Keys {
			if y >= in.H {
				break
			}
			in.Text(x, y, text.PadLeft(k.Key, 9), t.Key)
			in.TextMax(x+11, y, colW-12, k.Does, t.Text)
			y++
		}
		y++
	}
}

// FaultItem is a line of the fault palette.
type FaultItem struct {
	ID       string
	Step     stage.Step
	Title    string
	Symptom  string
	Rewrites bool // the workload is written again
}

// Faults is the palette from which a fault is injected: type to search.
type Faults struct {
	Items []FaultItem
	Edit  ui.LineEdit
	Sel   int
}

// Matches returns the items that fit what was typed.
func (p *Faults) Matches() []FaultItem {
	words := strings.Fields(strings.ToLower(p.Edit.Value()))
	var out []FaultItem
	for _, it := range p.Items {
		hay := strings.ToLower(it.ID + " " + it.Title + " " + it.Symptom)
		ok := true
		for _, w := range words {
			ok = ok && strings.Contains(hay, w)
		}
		if ok {
			out = append(out, it)
		}
	}
	return out
}

// Move moves the selection.
func (p *Faults) Move(n int) {
	p.Sel = min(max(p.Sel+n, 0), max(len(p.Matches())-1, 0))
}

// Chosen returns the selected item.
func (p *Faults) Chosen() (FaultItem, bool) {
	m := p.Matches()
	if p.Sel >= len(m) {
		return FaultItem{}, false
	}
	return m[p.Sel], true
}

// Draw draws the palette.
func (p *Faults) Draw(r ui.Region, t *theme.Theme, cat *i18n.Catalog) {
	in := ui.Overlay(r, t, min(r.W-4, 92), min(r.H-4, max(len(p.Items)+7, 12)), cat.T("fault.title"))
	p.Edit.Draw(in, t, 0, cat.T("fault.search")+" ", t.Dim, t.Text, true)
	in.HLine(0, 1, in.W, t.Glyph.Box.H, t.Line)
	m := p.Matches()
	if len(m) == 0 {
		in.TextMax(0, 2, in.W, cat.T("fault.none"), t.Dim)
	}
	rows := in.H - 5
	first := min(max(p.Sel-rows/2, 0), max(len(m)-rows, 0))
	for y := 0; y < rows && first+y < len(m); y++ {
		it := m[first+y]
		st, ks := t.Text, t.Key
		if first+y == p.Sel {
			in.Fill(ui.Rect{X: 0, Y: 2 + y, W: in.W, H: 1}, " ", t.Select)
			in.Text(0, 2+y, t.Glyph.Select, t.Select)
			st, ks = t.Select, t.Select
		}
		in.Text(2, 2+y, text.PadLeft(string(it.Step), 2), ks)
		in.TextMax(6, 2+y, in.W-7, it.Title, st)
	}
	if it, ok := p.Chosen(); ok {
		y := in.H - 3
		in.HLine(0, y, in.W, t.Glyph.Box.H, t.Line)
		for i, l := range text.Wrap(it.Symptom, in.W-1) {
			if i < 2 {
				in.Text(0, y+1+i, l, t.Dim)
			}
		}
	}
}
