// Package panes draws the parts of the player: the diagram and the panels beside it.
// Each takes a region, the theme and a frame, and draws; none keeps state of its own
// beyond a scroll position.
package panes

import (
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/ui"
)

// Diagram is a diagram as data (assets/diagrams).
type Diagram struct {
	ID      string     `json:"id"`
	Order   int        `json:"order"`
	Stages  []stage.ID `json:"stages"` // at these the zoom goes here
	Layouts []Layout   `json:"layouts"`
}

// Layout is one arrangement, for a size and upwards.
type Layout struct {
	Size  [2]int    `json:"size"`
	Max   [2]int    `json:"max"`
	Boxes []BoxSpec `json:"boxes"`
	Edges []Edge    `json:"edges"`
}

// BoxSpec is a box and what is drawn in it.
type BoxSpec struct {
	ID        string `json:"id"`
	Component string `json:"component"` // a component's id or kind, several with commas; "node", "pod", "asker"
	Each      string `json:"each"`      // "node": one for every worker
	Rect      [4]int `json:"rect"`
	Frame     string `json:"frame"`   // "", "none", "dim"
	Title     string `json:"title"`   // a key of the catalogue, or text; "" is the component
	Content   string `json:"content"` // a name in the table of contents
}

// Edge says who talks to whom. The arrowhead is at the one that is asked.
type Edge struct {
	From  string     `json:"from"`
	To    string     `json:"to"`
	Sides [2]string  `json:"sides"`
	At    [2]float64 `json:"at"` // where along the sides, 0…1
	X     []int      `json:"x"`  // a straight vertical edge in this column, one per instance
	Kind  string     `json:"kind"`
	Label string     `json:"label"`
}

var sideOf = map[string]ui.Side{"left": ui.Left, "right": ui.Right, "top": ui.Top, "bottom": ui.Bottom}

// LoadDiagrams reads every diagram, in their order.
func LoadDiagrams(assets fs.FS) ([]*Diagram, error) {
	files, err := fs.Glob(assets, "diagrams/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []*Diagram
	for _, name := range files {
		data, err := fs.ReadFile(assets, name)
		if err != nil {
			return nil, err
		}
		d := &Diagram{}
		if err := yaml.UnmarshalStrict(data, d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, d)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Order < out[j].Order })
	return out, nil
}

func (d *Diagram) check() error {
	if d.ID == "" || len(d.Layouts) == 0 {
		return fmt.Errorf("a diagram needs an id and a layout")
	}
	for _, id := range d.Stages {
		if _, ok := stage.Get(id); !ok {
			return fmt.Errorf("there is no stage %q", id)
		}
	}
	for li, l := range d.Layouts {
		if l.Size[0] < 1 || l.Size[1] < 1 {
			return fmt.Errorf("layout %d has no size", li)
		}
		ids := map[string]bool{}
		for _, b := range l.Boxes {
			ids[b.ID] = true
			if _, ok := contents[b.Content]; !ok {
				return fmt.Errorf("layout %d: box %s: there is no content %q", li, b.ID, b.Content)
			}
			q := b.Rect
			if q[0] < 0 || q[1] < 0 || q[0]+q[2] > l.Size[0] || q[1]+q[3] > l.Size[1] {
				return fmt.Errorf("layout %d: box %s lies outside of the layout", li, b.ID)
			}
		}
		for _, e := range l.Edges {
			if !ids[e.From] || !ids[e.To] {
				return fmt.Errorf("layout %d: edge %s–%s: no such box", li, e.From, e.To)
			}
			for _, s := range e.Sides {
				if _, ok := sideOf[s]; !ok {
					return fmt.Errorf("layout %d: edge %s–%s: no side %q", li, e.From, e.To, s)
				}
			}
		}
	}
	return nil
}

// layoutFor returns the first layout that fits.
func (d *Diagram) layoutFor(w, h int) Layout {
	for _, l := range d.Layouts {
		if l.Size[0] <= w && l.Size[1] <= h {
			return l
		}
	}
	return d.Layouts[len(d.Layouts)-1]
}

// Zoom returns the diagram that shows a hop best: that of its stage, if both ends of the
// hop are on it; else the first one, the whole cluster.
func Zoom(ds []*Diagram, h trace.Hop) *Diagram {
	for _, d := range ds {
		if slices.Contains(d.Stages, h.Stage) && d.shows(h.From) && d.shows(h.To) {
			return d
		}
	}
	return ds[0]
}

// shows reports whether a component has its place on the diagram. A diagram without any
// component's box is about objects, and shows everything.
func (d *Diagram) shows(c stage.Component) bool {
	_, node := c.Split()
	any := false
	for _, b := range d.Layouts[0].Boxes {
		any = any || b.Component != ""
		if b.Component == "asker" || b.names(c, node) {
			return true
		}
	}
	return c == "" || !any
}

// names reports whether the box stands for a component.
func (b BoxSpec) names(c stage.Component, node string) bool {
	kind, on := c.Split()
	for _, want := range strings.Split(b.Component, ",") {
		switch want {
		case "":
		case "node":
			if on != "" && on == node {
				return true
			}
		case string(c), string(kind):
			return true
		}
	}
	return false
}
