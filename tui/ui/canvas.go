// Package ui holds the dumb widgets: a canvas of cells that is always exactly as wide
// as it was asked to be, and what is drawn on it (boxes, edges, tabs, bars, lists,
// tables). Nothing here knows what a Pod is.
package ui

import (
	"strings"

	"podwalk/tui/text"
	"podwalk/tui/theme"
)

// Canvas is a grid of terminal cells. A wide character takes two of them; when one half
// is overwritten, the other becomes a space.
type Canvas struct {
	W, H  int
	cells []cell
}

type cell struct {
	s    string // "" is a space
	st   *theme.Style
	cont bool // right half of the wide character before
}

// NewCanvas returns an empty canvas.
func NewCanvas(w, h int) *Canvas {
	w, h = max(w, 0), max(h, 0)
	return &Canvas{W: w, H: h, cells: make([]cell, w*h)}
}

func (c *Canvas) put(x, y int, s string, w int, st *theme.Style) {
	i := y*c.W + x
	c.release(i)
	if w == 2 {
		c.release(i + 1)
		c.cells[i+1] = cell{"", st, true}
	}
	c.cells[i] = cell{s, st, false}
}

// release breaks up the wide character of which cell i is a half.
func (c *Canvas) release(i int) {
	if c.cells[i].cont {
		c.cells[i-1].s = ""
	}
	if i+1 < len(c.cells) && c.cells[i+1].cont && i%c.W != c.W-1 {
		c.cells[i+1] = cell{"", c.cells[i+1].st, false}
	}
}

// Translate replaces single characters everywhere: what the ASCII glyph set needs for
// characters that stand in texts.
func (c *Canvas) Translate(to map[string]string) {
	for i := range c.cells {
		if s, ok := to[c.cells[i].s]; ok {
			c.cells[i].s = s
		}
	}
}

// Lines returns the rows, each exactly W cells wide, with styles.
func (c *Canvas) Lines() []string {
	out := make([]string, c.H)
	var b strings.Builder
	for y := range c.H {
		b.Reset()
		var cur *theme.Style
		for _, cl := range c.cells[y*c.W : (y+1)*c.W] {
			if cl.cont {
				continue
			}
			s := cl.s
			if s == "" {
				s = " "
			}
			if cl.st != cur {
				if cur != nil {
					b.WriteString(cur.Close)
				}
				cur = cl.st
				if cur != nil {
					b.WriteString(cur.Open)
				}
			}
			b.WriteString(s)
		}
		if cur != nil {
			b.WriteString(cur.Close)
		}
		out[y] = b.String()
	}
	return out
}

// String returns the rows joined by newlines.
func (c *Canvas) String() string { return strings.Join(c.Lines(), "\n") }

// PlainLines returns the rows without styles.
func (c *Canvas) PlainLines() []string {
	out := make([]string, c.H)
	var b strings.Builder
	for y := range c.H {
		b.Reset()
		for _, cl := range c.cells[y*c.W : (y+1)*c.W] {
			switch {
			case cl.cont:
			case cl.s == "":
				b.WriteByte(' ')
			default:
				b.WriteString(cl.s)
			}
		}
		out[y] = b.String()
	}
	return out
}

// Rect is a rectangle of cells.
type Rect struct{ X, Y, W, H int }

// In reports whether the point lies in r.
func (r Rect) In(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }

// Inset returns r made smaller by n on each side.
func (r Rect) Inset(n int) Rect { return Rect{r.X + n, r.Y + n, max(r.W-2*n, 0), max(r.H-2*n, 0)} }

// Region is a window onto a canvas with its own origin. Whatever is drawn outside of it
// is cut off.
type Region struct {
	c    *Canvas
	x, y int // of the origin on the canvas
	W, H int
	clip Rect
}

// All returns the region that is the whole canvas.
func (c *Canvas) All() Region { return Region{c, 0, 0, c.W, c.H, Rect{0, 0, c.W, c.H}} }

// Sub returns a part of r, cut to r.
func (r Region) Sub(x, y, w, h int) Region {
	w, h = max(w, 0), max(h, 0)
	ax, ay := r.x+x, r.y+y
	x0, y0 := max(ax, r.clip.X), max(ay, r.clip.Y)
	x1, y1 := min(ax+w, r.clip.X+r.clip.W), min(ay+h, r.clip.Y+r.clip.H)
	return Region{r.c, ax, ay, w, h, Rect{x0, y0, max(x1-x0, 0), max(y1-y0, 0)}}
}

// At is Sub for a rectangle.
func (r Region) At(q Rect) Region { return r.Sub(q.X, q.Y, q.W, q.H) }

// Set draws one character.
func (r Region) Set(x, y int, s string, st *theme.Style) { r.Text(x, y, s, st) }

