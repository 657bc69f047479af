package ui

import (
	"strings"
	"testing"
	"unicode"

	"podwalk/assets"
	"podwalk/tui/text"
	"podwalk/tui/theme"
)

func TestCanvasIsExact(t *testing.T) {
	th := theme.Plain(assets.FS, false)
	for w := 0; w <= 60; w++ {
		c := NewCanvas(w, 6)
		r := c.All()
		r.Text(0, 0, "容器正在建立中 Kubernetes 會重試", th.Text)
		r.Text(1, 0, "x", th.Text) // cuts 容 in two
		r.TitledBox(Rect{-2, 1, w + 3, 4}, th.Glyph.Box, th.Line, "節點 node01", th.Strong)
		r.Sub(3, 2, 5, 1).Text(0, 0, "映像檔登錄庫", th.Text)
		Tabs(r.Sub(0, 5, w, 1), th, []string{"敘述", "Object", "Events", "原因"}, 3)
		for _, l := range c.Lines() {
			if text.Width(l) != w {
				t.Fatalf("width %d: %q is %d wide", w, l, text.Width(l))
			}
		}
	}
}

func TestRouteAndEdge(t *testing.T) {
	th := theme.Plain(assets.FS, false)
	c := NewCanvas(24, 9)
	r := c.All()
	a, b := Rect{0, 0, 8, 3}, Rect{14, 5, 8, 3}
	r.Box(a, th.Glyph.Box, nil)
	r.Box(b, th.Glyph.Heavy, nil)
	r.Edge(&th.Glyph, Route(a.Port(Right, .5), Right, b.Port(Left, .5), Left), nil, false, true)
	got := strings.Join(c.PlainLines(), "\n")
	for _, piece := range []string{"│──╮", "╰──▶┃", "╭──────╮", "┏━━━━━━┓"} {
		if !strings.Contains(got, piece) {
			t.Errorf("no %q in\n%s", piece, got)
		}
	}
}

func TestLineEdit(t *testing.T) {
	var e LineEdit
	e.Insert("get pods 容器")
	e.Move(-1)
	e.Backspace()
	e.KillWord()
	if e.Value() != "get 器" {
		// KillWord goes over the space to the word before it.
		t.Errorf("got %q", e.Value())
	}
	e.Home()
	e.Insert("k ")
	e.End()
	e.Backspace()
	if e.Value() != "k get " {
		t.Errorf("got %q", e.Value())
	}
}

// TestNothingDrivesTheTerminal: texts of the cluster reach the screen without what a
// terminal would obey.
func TestNothingDrivesTheTerminal(t *testing.T) {
	c := NewCanvas(60, 2)
	r := c.All()
	r.Text(0, 0, "a\x1b[31mred\a \u009b2J \u202etxt \x7f\r\x08end", nil)
	r.TextMax(0, 1, 50, "a\x1b]0;title\x07 b\u2066c", nil)
	for _, l := range c.Lines() {
		if i := strings.IndexFunc(l, func(c rune) bool { return !unicode.IsGraphic(c) }); i >= 0 {
			t.Errorf("%q", l)
		}
		if text.Width(l) != 60 {
			t.Errorf("%q is %d wide", l, text.Width(l))
		}
	}
}
