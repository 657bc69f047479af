package app

import (
	"fmt"
	"slices"
	"strings"

	"podwalk/tui/i18n"
	"podwalk/tui/text"
	"podwalk/tui/ui"
	"podwalk/tui/views"
)

// Binding is one thing that keys do.
type Binding struct {
	Keys  []string // as Bubble Tea names them
	Shown string   // as the screen and the README show them
	Does  string   // key of the catalogue, under "key."
}

// Is reports whether a pressed key belongs to the binding.
func (b Binding) Is(key string) bool {
	for _, k := range b.Keys {
		if k == key {
			return true
		}
	}
	return false
}

// KeyMap is every key of podwalk. The key bar, the help and the README's table are made
// from it.
type KeyMap struct {
	Play, Next, Back, HopNext, HopBack, StepNext, StepPrev, Home, End, Faster, Slower Binding
	Zoom, Tab, TabBack, Up, Down, Why, Compare                                        Binding
	Fault, Kubectl, Choose                                                            Binding
	Lang, Metaphor, Mouse, Help, Escape, Quit                                         Binding
}

// Keys is the key map.
var Keys = KeyMap{
	Play:     Binding{[]string{" "}, "space", "play"},
	Next:     Binding{[]string{"right", "n"}, "→ n", "next"},
	Back:     Binding{[]string{"left", "p"}, "← p", "back"},
	HopNext:  Binding{[]string{"."}, ".", "forward"},
	HopBack:  Binding{[]string{","}, ",", "backward"},
	StepNext: Binding{[]string{"]"}, "]", "nextStep"},
	StepPrev: Binding{[]string{"["}, "[", "prevStep"},
	Home:     Binding{[]string{"home", "g"}, "g", "home"},
	End:      Binding{[]string{"end", "G"}, "G", "end"},
	Faster:   Binding{[]string{"+", "="}, "+", "faster"},
	Slower:   Binding{[]string{"-"}, "-", "slower"},
	Zoom:     Binding{[]string{"z"}, "z", "zoom"},
	Tab:      Binding{[]string{"tab"}, "tab", "tab"},
	TabBack:  Binding{[]string{"shift+tab"}, "shift+tab", "tabBack"},
	Up:       Binding{[]string{"up"}, "↑", "up"},
	Down:     Binding{[]string{"down"}, "↓", "down"},
	Why:      Binding{[]string{"w"}, "w", "why"},
	Compare:  Binding{[]string{"c"}, "c", "compare"},
	Fault:    Binding{[]string{"f"}, "f", "fault"},
	Kubectl:  Binding{[]string{"k"}, "k", "kubectl"},
	Choose:   Binding{[]string{"enter"}, "enter", "choose"},
	Lang:     Binding{[]string{"l"}, "l", "language"},
	Metaphor: Binding{[]string{"m"}, "m", "metaphor"},
	Mouse:    Binding{[]string{"M"}, "M", "mouse"},
	Help:     Binding{[]string{"?"}, "?", "help"},
	Escape:   Binding{[]string{"esc"}, "esc", "escape"},
	Quit:     Binding{[]string{"q"}, "q", "quit"},
}

type group struct {
	title string
	keys  []Binding
}

func (k KeyMap) groups() []group {
	return []group{
		{"movement", []Binding{k.Play, k.Next, k.Back, k.HopNext, k.HopBack, k.StepNext, k.StepPrev, k.Home, k.End, k.Faster, k.Slower}},
		{"acting", []Binding{k.Fault, k.Kubectl, k.Choose}},
		{"looking", []Binding{k.Zoom, k.Tab, k.TabBack, k.Up, k.Down, k.Why, k.Compare}},
		{"program", []Binding{k.Lang, k.Metaphor, k.Mouse, k.Help, k.Escape, k.Quit}},
	}
}

func helpGroups(c *i18n.Catalog) []views.HelpGroup {
	var out []views.HelpGroup
	for _, g := range Keys.groups() {
		h := views.HelpGroup{Title: c.T("help." + g.title)}
		for _, b := range g.keys {
			h.Keys = append(h.Keys, ui.KeyHelp{Key: b.Shown, Does: c.T("key." + b.Does)})
		}
		out = append(out, h)
	}
	return out
}

// KeyTable is the README's table of keys.
func KeyTable(c *i18n.Catalog) string {
	var b strings.Builder
	for _, g := range Keys.groups() {
		fmt.Fprintf(&b, "**%s**\n\n| key | |\n|---|---|\n", c.T("help."+g.title))
		for _, k := range g.keys {
			fmt.Fprintf(&b, "| `%s` | %s |\n", k.Shown, c.T("key."+k.Does))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// help turns bindings into what a key bar shows; does overrides the word.
func help(c *i18n.Catalog, b Binding, does string) ui.KeyHelp {
	if does == "" {
		does = b.Does
	}
	key := b.Shown
	if i := strings.IndexByte(key, ' '); i > 0 {
		key = key[:i]
	}
	return ui.KeyHelp{Key: key, Does: c.T("key." + does)}
}

// playerBar is the player's key bar: the important keys first, shortened to the width.
func playerBar(c *i18n.Catalog, w int, playing, faults, kubectl bool) []ui.KeyHelp {
	play := "play"
	if playing {
		play = "pause"
	}
	full := []ui.KeyHelp{
		help(c, Keys.Play, play), help(c, Keys.Next, ""), help(c, Keys.Back, ""),
		{Key: "] [", Does: c.T("key.step")}, help(c, Keys.Zoom, ""), help(c, Keys.Tab, ""),
		help(c, Keys.Fault, ""), help(c, Keys.Kubectl, ""), help(c, Keys.Why, ""), help(c, Keys.Lang, "lang"),
		help(c, Keys.Help, ""), help(c, Keys.Quit, ""),
	}
	short := []ui.KeyHelp{
		help(c, Keys.Play, play), {Key: "→ ←", Does: c.T("key.move")}, {Key: "] [", Does: c.T("key.step")},
		help(c, Keys.Zoom, ""), help(c, Keys.Tab, ""), help(c, Keys.Fault, ""), help(c, Keys.Kubectl, ""), help(c, Keys.Help, ""),
	}
	bar := short
	if barWidth(full) <= w {
		bar = full
	}
	return slices.DeleteFunc(bar, func(k ui.KeyHelp) bool {
		return k.Key == Keys.Fault.Shown && !faults || k.Key == Keys.Kubectl.Shown && !kubectl
	})
}

func barWidth(ks []ui.KeyHelp) int {
	n := 1
	for _, k := range ks {
		n += text.Width(k.Key) + 1 + text.Width(k.Does) + 2
	}
	return n - 2
}
