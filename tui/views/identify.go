package views

import (
	"fmt"

	"podwalk/engine/stage"
	"podwalk/tui/frame"
	"podwalk/tui/i18n"
	"podwalk/tui/text"
	"podwalk/tui/theme"
	"podwalk/tui/ui"
)

// Exercise is a drill as the player sees it; the exercises implement it.
type Exercise interface {
	Title(l i18n.Lang) string
	// Kind is "identify" or "inject".
	Kind() string
	// Task says what is asked.
	Task(l i18n.Lang) string
	// Evidence is what the user sees at first: commands with their output.
	Evidence() []Shown
	// Answer takes the stage that the learner points at.
	Answer(id stage.ID) Verdict
	// Check says for an inject exercise whether the run now fails as asked.
	Check() (Verdict, bool)
	// Hint reveals one more hint.
	Hint(l i18n.Lang) (hint string, left int)
	HintsLeft() int
}

// Shown is a command and its output.
type Shown struct{ Command, Output string }

// Verdict is what is said about an answer.
type Verdict struct {
	Right    bool
	Points   int // of 100
	Distance int // stages between the answer and the truth
	Said     stage.ID
	Truth    stage.ID
	Why      map[i18n.Lang]string // for the answer given
	Look     map[i18n.Lang]string // how it is seen, and Mend: how it is put right
	Mend     map[i18n.Lang]string
	Evidence string // the line that decides
	Hop      int    // index of the deciding hop, -1 for none
}

// Picker is the step and stage picker.
type Picker struct {
	Step  int // index into stage.Steps()
	Fine  bool
	Stage int // index into the step's stages
	Cols  int
}

// Stages returns the stages of the step that is marked.
func (p *Picker) Stages() []stage.ID {
	var out []stage.ID
	for _, s := range stage.All() {
		if s.Step == stage.Steps()[p.Step] {
			out = append(out, s.ID)
		}
	}
	return out
}

// Move moves the mark by columns and rows.
func (p *Picker) Move(dx, dy int) {
	if p.Fine {
		p.Stage = min(max(p.Stage+dx+dy, 0), len(p.Stages())-1)
		return
	}
	n := len(stage.Steps())
	p.Step = min(max(p.Step+dx+dy*max(p.Cols, 1), 0), n-1)
}

// Enter goes to the step's stages, or answers: the second result is true with an answer.
// Also a step with one stage shows it first: an answer counts, and is given on purpose.
func (p *Picker) Enter() (stage.ID, bool) {
	if !p.Fine {
		p.Fine, p.Stage = true, 0
		return "", false
	}
	return p.Stages()[p.Stage], true
}

// Back leaves the finer stages; false if there was nothing to leave.
func (p *Picker) Back() bool {
	was := p.Fine
	p.Fine = false
	return was
}

// Identify is the screen "where did it stop?".
type Identify struct {
	Cat    *i18n.Catalog
	Ex     Exercise
	Picker *Picker
	Term   *Terminal
	Typing bool     // the terminal has the keyboard
	Hints  []string // that were given
	Keys   []ui.KeyHelp
}

// typingWidthMin is how wide the terminal must be for kubectl's usual tables.
const typingWidthMin = 76

