package panes

import (
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

// box is a box that has its place.
type box struct {
	spec   BoxSpec
	node   string // of an "each: node" box
	n      int    // which instance
	q      ui.Rect
	active bool
}

type scene struct {
	r     ui.Region
	t     *theme
	f     *frame.Frame
	l     Layout
	boxes []box
	hop   trace.Hop
	has   bool
	now   *style // the colour of what just happened
	dx    int
	dy    int
	w, h  int
}

// DrawDiagram draws d with the packet of the current hop.
func DrawDiagram(r ui.Region, t *theme, f *frame.Frame, d *Diagram) {
	if r.W < 8 || r.H < 2 {
		return
	}
	s := &scene{r: r, t: t, f: f, l: d.layoutFor(r.W, r.H)}
	s.hop, s.has = f.Hop()
	s.now = t.Now
	if s.has && s.hop.Bad() {
		s.now = t.Fail
	} else if s.has && s.hop.Outcome != trace.OK {
		s.now = t.Wait
	}
	s.place()
	for _, b := range s.boxes { // what holds other boxes lies under everything
		if b.spec.Frame == "group" {
			s.box(b)
		}
	}
	for _, e := range s.l.Edges {
		s.edge(e, false)
	}
	for _, b := range s.boxes {
		if b.spec.Frame != "group" {
			s.box(b)
		}
	}
	for _, e := range s.l.Edges {
		s.edge(e, true)
	}
}

// scale maps the layout's coordinates onto the region, stretched up to its maximum and
// put in the middle.
func (s *scene) scale(x, y int) (int, int) {
	return s.dx + x*s.w/s.l.Size[0], s.dy + y*s.h/s.l.Size[1]
}

func (s *scene) rect(q [4]int) ui.Rect {
	x0, y0 := s.scale(q[0], q[1])
	x1, y1 := s.scale(q[0]+q[2], q[1]+q[3])
	return ui.Rect{X: x0, Y: y0, W: x1 - x0, H: y1 - y0}
}

func (s *scene) place() {
	s.w, s.h = s.r.W, s.r.H
	if m := s.l.Max; m[0] > 0 {
		s.w, s.h = min(s.w, max(m[0], s.l.Size[0])), min(s.h, max(m[1], s.l.Size[1]))
	}
	s.dx, s.dy = (s.r.W-s.w)/2, (s.r.H-s.h)/2
	for _, b := range s.l.Boxes {
		if b.Each != "node" {
			s.boxes = append(s.boxes, box{spec: b, q: s.rect(b.Rect), active: s.activeIn(b, "")})
			continue
		}
		nodes := s.workers(max(b.Rect[2]/34, 1))
		q := s.rect(b.Rect)
		gap := 3
		for i, n := range nodes {
			w := (q.W - gap*(len(nodes)-1)) / len(nodes)
			nq := ui.Rect{X: q.X + i*(w+gap), Y: q.Y, W: w, H: q.H}
			if i == len(nodes)-1 {
				nq.W = q.X + q.W - nq.X
			}
			s.boxes = append(s.boxes, box{spec: b, node: n, n: i, q: nq, active: s.activeIn(b, n)})
		}
	}
}

// workers returns the names of at most limit workers; the one where something happens
// is among them.
func (s *scene) workers(limit int) []string {
	var out []string
	for _, n := range s.f.AllNodes(true) {
		out = append(out, n.Name)
	}
	if len(out) == 0 {
		out = []string{"node01", "node02"}[:min(limit, 2)]
	}
	if len(out) > limit {
		here := hopNode(s.hop)
		for i, n := range out {
			if n == here && i >= limit {
				out[limit-1] = n
			}
		}
		out = out[:limit]
	}
	return out
}

// hopNode returns the node on which the hop happens, "" for none.
func hopNode(h trace.Hop) string {
	for _, c := range []stage.Component{h.From, h.To} {
		if _, n := c.Split(); n != "" {
			return n
		}
	}
	return ""
}

func (s *scene) activeIn(b BoxSpec, node string) bool {
	if !s.has || b.Component == "" {
		return false
	}
	return s.stands(b, s.hop.From, node) || s.stands(b, s.hop.To, node)
}

// stands reports whether box b is where component c is drawn.
func (s *scene) stands(b BoxSpec, c stage.Component, node string) bool {
	if c == "" {
		return false
	}
	switch b.Component {
	case "asker":
		return c == asker(s.f) && c != stage.APIServer && c != stage.Etcd
	case "pod":
		k, _ := c.Split()
		return k == "pod"
	}
	return b.names(c, node)
}

// asker returns who sent the request that is on its way through the gates.
func asker(f *frame.Frame) stage.Component {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		if h := f.Hops[i]; h.Stage == stage.Request && h.From != "" {
			return h.From
		}
	}
	return stage.Kubectl
}

