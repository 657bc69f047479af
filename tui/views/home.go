package views

import (
	"podwalk/engine/stage"
	"podwalk/tui/i18n"
	"podwalk/tui/text"
	"podwalk/tui/theme"
	"podwalk/tui/ui"
)

// Entry is a line of the home screen.
type Entry struct {
	ID    string // what to open: "lesson/01-…", "drill", "sandbox", "settings" …
	Label string
	Note  string
	Why   string // a sentence about it, shown when it is selected
	Off   bool
}

// Home is the home screen: a list that answers "what now?", and the ten steps with how
// well they are known.
type Home struct {
	Cat     *i18n.Catalog
	Entries []Entry
	Sel     int
	Mastery map[stage.Step]float64 // 0…1
	Keys    []ui.KeyHelp
	Notice  string
}

// Draw draws the home screen.
func (h *Home) Draw(r ui.Region, t *theme.Theme) {
	x := r.Text(1, 0, "podwalk", t.Brand)
	r.TextMax(x+2, 0, r.W-x-3, h.Cat.T("home.title"), t.Text)
	ui.Rule(r, t, 1, nil)
	ui.Rule(r, t, r.H-2, nil)
	ui.KeyBar(r.Sub(0, r.H-1, r.W, 1), t, h.Keys)
	body := r.Sub(2, 3, r.W-4, r.H-6)
	if r.H < 24 {
		body = r.Sub(2, 2, r.W-4, r.H-4)
	}
	const stepsW = 34
	lw := min(body.W-stepsW-4, 78)
	if body.W < 74 {
		lw = body.W - stepsW - 2
	}
	left := body.Sub(0, 0, lw, body.H)
	left.TextMax(0, 0, lw, h.Cat.T("home.now"), t.Dim)
	items := make([]ui.Item, len(h.Entries))
	for i, e := range h.Entries {
		items[i] = ui.Item{Label: e.Label, Note: e.Note, Off: e.Off}
	}
	lh := min(len(items), body.H-6)
	ui.List(left.Sub(0, 2, lw, lh), t, items, h.Sel)
	y := 2 + lh + 1
	if h.Notice != "" {
		y = left.Rich(2, y, lw-2, h.Notice, t.Wait, t.Wait, t.Wait) + 1
	}
	if h.Sel < len(h.Entries) && y < body.H {
		why := h.Entries[h.Sel].Why
		if why == "" {
			why = h.Cat.T("home.chosen") + " " + h.Cat.T("home.promise")
			if h.Cat.Lang == i18n.English {
				why = h.Cat.T("home.chosen") + ": " + h.Cat.T("home.promise")
			} else {
				why = h.Cat.T("home.chosen") + h.Cat.T("home.promise")
			}
		}
		left.Rich(2, y, lw-2, why, t.Dim, t.Text, t.Code)
	}
	h.steps(body.Sub(body.W-stepsW, 0, stepsW, body.H), t)
}

// steps draws the ten steps as a column, like stations, with mastery bars.
func (h *Home) steps(r ui.Region, t *theme.Theme) {
	r.TextMax(0, 0, r.W, h.Cat.T("home.steps"), t.Dim)
	gap := 1
	n := len(stage.Steps())
	if r.H >= 2*n+1 {
		gap = 2
	}
	y := 2
	if r.H < n+2 {
		y = 1
	}
	for i, s := range stage.Steps() {
		if y >= r.H {
			return
		}
		m := h.Mastery[s]
		g, gs := t.Glyph.Todo, t.Line
		switch {
		case m >= 0.8:
			g, gs = t.Glyph.Done, t.OK
		case m > 0:
			g, gs = t.Glyph.Here, t.Now
		}
		r.Text(0, y, g, gs)
		r.Text(2, y, text.PadLeft(string(s), 2), t.Key)
		r.TextMax(5, y, r.W-16, h.Cat.Step(s), t.Text)
		ui.Bar(r, t, r.W-10, y, 10, m, 1, t.Now)
		if gap == 2 && i < n-1 {
			r.Text(0, y+1, t.Glyph.Box.V, t.Line)
		}
		y += gap
	}
}

// Language is the very first screen: it asks for the language and nothing else.
type Language struct {
	Bundle *i18n.Bundle
	Sel    int
}

