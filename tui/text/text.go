// Package text is the only place that measures, cuts, pads and wraps text for the
// screen. Widths are those of a terminal that draws ambiguous characters narrow,
// whatever the locale says: box drawing and arrows are one cell, Chinese is two.
//
// Text here is plain: no escape sequences. Styles are put on by tui/ui when the text
// already has its place.
package text

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/mattn/go-runewidth"
)

var narrow = displaywidth.Options{EastAsianWidth: false}

// init makes libraries that measure with go-runewidth agree with us in a Chinese
// locale too.
func init() {
	runewidth.DefaultCondition.EastAsianWidth = false
	runewidth.EastAsianWidth = false
}

// Ellipsis marks cut text.
const Ellipsis = "…"

// Width returns the number of cells that s takes.
func Width(s string) int {
	if ascii(s) {
		return len(s)
	}
	return narrow.String(s)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// Grapheme is one user-perceived character and its width: 0, 1 or 2.
type Grapheme struct {
	S string
	W int
}

// Graphemes takes s apart. Control characters come out as nothing; a tab as one space.
func Graphemes(s string) []Grapheme {
	out := make([]Grapheme, 0, len(s))
	g := narrow.StringGraphemes(s)
	for g.Next() {
		v, w := g.Value(), g.Width()
		switch {
		case v == "\t":
			v, w = " ", 1
		case w == 0:
			continue
		}
		out = append(out, Grapheme{v, w})
	}
	return out
}

// Truncate cuts s to at most w cells; where something is cut the last cell is an
// ellipsis.
func Truncate(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	return Cut(s, w-1) + Ellipsis
}

// Cut cuts s to at most w cells without a mark.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	var b strings.Builder
	n := 0
	for _, g := range Graphemes(s) {
		if n+g.W > w {
			break
		}
		n += g.W
		b.WriteString(g.S)
	}
	return b.String()
}

// TruncateLeft keeps the end of s: "…aller-manager".
func TruncateLeft(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	gs := Graphemes(s)
	n, i := 1, len(gs)
	for i > 0 && n+gs[i-1].W <= w {
		i--
		n += gs[i].W
	}
	var b strings.Builder
	b.WriteString(Ellipsis)
	for _, g := range gs[i:] {
		b.WriteString(g.S)
	}
	return b.String()
}

// Pad adds spaces on the right until s is w cells wide; it does not cut.
func Pad(s string, w int) string {
	if n := w - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// PadLeft adds spaces on the left until s is w cells wide; it does not cut.
func PadLeft(s string, w int) string {
	if n := w - Width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// Fit makes s exactly w cells wide: cut with an ellipsis, or padded.
func Fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return Pad(Truncate(s, w), w)
}

// First returns the first of the candidates that fits into w cells, else the last one,
// cut. Labels come long and short.
func First(w int, candidates ...string) string {
	for _, c := range candidates {
		if Width(c) <= w {
			return c
		}
	}
	if len(candidates) == 0 {
		return ""
	}
	return Truncate(candidates[len(candidates)-1], w)
}