func (s *scene) box(b box) {
	t := s.t
	inside := b.q
	if b.spec.Frame != "none" {
		title, ts, fs, frm := s.title(b), t.Dim, t.Line, t.Glyph.Box
		if b.spec.Frame == "dim" {
			frm = t.Glyph.Square
		}
		if b.active {
			frm, fs, ts = t.Glyph.Heavy, s.now, t.Strong
		} else if b.spec.Component != "" {
			ts = t.Text
		}
		s.r.Fill(b.q, " ", nil)
		s.r.TitledBox(b.q, frm, fs, title, ts)
		inside = ui.Rect{X: b.q.X + 2, Y: b.q.Y + 1, W: b.q.W - 4, H: b.q.H - 2}
	}
	if draw := contents[b.spec.Content]; draw != nil && inside.W > 0 && inside.H > 0 {
		draw(s.r.At(inside), s, b)
	}
}

// title is a box's name; in the metaphor, with its part in that.
func (s *scene) title(b box) string {
	real := s.realTitle(b)
	if !s.f.Metaphor {
		return real
	}
	kind := real
	switch {
	case b.node != "" || b.spec.Title == "focusnode":
		kind = "node"
	case b.spec.Component == "pod" || b.spec.Component == "kubectl":
		kind = b.spec.Component
	}
	key := "metaphor." + kind + ".name"
	if !s.f.Cat.Has(key) {
		return real
	}
	part := s.f.Cat.T(key)
	return text.First(b.q.W-5, real+" · "+part, part, real)
}

func (s *scene) realTitle(b box) string {
	switch {
	case b.node != "":
		return b.node
	case b.spec.Component == "asker":
		return string(asker(s.f))
	case b.spec.Component == "pod":
		return podTitle(s.f)
	case b.spec.Title == "focusnode":
		return s.focusNode()
	case b.spec.Title == "grid":
		if scored(s.f) {
			return s.f.Cat.T("box.scores")
		}
		return s.f.Cat.T("box.grid")
	case b.spec.Title == "other":
		for i := len(s.f.Hops) - 1; i >= 0; i-- { // who had to do with it last
			for _, c := range []stage.Component{s.f.Hops[i].To, s.f.Hops[i].From} {
				if b.spec.names(c, "") {
					k, _ := c.Split()
					return string(k)
				}
			}
		}
		return string(stage.Registry)
	case b.spec.Title != "":
		if s.f.Cat.Has(b.spec.Title) {
			return s.f.Cat.T(b.spec.Title)
		}
		return b.spec.Title
	}
	return b.spec.Component
}

// focusNode is the node that the node diagram shows.
func (s *scene) focusNode() string {
	if n := hopNode(s.hop); n != "" {
		return n
	}
	if p := s.f.FocusPod(); p != nil {
		return p.Spec.NodeName
	}
	return ""
}

// edge draws one edge; live ones are drawn after the boxes, the others before.
func (s *scene) edge(e Edge, live bool) {
	for _, a := range s.boxes {
		if a.spec.ID != e.From {
			continue
		}
		for _, b := range s.boxes {
			if b.spec.ID == e.To {
				s.drawEdge(e, a, b, live)
			}
		}
	}
}

