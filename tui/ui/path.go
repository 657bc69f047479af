package ui

import (
	"podwalk/tui/theme"
)

// Point is a place on a region.
type Point struct{ X, Y int }

// Side is one edge of a box.
type Side uint8

// The sides.
const (
	Left Side = iota
	Right
	Top
	Bottom
)

// Port returns the cell just outside a side of q, at a fraction (0…1) along it.
func (q Rect) Port(s Side, at float64) Point {
	along := func(n int) int { return min(max(int(at*float64(n-1)+0.5), 1), max(n-2, 0)) }
	switch s {
	case Left:
		return Point{q.X - 1, q.Y + along(q.H)}
	case Right:
		return Point{q.X + q.W, q.Y + along(q.H)}
	case Top:
		return Point{q.X + along(q.W), q.Y - 1}
	}
	return Point{q.X + along(q.W), q.Y + q.H}
}

// Route returns every cell from a (leaving by side sa) to b (entering by side sb), with
// at most two bends.
func Route(a Point, sa Side, b Point, sb Side) []Point {
	ha, hb := sa == Left || sa == Right, sb == Left || sb == Right
	var corners []Point
	switch {
	case ha && hb:
		mid := (a.X + b.X) / 2
		corners = []Point{{mid, a.Y}, {mid, b.Y}}
	case !ha && !hb:
		mid := (a.Y + b.Y) / 2
		corners = []Point{{a.X, mid}, {b.X, mid}}
	case ha:
		corners = []Point{{b.X, a.Y}}
	default:
		corners = []Point{{a.X, b.Y}}
	}
	path := []Point{a}
	for _, p := range append(corners, b) {
		path = append(path, straight(path[len(path)-1], p)...)
	}
	return path
}

// straight returns the cells after a up to b.
func straight(a, b Point) []Point {
	var out []Point
	for a != b {
		switch {
		case a.X < b.X:
			a.X++
		case a.X > b.X:
			a.X--
		case a.Y < b.Y:
			a.Y++
		default:
			a.Y--
		}
		out = append(out, a)
	}
	return out
}

// Edge draws a path with lines and bends. Heads are put at its ends where wanted.
func (r Region) Edge(g *theme.Glyphs, path []Point, st *theme.Style, headStart, headEnd bool) {
	f := g.Box
	for i, p := range path {
		var in, out Point
		if i > 0 {
			in = Point{p.X - path[i-1].X, p.Y - path[i-1].Y}
		}
		if i+1 < len(path) {
			out = Point{path[i+1].X - p.X, path[i+1].Y - p.Y}
		}
		switch {
		case i == 0:
			in = out
		case i+1 == len(path):
			out = in
		}
		s := bend(f, in, out)
		if i == 0 && headStart {
			s = arrow(g, Point{-out.X, -out.Y})
		}
		if i+1 == len(path) && headEnd {
			s = arrow(g, in)
		}
		r.Set(p.X, p.Y, s, st)
	}
}

func arrow(g *theme.Glyphs, d Point) string {
	switch {
	case d.X > 0:
		return g.Right
	case d.X < 0:
		return g.Left
	case d.Y < 0:
		return g.Up
	}
	return g.Down
}

func bend(f theme.Frame, in, out Point) string {
	switch {
	case in.X != 0 && out.X != 0:
		return f.H
	case in.Y != 0 && out.Y != 0:
		return f.V
	case in.X == 0 && in.Y == 0:
		return f.H
	}
	// A corner: it opens towards where we came from and where we go.
	left := in.X > 0 || out.X < 0
	up := in.Y > 0 || out.Y < 0
	switch {
	case left && up:
		return f.BR
	case left:
		return f.TR
	case up:
		return f.BL
	}
	return f.TL
}