// Draw draws what the user sees on the left, the picker on the right (or below).
func (v *Identify) Draw(r ui.Region, t *theme.Theme) {
	x := r.Text(1, 0, "podwalk", t.Brand)
	r.TextMax(x+2, 0, r.W-x-3, v.Ex.Title(v.Cat.Lang), t.Text)
	pw := min(max(r.W*36/100, 36), 56)
	split := r.W - pw - 1
	if v.Typing && split < typingWidthMin { // the table that is asked for wants the room
		split = r.W
	}
	ui.Rule(r, t, 1, map[int]string{split: t.Glyph.Box.TeeD})
	ui.Rule(r, t, r.H-2, map[int]string{split: t.Glyph.Box.TeeU})
	r.VLine(split, 2, r.H-4, t.Glyph.Box.V, t.Line)
	ui.KeyBar(r.Sub(0, r.H-1, r.W, 1), t, v.Keys)
	left := r.Sub(1, 2, split-2, r.H-4)
	ts := t.Dim
	if v.Typing {
		ts = t.NowStrong
	}
	left.TextMax(0, 0, left.W, v.Cat.T("identify.sees"), ts)
	v.Term.Draw(left.Sub(0, 2, left.W, left.H-2), t, v.Cat, v.Typing)
	if split == r.W {
		return
	}
	right := r.Sub(split+2, 2, pw-3, r.H-4)
	y := right.Rich(0, 0, right.W, v.Ex.Task(v.Cat.Lang), t.Strong, t.Strong, t.Code) + 1
	y = v.Picker.draw(right.Sub(0, y, right.W, right.H-y), t, v.Cat, !v.Typing) + y + 1
	hint := v.Cat.T("identify.finer")
	if v.Picker.Fine {
		hint = v.Cat.T("quiz.enter") + "  " + v.Cat.T("identify.back")
	}
	right.TextMax(0, y, right.W, hint, t.Dim)
	right.TextMax(0, y+1, right.W, v.Cat.T("quiz.hints", "n", v.Ex.HintsLeft()), t.Dim)
	y += 3
	for i, h := range v.Hints {
		st := t.Dim
		if i == len(v.Hints)-1 {
			st = t.Text
		}
		right.Text(0, y, fmt.Sprintf("%s %d", v.Cat.T("quiz.hint"), i+1), t.Wait)
		y = right.Rich(0, y+1, right.W, h, st, t.Strong, t.Code) + 1
	}
}

func (p *Picker) draw(r ui.Region, t *theme.Theme, cat *i18n.Catalog, focused bool) int {
	steps := stage.Steps()
	p.Cols = 2
	cw := r.W / p.Cols
	for i, s := range steps {
		x, y := i%p.Cols*cw, i/p.Cols
		st, ks := t.Text, t.Key
		if i == p.Step {
			look := t.Select
			if !focused || p.Fine {
				look = t.Band
			}
			r.Fill(ui.Rect{X: x, Y: y, W: cw - 1, H: 1}, " ", look)
			st, ks = look, look
			r.Text(x, y, t.Glyph.Select, look)
		}
		r.Text(x+2, y, text.PadLeft(string(s), 2), ks)
		r.Text(x+5, y, text.First(cw-6, cat.Step(s), cat.StepShort(s)), st)
	}
	y := (len(steps)+p.Cols-1)/p.Cols + 1
	if !p.Fine {
		return y
	}
	for i, id := range p.Stages() {
		st := t.Text
		if i == p.Stage {
			r.Fill(ui.Rect{X: 2, Y: y, W: r.W - 3, H: 1}, " ", t.Select)
			r.Text(2, y, t.Glyph.Select, t.Select)
			st = t.Select
		}
		r.TextMax(4, y, r.W-5, cat.Stage(id), st)
		y++
	}
	return y
}

// Onward says what the answer was worth and how to go on.
func (v Verdict) Onward(cat *i18n.Catalog) string {
	return "**" + cat.T("identify.points", "n", v.Points) + "** · " + cat.T("identify.another")
}

// Passage turns a verdict into the words that stand beside the deciding hop.
func (v Verdict) Passage(cat *i18n.Catalog) *frame.Passage {
	said, truth := cat.Stage(v.Said), cat.Stage(v.Truth)
	key := "identify.wrong"
	switch {
	case v.Right:
		key = "identify.right"
	case v.Distance <= 2:
		key = "identify.near"
	}
	s := "**" + cat.T(key, "stage", truth, "said", said) + "**"
	if why := v.Why[cat.Lang]; why != "" {
		s += "\n\n" + why
	}
	if v.Evidence != "" {
		s += "\n\n" + cat.T("identify.evidence") + "\n`" + v.Evidence + "`"
	}
	if look := v.Look[cat.Lang]; look != "" {
		s += "\n\n**" + cat.T("identify.look") + "**\n" + look
	}
	if mend := v.Mend[cat.Lang]; mend != "" {
		s += "\n\n**" + cat.T("identify.mend") + "**\n" + mend
	}
	s += "\n\n" + v.Onward(cat)
	return &frame.Passage{Title: truth, Text: s}
}
