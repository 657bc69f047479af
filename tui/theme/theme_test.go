package theme

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"podwalk/assets"
)

func renderer(p termenv.Profile) *lipgloss.Renderer {
	r := lipgloss.NewRenderer(nopWriter{})
	r.SetColorProfile(p)
	return r
}

func TestEveryThemeLoads(t *testing.T) {
	names := Names(assets.FS)
	if len(names) < 5 {
		t.Fatalf("only %v", names)
	}
	for _, n := range names {
		for _, p := range []termenv.Profile{termenv.TrueColor, termenv.ANSI256, termenv.ANSI, termenv.Ascii} {
			for _, ascii := range []bool{false, true} {
				th, err := Load(renderer(p), Options{Name: n, ASCII: ascii, Assets: assets.FS})
				if err != nil {
					t.Fatal(err)
				}
				if p == termenv.Ascii && th.Fail.Open != "" {
					t.Errorf("%s: NO_COLOR writes %q", n, th.Fail.Open)
				}
				if ascii {
					for _, g := range []string{th.Glyph.Box.TL, th.Glyph.Right, th.Glyph.Failed, th.Glyph.Full} {
						if g[0] > 0x7e {
							t.Errorf("ascii glyph %q", g)
						}
					}
				}
			}
		}
	}
}

func TestExplicitColours(t *testing.T) {
	th, err := Load(renderer(termenv.ANSI), Options{Name: "dark", Assets: assets.FS})
	if err != nil {
		t.Fatal(err)
	}
	if th.Fail.Open != "\x1b[91m" {
		t.Errorf("16 colours: fail is %q, want the palette's own 9", th.Fail.Open)
	}
}

func TestBadThemes(t *testing.T) {
	base, _ := assets.FS.ReadFile("themes/base.yaml")
	glyphs, _ := assets.FS.ReadFile("themes/glyphs.yaml")
	for src, want := range map[string]string{
		"palette: {ink: [red, 1, 1]}":          "is not a colour",
		"palette: {}":                          "palette has no",
		"colours: {}":                          "unknown field",
		"styles: {text: {weight: [blinking]}}": "unknown weight",
	} {
		fsys := fstest.MapFS{
			"themes/base.yaml":   {Data: base},
			"themes/glyphs.yaml": {Data: glyphs},
			"themes/bad.yaml":    {Data: []byte(src)},
		}
		// Roles are visited in map order, so a broken role may be reported first.
		_, err := Load(renderer(termenv.TrueColor), Options{Name: "bad", Assets: fsys})
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "palette has no") {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
	}
}
