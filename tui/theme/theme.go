// Package theme turns roles ("now", "failed", "dim") into looks. A theme is data: a
// palette and perhaps a few roles of its own (assets/themes). All styles of a program
// come from one lipgloss renderer, so that two SSH sessions can differ; nothing outside
// this package knows a colour.
package theme

import (
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
	"sigs.k8s.io/yaml"
)

// Style is a look that is ready to be written: what to send before and after the text.
type Style struct{ Open, Close string }

// Theme holds every role and the glyph set.
type Theme struct {
	Name  string
	Glyph Glyphs

	Text, Strong, Dim, Line, Brand        *Style
	Now, NowStrong, OK, Fail, FailStrong  *Style
	Wait, Code, Key                       *Style
	Badge, BadgeFail, BadgeOK, BadgeWait  *Style
	Select, Band, Add, Del, Changed, None *Style
}

// Options choose a theme.
type Options struct {
	Name   string // a file of assets/themes, or "auto"
	ASCII  bool   // the ASCII glyph set
	Assets fs.FS
}

type styleSpec struct {
	FG     string   `json:"fg,omitempty"`
	BG     string   `json:"bg,omitempty"`
	Weight []string `json:"weight,omitempty"`
}

type fileSpec struct {
	Background string               `json:"background,omitempty"`
	Palette    map[string][]any     `json:"palette,omitempty"`
	Styles     map[string]styleSpec `json:"styles,omitempty"`
}

// Names returns the themes there are, sorted.
func Names(assets fs.FS) []string {
	entries, _ := fs.ReadDir(assets, "themes")
	var out []string
	for _, e := range entries {
		n := strings.TrimSuffix(e.Name(), ".yaml")
		if n != "base" && n != "glyphs" {
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return out
}

// Load builds a theme for a renderer. "auto" is dark or light, after what the renderer
// knows of the terminal's background.
func Load(r *lipgloss.Renderer, o Options) (*Theme, error) {
	name := o.Name
	if name == "" || name == "auto" {
		name = "light"
		if r.HasDarkBackground() {
			name = "dark"
		}
	}
	base, err := readFile(o.Assets, "base")
	if err != nil {
		return nil, err
	}
	spec, err := readFile(o.Assets, name)
	if err != nil {
		return nil, fmt.Errorf("theme %q: there are %s: %w", name, strings.Join(Names(o.Assets), ", "), err)
	}
	glyphs, err := loadGlyphs(o.Assets, o.ASCII)
	if err != nil {
		return nil, err
	}
	t := &Theme{Name: name, Glyph: glyphs, None: &Style{}}
	b := builder{r: r, palette: spec.Palette}
	for role, dst := range t.roles() {
		s, ok := spec.Styles[role]
		if !ok {
			if s, ok = base.Styles[role]; !ok {
				return nil, fmt.Errorf("themes/base.yaml: role %q is missing", role)
			}
		}
		if *dst, err = b.style(s); err != nil {
			return nil, fmt.Errorf("themes/%s.yaml: role %s: %w", name, role, err)
		}
	}
	return t, nil
}

func (t *Theme) roles() map[string]**Style {
	return map[string]**Style{
		"text": &t.Text, "strong": &t.Strong, "dim": &t.Dim, "line": &t.Line, "brand": &t.Brand,
		"now": &t.Now, "nowStrong": &t.NowStrong, "ok": &t.OK, "fail": &t.Fail, "failStrong": &t.FailStrong,
		"wait": &t.Wait, "code": &t.Code, "key": &t.Key,
		"badge": &t.Badge, "badgeFail": &t.BadgeFail, "badgeOk": &t.BadgeOK, "badgeWait": &t.BadgeWait,
		"select": &t.Select, "band": &t.Band, "add": &t.Add, "del": &t.Del, "changed": &t.Changed,
	}
}

func readFile(assets fs.FS, name string) (fileSpec, error) {
	var spec fileSpec
	data, err := fs.ReadFile(assets, path.Join("themes", name+".yaml"))
	if err != nil {
		return spec, err
	}
	return spec, yaml.UnmarshalStrict(data, &spec)
}

type builder struct {
	r       *lipgloss.Renderer
	palette map[string][]any
}

func (b builder) style(s styleSpec) (*Style, error) {
	st := b.r.NewStyle()
	for _, set := range []struct {
		name string
		put  func(lipgloss.TerminalColor)
	}{
		{s.FG, func(c lipgloss.TerminalColor) { st = st.Foreground(c) }},
		{s.BG, func(c lipgloss.TerminalColor) { st = st.Background(c) }},
	} {
		if set.name == "" {
			continue
		}
		c, err := b.colour(set.name)
		if err != nil {
			return nil, err
		}
		set.put(c)
	}
	for _, w := range s.Weight {
		switch w {
		case "bold":
			st = st.Bold(true)
		case "faint":
			st = st.Faint(true)
		case "underline":
			st = st.Underline(true)
		case "reverse":
			st = st.Reverse(true)
		case "italic":
			st = st.Italic(true)
		default:
			return nil, fmt.Errorf("unknown weight %q", w)
		}
	}
	// One rendered letter shows what goes before and after any text.
	open, end, _ := strings.Cut(st.Render("x"), "x")
	return &Style{open, end}, nil
}

func (b builder) colour(name string) (lipgloss.TerminalColor, error) {
	p, ok := b.palette[name]
	if !ok || len(p) != 3 {
		return nil, fmt.Errorf("palette has no [truecolor, 256, 16] entry %q", name)
	}
	hex, ok := p[0].(string)
	if !ok || len(hex) != 7 || hex[0] != '#' {
		return nil, fmt.Errorf("palette entry %q: %v is not a colour like \"#5cc8ff\"", name, p[0])
	}
	return lipgloss.CompleteColor{TrueColor: hex, ANSI256: fmt.Sprint(p[1]), ANSI: fmt.Sprint(p[2])}, nil
}

// Plain returns the mono theme without any escape sequence, for text output and tests.
func Plain(assets fs.FS, ascii bool) *Theme {
	r := lipgloss.NewRenderer(nopWriter{}, termenv.WithProfile(termenv.Ascii))
	r.SetColorProfile(termenv.Ascii)
	t, err := Load(r, Options{Name: "mono", ASCII: ascii, Assets: assets})
	if err != nil {
		panic(err) // the embedded mono theme is broken
	}
	return t
}

type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }
