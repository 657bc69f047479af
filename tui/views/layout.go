// Package views holds the screens, one file each. A screen is a function that draws
// state which the program's one model owns; it decides nothing.
package views

import "podwalk/tui/ui"

// The smallest terminal that podwalk can be used in.
const (
	WidthMin  = 60
	HeightMin = 18
)

// Rects is where the parts of the player are.
//
//	wide                          narrow
//	header                        header
//	────────────┬──────────       ──────────────
//	diagram     │ panel           diagram
//	            │                 ──────────────
//	log         │ truth           panel
//	────────────┴──────────       ──────────────
//	badges                        badges, track
//	track                         keys
//	keys
type Rects struct {
	Side                bool // the panel stands beside the diagram
	Header, Diagram     ui.Rect
	Panel               ui.Rect // tabs are its first row
	Log, Truth          ui.Rect // empty where there is no room
	Badges, Track, Keys ui.Rect
	Split               int   // column of the line between diagram and panel
	Rules               []int // rows with a line across
	LogRule, TruthRule  int   // rows with a line across one half, 0 for none
}

// Layout computes the rectangles for a terminal of w×h cells. A wide panel has more than
// half of the screen: kubectl's tables want it.
//
// wish is how many rows the panel would like to have where it stands below the diagram;
// the diagram gives way to it as far as it stays readable.
func Layout(w, h int, wide bool, wish int) Rects {
	if w >= 100 && h >= 26 {
		return sideBySide(w, h, wide)
	}
	return stacked(w, h, wish)
}

// diagramMin is how low a diagram may become.
const diagramMin = 5

func sideBySide(w, h int, wide bool) Rects {
	l := Rects{Side: true}
	l.Header = ui.Rect{X: 0, Y: 0, W: w, H: 1}
	body := h - 6
	pw := min(max(w*33/100, 38), 66)
	if wide {
		pw = max(pw, min(w*56/100, 100))
	}
	l.Split = w - pw - 1
	l.Rules = []int{1, h - 4}
	l.Diagram = ui.Rect{X: 0, Y: 2, W: l.Split - 1, H: body}
	l.Panel = ui.Rect{X: l.Split + 2, Y: 2, W: pw - 2, H: body}
	if body >= 42 {
		lh := min(body-34, 16)
		l.Diagram.H = body - lh - 1
		l.LogRule = 2 + l.Diagram.H
		l.Log = ui.Rect{X: 1, Y: l.LogRule + 1, W: l.Split - 2, H: lh}
		th := 16
		l.Panel.H = body - th - 1
		l.TruthRule = 2 + l.Panel.H
		l.Truth = ui.Rect{X: l.Split + 2, Y: l.TruthRule + 1, W: pw - 3, H: th}
	}
	l.Badges = ui.Rect{X: 0, Y: h - 3, W: w, H: 1}
	l.Track = ui.Rect{X: 0, Y: h - 2, W: w, H: 1}
	l.Keys = ui.Rect{X: 0, Y: h - 1, W: w, H: 1}
	return l
}

func stacked(w, h, wish int) Rects {
	l := Rects{Header: ui.Rect{X: 0, Y: 0, W: w, H: 1}}
	foot := 2 // badges and track share a row
	if h >= 28 {
		foot = 3
	}
	room := h - 4 - foot // header, three rules
	dh := room / 2
	if h >= 34 {
		dh = min(room-12, 26)
	}
	dh = max(min(dh, room-wish), min(dh, diagramMin))
	l.Diagram = ui.Rect{X: 0, Y: 2, W: w, H: dh}
	l.Panel = ui.Rect{X: 1, Y: 3 + dh, W: w - 2, H: room - dh}
	l.Rules = []int{1, 2 + dh, h - foot - 1}
	if foot == 3 {
		l.Badges = ui.Rect{X: 0, Y: h - 3, W: w, H: 1}
		l.Track = ui.Rect{X: 0, Y: h - 2, W: w, H: 1}
	} else {
		bw := 43
		l.Badges = ui.Rect{X: 0, Y: h - 2, W: bw, H: 1}
		l.Track = ui.Rect{X: bw, Y: h - 2, W: w - bw, H: 1}
	}
	l.Keys = ui.Rect{X: 0, Y: h - 1, W: w, H: 1}
	return l
}
