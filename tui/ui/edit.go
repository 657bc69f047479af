package ui

import (
	"podwalk/tui/text"
	"podwalk/tui/theme"
)

// LineEdit is a one-line editor. The cursor is drawn, and counts characters, not bytes
// nor cells.
type LineEdit struct {
	runes []rune
	pos   int
}

// Value returns the text.
func (e *LineEdit) Value() string { return string(e.runes) }

// Before returns the text before the cursor.
func (e *LineEdit) Before() string { return string(e.runes[:e.pos]) }

// Set replaces the text and puts the cursor at its end.
func (e *LineEdit) Set(s string) { e.runes = []rune(s); e.pos = len(e.runes) }

// lineMax is how many characters a line may have: more than any command needs.
const lineMax = 64 << 10

// Insert types s at the cursor. A line that would become too long is left as it is, and
// Insert returns false.
func (e *LineEdit) Insert(s string) bool {
	if len(e.runes)+len(s) > lineMax {
		return false
	}
	ins := []rune(s)
	tail := append([]rune(nil), e.runes[e.pos:]...)
	e.runes = append(append(e.runes[:e.pos:e.pos], ins...), tail...)
	e.pos += len(ins)
	return true
}

// Backspace deletes the character before the cursor.
func (e *LineEdit) Backspace() {
	if e.pos > 0 {
		e.runes = append(e.runes[:e.pos-1:e.pos-1], e.runes[e.pos:]...)
		e.pos--
	}
}

// Delete deletes the character under the cursor.
func (e *LineEdit) Delete() {
	if e.pos < len(e.runes) {
		e.runes = append(e.runes[:e.pos:e.pos], e.runes[e.pos+1:]...)
	}
}

// Move moves the cursor by n characters.
func (e *LineEdit) Move(n int) { e.pos = min(max(e.pos+n, 0), len(e.runes)) }

// Home moves the cursor to the start, End to the end.
func (e *LineEdit) Home() { e.pos = 0 }

// End moves the cursor to the end.
func (e *LineEdit) End() { e.pos = len(e.runes) }

// KillBefore deletes everything before the cursor.
func (e *LineEdit) KillBefore() { e.runes = append([]rune(nil), e.runes[e.pos:]...); e.pos = 0 }

// KillAfter deletes everything after the cursor.
func (e *LineEdit) KillAfter() { e.runes = e.runes[:e.pos] }

// KillWord deletes the word before the cursor.
func (e *LineEdit) KillWord() {
	i := e.pos
	for i > 0 && e.runes[i-1] == ' ' {
		i--
	}
	for i > 0 && e.runes[i-1] != ' ' {
		i--
	}
	e.runes = append(e.runes[:i:i], e.runes[e.pos:]...)
	e.pos = i
}

// Draw draws prompt and text in row y with the cursor visible; a long text scrolls.
func (e *LineEdit) Draw(r Region, t *theme.Theme, y int, prompt string, ps, st *theme.Style, focused bool) {
	x := r.Text(0, y, prompt, ps)
	before, after := string(e.runes[:e.pos]), string(e.runes[e.pos:])
	room := r.W - x - 1
	if text.Width(before) > room {
		before = text.TruncateLeft(before, room)
	}
	x = r.Text(x, y, before, st)
	r.TextMax(x, y, r.W-x, after, st)
	if focused {
		under := r.Get(x, y)
		cs := t.Badge
		if cs.Open == "" && under == " " {
			under = "_"
		}
		r.Set(x, y, under, cs)
	}
}