// Draw draws the question in all languages at once.
func (l *Language) Draw(r ui.Region, t *theme.Theme) {
	langs := i18n.Langs()
	h := len(langs)*2 + 6
	in := ui.Overlay(r, t, 44, h, "podwalk")
	for i, lang := range langs {
		in.TextCenter(0, 1+i, in.W, l.Bundle.In(lang).T("first.title"), t.Dim)
	}
	for i, lang := range langs {
		y := 4 + i*2 - 1
		label := l.Bundle.In(lang).T("lang.self")
		if i == l.Sel {
			in.Fill(ui.Rect{X: 8, Y: y, W: in.W - 16, H: 1}, " ", t.Select)
			in.Text(9, y, t.Glyph.Select, t.Select)
			in.Text(12, y, label, t.Select)
		} else {
			in.Text(12, y, label, t.Text)
		}
	}
	in.TextCenter(0, in.H-1, in.W, l.Bundle.In(langs[l.Sel]).T("first.hint"), t.Dim)
}

// Setting is one line of the settings screen.
type Setting struct{ Label, Value string }

// Settings is the settings screen.
type Settings struct {
	Cat  *i18n.Catalog
	Rows []Setting
	Sel  int
	Keys []ui.KeyHelp
}

// Draw draws the settings, a sample of the theme, and the width check: two lines that
// must end at the same column.
func (s *Settings) Draw(r ui.Region, t *theme.Theme) {
	x := r.Text(1, 0, "podwalk", t.Brand)
	r.TextMax(x+2, 0, r.W-x-3, s.Cat.T("settings.title"), t.Text)
	ui.Rule(r, t, 1, nil)
	ui.Rule(r, t, r.H-2, nil)
	ui.KeyBar(r.Sub(0, r.H-1, r.W, 1), t, s.Keys)
	body := r.Sub(2, 3, r.W-4, r.H-5)
	w := min(body.W, 56)
	for i, row := range s.Rows {
		st, vs := t.Text, t.Now
		if i == s.Sel {
			body.Fill(ui.Rect{X: 0, Y: i, W: w, H: 1}, " ", t.Select)
			body.Text(0, i, t.Glyph.Select, t.Select)
			st, vs = t.Select, t.Select
		}
		body.Text(2, i, row.Label, st)
		body.TextRight(w-1, i, t.Glyph.ArrowLeft+" "+row.Value+" "+t.Glyph.ArrowRight, vs)
	}
	y := len(s.Rows) + 1
	sx := 2
	for _, p := range []struct {
		g    string
		id   string
		look *theme.Style
	}{
		{t.Glyph.Done, "ok", t.OK}, {t.Glyph.Here, "hop.mark", t.NowStrong}, {t.Glyph.Failed, "failed", t.FailStrong},
		{t.Glyph.Waiting, "waiting", t.Wait}, {t.Glyph.Retry, "retry", t.Wait},
	} {
		k := p.id
		if k != "hop.mark" {
			k = "outcome." + k
		}
		sx = body.Text(sx, y, p.g+" "+s.Cat.T(k), p.look) + 3
	}
	y += 2
	body.TextMax(2, y, body.W-2, s.Cat.T("settings.width"), t.Dim)
	body.Text(2, y+1, "容器正在建立中，請稍候。"+t.Glyph.Box.V, t.Text)
	body.Text(2, y+2, t.Glyph.Done+t.Glyph.Here+t.Glyph.ArrowRight+t.Glyph.Box.H+" kube-apiserver 0123"+t.Glyph.Box.V, t.Text)
	body.Text(2, y+3, s.Cat.T("settings.hint"), t.Line)
}

// TooSmall says that there is not enough room.
func TooSmall(r ui.Region, t *theme.Theme, cat *i18n.Catalog) {
	lines := []string{
		cat.T("app.tooSmall", "w", WidthMin, "h", HeightMin),
		cat.T("app.isSmall", "w", r.W, "h", r.H),
		cat.T("app.enlarge"),
	}
	y := max((r.H-len(lines))/2, 0)
	for _, l := range lines {
		for _, s := range text.Wrap(l, max(r.W, 1)) {
			r.TextCenter(0, y, r.W, s, t.Text)
			y++
		}
	}
}
