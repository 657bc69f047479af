package views

import (
	"regexp"
	"strings"

	"podwalk/tui/i18n"
	"podwalk/tui/text"
	"podwalk/tui/theme"
	"podwalk/tui/ui"
)

// linesMax is how many lines of output the kubectl pane keeps.
const linesMax = 2000

// Terminal is the kubectl pane: what was typed, what came back, and the line being
// typed.
type Terminal struct {
	Edit    ui.LineEdit
	Busy    bool
	lines   []termLine
	history []string
	at      int // position in the history; len(history) is the line being typed
	draft   string
	Scroll  int // lines up from the bottom
	hints   []string
}

type termLine struct {
	s    string
	kind uint8 // 0 output, 1 command, 2 error
}

// Echo shows a command as typed and keeps it in the history.
func (m *Terminal) Echo(line string) {
	m.add(line, 1)
	if n := len(m.history); n == 0 || m.history[n-1] != line {
		m.history = append(m.history, line)
	}
	m.at, m.draft, m.Scroll, m.hints = len(m.history), "", 0, nil
}

// Print adds output.
func (m *Terminal) Print(out string, failed bool) {
	k := uint8(0)
	if failed {
		k = 2
	}
	out = strings.TrimRight(out, "\n")
	if out == "" {
		return
	}
	for _, l := range strings.Split(out, "\n") {
		m.add(l, k)
	}
	m.Scroll = 0
}

func (m *Terminal) add(s string, kind uint8) {
	m.lines = append(m.lines, termLine{s, kind})
	if len(m.lines) > linesMax {
		m.lines = m.lines[len(m.lines)-linesMax:]
	}
}

// Clear empties the screen, not the history.
func (m *Terminal) Clear() { m.lines, m.Scroll = nil, 0 }

// History moves through what was typed before.
func (m *Terminal) History(n int) {
	if m.at == len(m.history) {
		m.draft = m.Edit.Value()
	}
	m.at = min(max(m.at+n, 0), len(m.history))
	if m.at == len(m.history) {
		m.Edit.Set(m.draft)
	} else {
		m.Edit.Set(m.history[m.at])
	}
}

// Complete takes the candidates for the last word: one is filled in, of several the
// common beginning, and they are listed.
func (m *Terminal) Complete(cands []string) {
	m.hints = nil
	before := m.Edit.Before()
	word := before[strings.LastIndexAny(before, " =")+1:]
	switch len(cands) {
	case 0:
	case 1:
		m.Edit.Insert(strings.TrimPrefix(cands[0], word) + " ")
	default:
		common := cands[0]
		for _, c := range cands[1:] {
			for !strings.HasPrefix(c, common) {
				common = common[:len(common)-1]
			}
		}
		if len(common) > len(word) {
			m.Edit.Insert(common[len(word):])
		}
		m.hints = cands
	}
}

// Draw draws the pane. Where a table of kubectl is too wide the gaps between its columns
// are narrowed, then its lines go on below, indented; other lines are wrapped.
func (m *Terminal) Draw(r ui.Region, t *theme.Theme, cat *i18n.Catalog, focused bool) {
	rows := r.H - 1
	hint := ""
	if focused && len(m.hints) > 0 {
		rows--
		hint = strings.Join(m.hints, "  ")
	}
	if len(m.lines) == 0 {
		r.Rich(0, 0, r.W, cat.T("terminal.welcome"), t.Dim, t.Dim, t.Code)
	}
	drawn := m.wrapped(r.W)
	first := max(len(drawn)-rows-m.Scroll, 0)
	y := 0
	for ; y < rows && first+y < len(drawn); y++ {
		l := drawn[first+y]
		st := t.Text
		switch l.kind {
		case 1:
			st = t.Strong
		case 2:
			st = t.Fail
		}
		r.TextMax(0, y, r.W, l.s, st)
	}
	if len(m.lines) == 0 {
		y = min(3, rows)
	}
	prompt := cat.T("terminal.prompt")
	if m.Busy {
		r.TextMax(0, y, r.W, prompt+cat.T("terminal.running"), t.Wait)
	} else {
		m.Edit.Draw(r, t, y, prompt, t.NowStrong, t.Text, focused)
	}
	if hint != "" {
		r.TextMax(0, r.H-1, r.W, hint, t.Dim)
	}
}

func (m *Terminal) wrapped(w int) []termLine {
	var out []termLine
	for i := 0; i < len(m.lines); {
		l := m.lines[i]
		switch {
		case l.kind == 1:
			for _, s := range text.Wrap("$ "+l.s, w) {
				out = append(out, termLine{s, 1})
			}
		case tableHead(l.s):
			j := i
			for j < len(m.lines) && m.lines[j].kind == 0 && m.lines[j].s != "" {
				j++
			}
			for _, l := range squeeze(m.lines[i:j], w) {
				out = append(out, folded(l, w)...)
			}
			i = j
			continue
		default:
			for _, s := range text.Wrap(narrowed(strings.ReplaceAll(l.s, "\t", "    "), w), w) {
				out = append(out, termLine{s, l.kind})
			}
		}
		i++
	}
	return out
}

var gap = regexp.MustCompile(`(\S) {3,}`)

// narrowed closes the gaps of a line that has to be wrapped anyway: its columns are lost.
func narrowed(s string, w int) string {
	if text.Width(s) <= w {
		return s
	}
	return gap.ReplaceAllString(s, "$1  ")
}

// folded breaks a table's line that is too wide, as a terminal does, but shows which
// lines go on.
func folded(l termLine, w int) []termLine {
	const indent = "  "
	out := []termLine{{text.Cut(l.s, w), l.kind}}
	rest := l.s[len(out[0].s):]
	for rest = strings.TrimLeft(rest, " "); rest != "" && w > len(indent); rest = strings.TrimLeft(rest, " ") {
		s := text.Cut(rest, w-len(indent))
		if s == "" {
			break
		}
		out = append(out, termLine{indent + s, l.kind})
		rest = rest[len(s):]
	}
	return out
}

// tableHead reports whether a line is the heading of one of kubectl's tables.
func tableHead(s string) bool {
	first, _, several := strings.Cut(s, "   ")
	return several && s == strings.ToUpper(s) && s[0] >= 'A' && s[0] <= 'Z' && !strings.Contains(first, ":")
}

// squeeze narrows the gaps between the columns of a table that is too wide: three
// spaces become two, then one. Columns stay aligned.
func squeeze(lines []termLine, w int) []termLine {
	rows := make([][]rune, len(lines))
	width := 0
	for i, l := range lines {
		rows[i] = []rune(l.s)
		width = max(width, len(rows[i]))
	}
	blank := func(x int) bool {
		for _, r := range rows {
			if x < len(r) && r[x] != ' ' {
				return false
			}
		}
		return true
	}
	keep := make([]bool, width)
	over := width - w
	for x := range keep {
		keep[x] = true
	}
	for pass := 0; pass < 2 && over > 0; pass++ {
		run := 0
		for x := 0; x < width && over > 0; x++ {
			if !blank(x) {
				run = 0
				continue
			}
			if !keep[x] {
				continue
			}
			if run++; run > 2-pass {
				keep[x] = false
				over--
			}
		}
	}
	out := make([]termLine, len(lines))
	for i, r := range rows {
		var b strings.Builder
		for x, c := range r {
			if keep[x] {
				b.WriteRune(c)
			}
		}
		out[i] = termLine{b.String(), lines[i].kind}
	}
	return out
}
