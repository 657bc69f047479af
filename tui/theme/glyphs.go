package theme

import (
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	"podwalk/tui/text"
)

// Frame is a set of box-drawing glyphs.
type Frame struct {
	TL, TR, BL, BR, H, V          string
	TeeR, TeeL, TeeD, TeeU, Cross string
}

// Glyphs is every special character that podwalk draws; each is one cell wide.
type Glyphs struct {
	Box, Heavy, Square                        Frame
	Right, Left, Up, Down                     string // arrowheads
	Done, Here, Failed, Waiting, Retry, Todo  string // states
	Packet, Container, Blueprint              string
	Full, Half, Empty, LayerFull, LayerEmpty  string
	Track, TrackDone, TrackEndL, TrackEndR    string
	Select, Play, Pause, Bullet, Change, Dot  string
	ArrowRight, ArrowLeft, ArrowUp, ArrowDown string
	Branch, BranchMid, Pulse                  string
}

type glyphFile struct {
	Box        string `json:"box"`
	Heavy      string `json:"heavy"`
	Square     string `json:"square"`
	Arrows     string `json:"arrows"`
	Done       string `json:"done"`
	Here       string `json:"here"`
	Failed     string `json:"failed"`
	Waiting    string `json:"waiting"`
	Retry      string `json:"retry"`
	Todo       string `json:"todo"`
	Packet     string `json:"packet"`
	Container  string `json:"container"`
	Blueprint  string `json:"blueprint"`
	Full       string `json:"full"`
	Half       string `json:"half"`
	Empty      string `json:"empty"`
	LayerFull  string `json:"layerFull"`
	LayerEmpty string `json:"layerEmpty"`
	Track      string `json:"track"`
	TrackDone  string `json:"trackDone"`
	TrackEndL  string `json:"trackEndL"`
	TrackEndR  string `json:"trackEndR"`
	Select     string `json:"select"`
	Play       string `json:"play"`
	Pause      string `json:"pause"`
	Bullet     string `json:"bullet"`
	Right      string `json:"right"`
	Left       string `json:"left"`
	Up         string `json:"up"`
	Down       string `json:"down"`
	Change     string `json:"change"`
	Branch     string `json:"branch"`
	BranchMid  string `json:"branchMid"`
	Pulse      string `json:"pulse"`
	Dot        string `json:"dot"`
}

func loadGlyphs(assets fs.FS, ascii bool) (Glyphs, error) {
	var g Glyphs
	data, err := fs.ReadFile(assets, "themes/glyphs.yaml")
	if err != nil {
		return g, err
	}
	var sets map[string]glyphFile
	if err := yaml.UnmarshalStrict(data, &sets); err != nil {
		return g, fmt.Errorf("themes/glyphs.yaml: %w", err)
	}
	name := "unicode"
	if ascii {
		name = "ascii"
	}
	f := sets[name]
	for _, p := range []struct {
		from string
		to   *Frame
	}{{f.Box, &g.Box}, {f.Heavy, &g.Heavy}, {f.Square, &g.Square}} {
		r := text.Graphemes(p.from)
		if len(r) != 11 {
			return g, fmt.Errorf("themes/glyphs.yaml: %s: %q has %d glyphs, want 11", name, p.from, len(r))
		}
		*p.to = Frame{r[0].S, r[1].S, r[2].S, r[3].S, r[4].S, r[5].S, r[6].S, r[7].S, r[8].S, r[9].S, r[10].S}
	}
	a := text.Graphemes(f.Arrows)
	if len(a) != 4 {
		return g, fmt.Errorf("themes/glyphs.yaml: %s: arrows: want 4 glyphs", name)
	}
	g.Right, g.Left, g.Up, g.Down = a[0].S, a[1].S, a[2].S, a[3].S
	for _, p := range []struct {
		from string
		to   *string
	}{
		{f.Done, &g.Done}, {f.Here, &g.Here}, {f.Failed, &g.Failed}, {f.Waiting, &g.Waiting}, {f.Retry, &g.Retry}, {f.Todo, &g.Todo},
		{f.Packet, &g.Packet}, {f.Container, &g.Container}, {f.Blueprint, &g.Blueprint},
		{f.Full, &g.Full}, {f.Half, &g.Half}, {f.Empty, &g.Empty}, {f.LayerFull, &g.LayerFull}, {f.LayerEmpty, &g.LayerEmpty},
		{f.Track, &g.Track}, {f.TrackDone, &g.TrackDone}, {f.TrackEndL, &g.TrackEndL}, {f.TrackEndR, &g.TrackEndR},
		{f.Select, &g.Select}, {f.Play, &g.Play}, {f.Pause, &g.Pause}, {f.Bullet, &g.Bullet}, {f.Change, &g.Change}, {f.Dot, &g.Dot},
		{f.Right, &g.ArrowRight}, {f.Left, &g.ArrowLeft}, {f.Up, &g.ArrowUp}, {f.Down, &g.ArrowDown},
		{f.Branch, &g.Branch}, {f.BranchMid, &g.BranchMid}, {f.Pulse, &g.Pulse},
	} {
		if text.Width(p.from) != 1 {
			return g, fmt.Errorf("themes/glyphs.yaml: %s: %q is not one cell wide", name, p.from)
		}
		*p.to = p.from
	}
	return g, nil
}