func (s *scene) drawEdge(e Edge, a, b box, live bool) {
	forward := s.has && s.hop.From != s.hop.To && s.stands(a.spec, s.hop.From, a.node) && s.stands(b.spec, s.hop.To, b.node)
	back := s.has && s.hop.From != s.hop.To && s.stands(a.spec, s.hop.To, a.node) && s.stands(b.spec, s.hop.From, b.node)
	isLive := forward || back
	if isLive != live || e.Kind == "hidden" && !isLive {
		return
	}
	path := s.path(e, a, b)
	if len(path) == 0 {
		return
	}
	g := &s.t.Glyph
	if !live {
		s.r.Edge(g, path, s.t.Line, false, true)
		if e.Label != "" {
			s.edgeLabel(path, e.Label, s.t.Dim)
		}
		return
	}
	s.r.Edge(g, path, s.now, false, true)
	way := path
	if back {
		way = make([]ui.Point, len(path))
		for i, p := range path {
			way[len(path)-1-i] = p
		}
		// What runs back is an answer or a notification: the line stays dim, its trail not.
	}
	s.edgeLabel(path, s.hop.Verb, s.t.Strong)
	s.packet(way)
}

// packet draws the moving thing; at rest it stands at the end of its way.
func (s *scene) packet(way []ui.Point) {
	i := int(s.f.Progress*float64(len(way)-1) + 0.5)
	p := way[min(max(i, 0), len(way)-1)]
	mark := s.t.Glyph.Packet
	if s.hop.Bad() && s.f.Progress >= 1 {
		mark = s.t.Glyph.Failed
	}
	st := s.t.NowStrong
	if s.hop.Bad() {
		st = s.t.FailStrong
	}
	s.r.Set(p.X, p.Y, mark, st)
}

func (s *scene) path(e Edge, a, b box) []ui.Point {
	sa, sb := sideOf[e.Sides[0]], sideOf[e.Sides[1]]
	if len(e.X) > 0 {
		if a.n >= len(e.X) {
			return nil
		}
		x, _ := s.scale(e.X[a.n], 0)
		y0, y1 := a.q.Y-1, b.q.Y+b.q.H
		if sa == ui.Bottom {
			y0, y1 = a.q.Y+a.q.H, b.q.Y-1
		}
		return ui.Route(ui.Point{X: x, Y: y0}, sa, ui.Point{X: x, Y: y1}, sb)
	}
	at := e.At
	if at == [2]float64{} {
		at = [2]float64{.5, .5}
	}
	pa, pb := a.q.Port(sa, at[0]), b.q.Port(sb, at[1])
	// A one-row difference between two boxes side by side is no bend worth drawing.
	if (sa == ui.Left || sa == ui.Right) && abs(pa.Y-pb.Y) == 1 {
		pa.Y = pb.Y
	}
	return ui.Route(pa, sa, pb, sb)
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// edgeLabel writes a word on the longest horizontal stretch, else beside the path.
func (s *scene) edgeLabel(path []ui.Point, label string, st *style) {
	if label == "" || len(path) == 0 {
		return
	}
	horizontal := path[0].Y == path[len(path)-1].Y && len(path) > 1
	w := text.Width(label)
	if horizontal {
		x0 := min(path[0].X, path[len(path)-1].X)
		at := x0 + max((len(path)-w)/2, 0)
		if w <= len(path) && !s.free(at, path[0].Y-1, label, st) { // something is above: on the line
			s.r.Text(at-1, path[0].Y, " "+label+" ", st)
		} else if w > len(path) {
			s.r.TextMax(at, path[0].Y-1, max(len(path), 4), label, st)
		}
		return
	}
	// Beside the path: as near to its middle as there is room.
	mid := len(path) / 2
	for d := 0; d <= mid; d++ {
		for _, i := range []int{mid - d, mid + d} {
			if i < 0 || i >= len(path) {
				continue
			}
			p := path[i]
			if s.free(p.X+2, p.Y, label, st) || s.free(p.X-1-w, p.Y, label, st) {
				return
			}
		}
	}
}

// free writes only where nothing stands yet, and says whether it did.
func (s *scene) free(x, y int, label string, st *style) bool {
	w := text.Width(label)
	if x < 0 || x+w > s.r.W || y < 0 || y >= s.r.H {
		return false
	}
	for i := range w {
		if s.r.Get(x+i, y) != " " {
			return false
		}
	}
	s.r.Text(x, y, label, st)
	return true
}
