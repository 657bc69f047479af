package text

import "strings"

// Kind is the role of a stretch of text inside a paragraph.
type Kind uint8

// The roles.
const (
	Plain  Kind = iota
	Strong      // **strong**
	Code        // `code`
)

// Span is a stretch of one line in one role.
type Span struct {
	Text string
	Kind Kind
}

// Line is one wrapped line.
type Line []Span

// String returns the line without roles.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

const (
	closing = "，。、；：？！）」』》】〉〕…—·％,.;:?!)]}%”’"
	opening = "（「『《【〈〔“‘([{"
)

type cell struct {
	Grapheme
	kind Kind
}

// Wrap breaks s into lines of at most w cells. It breaks at spaces and between wide
// characters, keeps Latin words whole, never starts a line with closing punctuation nor
// ends one with an opening mark. A word wider than a line is broken. Newlines in s stay.
func Wrap(s string, w int) []string {
	var out []string
	for _, l := range wrapCells(plainCells(s, Plain), w) {
		out = append(out, l.String())
	}
	return out
}

// WrapRich is Wrap for text with `code` and **strong** in it.
func WrapRich(s string, w int) []Line { return wrapCells(parse(s), w) }

// Strip returns s without the marks of WrapRich.
func Strip(s string) string {
	var b strings.Builder
	for _, c := range parse(s) {
		b.WriteString(c.S)
	}
	return b.String()
}

func plainCells(s string, k Kind) []cell {
	var out []cell
	for i, part := range strings.Split(s, "\n") {
		if i > 0 {
			out = append(out, cell{Grapheme{"\n", 0}, k})
		}
		for _, g := range Graphemes(part) {
			out = append(out, cell{g, k})
		}
	}
	return out
}

func parse(s string) []cell {
	var out []cell
	for s != "" {
		i := strings.IndexAny(s, "`*")
		if i < 0 {
			break
		}
		mark, kind := "`", Code
		if s[i] == '*' {
			mark, kind = "**", Strong
		}
		rest := s[i:]
		if !strings.HasPrefix(rest, mark) {
			out = append(out, plainCells(s[:i+1], Plain)...)
			s = s[i+1:]
			continue
		}
		end := strings.Index(rest[len(mark):], mark)
		if end < 0 {
			break
		}
		out = append(out, plainCells(s[:i], Plain)...)
		out = append(out, plainCells(rest[len(mark):len(mark)+end], kind)...)
		s = rest[len(mark)*2+end:]
	}
	return append(out, plainCells(s, Plain)...)
}

// mayBreak reports whether a line may end after a and the next one begin with b.
func mayBreak(a, b cell) bool {
	if a.S == " " {
		return b.S != " "
	}
	if b.S == " " {
		return false
	}
	if a.W < 2 && b.W < 2 {
		return false
	}
	return !strings.Contains(closing, b.S) && !strings.Contains(opening, a.S)
}

func wrapCells(cells []cell, w int) []Line {
	if w < 1 {
		w = 1
	}
	var lines []Line
	start := 0
	for i := 0; i <= len(cells); i++ {
		if i == len(cells) || cells[i].S == "\n" {
			lines = append(lines, wrapParagraph(cells[start:i], w)...)
			start = i + 1
		}
	}
	return lines
}

func wrapParagraph(cells []cell, w int) []Line {
	if len(cells) == 0 {
		return []Line{nil}
	}
	var lines []Line
	for len(cells) > 0 {
		n := lineEnd(cells, w)
		lines = append(lines, spans(trim(cells[:n])))
		cells = cells[n:]
		for len(cells) > 0 && cells[0].S == " " {
			cells = cells[1:]
		}
	}
	return lines
}

// lineEnd returns how many cells the first line takes.
func lineEnd(cells []cell, w int) int {
	width, last := 0, 0
	for i, c := range cells {
		if i > 0 && mayBreak(cells[i-1], c) {
			last = i
		}
		if width+c.W > w && c.S != " " {
			if last > 0 {
				return last
			}
			return hardEnd(cells[:i])
		}
		width += c.W
	}
	return len(cells)
}

// hardEnd breaks a word that is wider than the line, after a separator where there is
// one in its second half.
func hardEnd(cells []cell) int {
	for i := len(cells); i > len(cells)/2 && i > 1; i-- {
		if strings.Contains("-/.,:=_", cells[i-1].S) {
			return i
		}
	}
	if len(cells) == 0 {
		return 1
	}
	return len(cells)
}

func trim(cells []cell) []cell {
	for len(cells) > 0 && cells[len(cells)-1].S == " " {
		cells = cells[:len(cells)-1]
	}
	return cells
}

func spans(cells []cell) Line {
	var out Line
	for i := 0; i < len(cells); {
		j := i
		var b strings.Builder
		for j < len(cells) && cells[j].kind == cells[i].kind {
			b.WriteString(cells[j].S)
			j++
		}
		out = append(out, Span{b.String(), cells[i].kind})
		i = j
	}
	return out
}