// Get returns the character at a place, " " for none.
func (r Region) Get(x, y int) string {
	if !r.clip.In(r.x+x, r.y+y) {
		return " "
	}
	cl := r.c.cells[(r.y+y)*r.c.W+r.x+x]
	if cl.s == "" {
		return " "
	}
	return cl.s
}

// Text draws s in one row and returns the column after it, cut off or not.
func (r Region) Text(x, y int, s string, st *theme.Style) int {
	ay := r.y + y
	visible := ay >= r.clip.Y && ay < r.clip.Y+r.clip.H
	for _, g := range text.Graphemes(s) {
		ax := r.x + x
		if visible && ax >= r.clip.X && ax+g.W <= r.clip.X+r.clip.W {
			if g.S == " " {
				g.S = ""
			}
			r.c.put(ax, ay, g.S, g.W, st)
		}
		x += g.W
	}
	return x
}

// TextMax draws s cut to w cells with an ellipsis and returns the column after it.
func (r Region) TextMax(x, y, w int, s string, st *theme.Style) int {
	return r.Text(x, y, text.Truncate(s, w), st)
}

// TextRight draws s so that it ends before column x.
func (r Region) TextRight(x, y int, s string, st *theme.Style) int {
	left := x - text.Width(s)
	r.Text(left, y, s, st)
	return left
}

// TextCenter draws s in the middle of w cells that begin at x.
func (r Region) TextCenter(x, y, w int, s string, st *theme.Style) {
	s = text.Truncate(s, w)
	r.Text(x+(w-text.Width(s))/2, y, s, st)
}

// Fill fills a rectangle with one character.
func (r Region) Fill(q Rect, s string, st *theme.Style) {
	for y := q.Y; y < q.Y+q.H; y++ {
		r.Text(q.X, y, strings.Repeat(s, max(q.W, 0)), st)
	}
}

// Clear empties the region.
func (r Region) Clear() { r.Fill(Rect{0, 0, r.W, r.H}, " ", nil) }

// HLine draws a horizontal line.
func (r Region) HLine(x, y, w int, s string, st *theme.Style) {
	if w > 0 {
		r.Text(x, y, strings.Repeat(s, w), st)
	}
}

// VLine draws a vertical line.
func (r Region) VLine(x, y, h int, s string, st *theme.Style) {
	for i := range max(h, 0) {
		r.Text(x, y+i, s, st)
	}
}

// Box draws a frame along the edge of q.
func (r Region) Box(q Rect, f theme.Frame, st *theme.Style) {
	if q.W < 2 || q.H < 2 {
		return
	}
	r.Text(q.X, q.Y, f.TL+strings.Repeat(f.H, q.W-2)+f.TR, st)
	for y := q.Y + 1; y < q.Y+q.H-1; y++ {
		r.Text(q.X, y, f.V, st)
		r.Text(q.X+q.W-1, y, f.V, st)
	}
	r.Text(q.X, q.Y+q.H-1, f.BL+strings.Repeat(f.H, q.W-2)+f.BR, st)
}

// TitledBox is Box with a title in its upper edge.
func (r Region) TitledBox(q Rect, f theme.Frame, st *theme.Style, title string, ts *theme.Style) {
	r.Box(q, f, st)
	if title != "" && q.W >= 6 {
		t := text.Truncate(title, q.W-5)
		r.Text(q.X+1, q.Y, " ", st)
		x := r.Text(q.X+2, q.Y, t, ts)
		r.Text(x, q.Y, " ", st)
	}
}

// Rich draws wrapped rich text and returns the row after it. Rows before skip and past
// the region are not drawn but counted.
func (r Region) Rich(x, y, w int, s string, plain, strong, code *theme.Style) int {
	for _, line := range text.WrapRich(s, w) {
		cx := x
		for _, sp := range line {
			st := plain
			switch sp.Kind {
			case text.Strong:
				st = strong
			case text.Code:
				st = code
			}
			cx = r.Text(cx, y, sp.Text, st)
		}
		y++
	}
	return y
}

// Blit copies rows y0… of src onto r: scrolling.
func (r Region) Blit(src *Canvas, y0 int) {
	for y := 0; y < r.H && y0+y < src.H; y++ {
		if y0+y < 0 {
			continue
		}
		for x := 0; x < src.W && x < r.W; x++ {
			cl := src.cells[(y0+y)*src.W+x]
			if cl.cont || !r.clip.In(r.x+x, r.y+y) {
				continue
			}
			w := 1
			if x+1 < src.W && src.cells[(y0+y)*src.W+x+1].cont {
				w = 2
			}
			if r.clip.In(r.x+x+w-1, r.y+y) {
				r.c.put(r.x+x, r.y+y, cl.s, w, cl.st)
			}
		}
	}
}
