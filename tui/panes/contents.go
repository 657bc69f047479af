package panes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

type content func(r ui.Region, s *scene, b box)

// contents is what can stand in a box of a diagram.
var contents map[string]content

func init() {
	contents = map[string]content{
		"none":            func(ui.Region, *scene, box) {},
		"component":       drawComponent,
		"gateline":        drawGateLine,
		"node":            drawNode,
		"registryline":    drawRegistryLine,
		"neighbourhood":   drawNeighbourhood,
		"request":         drawRequest,
		"corridor":        drawCorridor,
		"object":          drawObject,
		"queues":          drawQueues,
		"points":          drawPoints,
		"grid":            drawGrid,
		"schedulingevent": drawSchedulingEvent,
		"pod":             drawPodInside,
		"images":          drawImages,
		"tree":            drawTree,
		"routing":         drawRouting,
		"rules":           drawRules,
	}
}

// mark returns the glyph and the look of a state.
func mark(t *theme, st frame.State) (string, *style) {
	switch st {
	case frame.Done:
		return t.Glyph.Done, t.OK
	case frame.Here:
		return t.Glyph.Here, t.NowStrong
	case frame.Failed:
		return t.Glyph.Failed, t.FailStrong
	case frame.Waiting:
		return t.Glyph.Waiting, t.Wait
	case frame.Retry:
		return t.Glyph.Retry, t.Wait
	}
	return t.Glyph.Todo, t.Line
}

// hereState is the state of the current hop: Here unless something went wrong.
func hereState(h trace.Hop) frame.State {
	if st := frame.Of(h.Outcome); st != frame.Done {
		return st
	}
	return frame.Here
}

func drawComponent(r ui.Region, s *scene, b box) {
	t := s.t
	if b.active {
		g, st := mark(t, hereState(s.hop))
		x := r.Text(0, 0, g+" ", st)
		label := text.First(r.W-x, s.f.Cat.Stage(s.hop.Stage), s.f.Cat.StageShort(s.hop.Stage))
		r.TextMax(x, 0, r.W-x, label, t.Strong)
		if second := hopSubject(s.hop); r.H > 1 {
			r.TextMax(0, 1, r.W, second, t.Dim)
		}
		return
	}
	if h, ok := lastOf(s.f, b.spec, s); ok {
		g, st := mark(t, frame.Of(h.Outcome))
		x := r.Text(0, 0, g+" ", st)
		r.TextMax(x, 0, r.W-x, text.First(r.W-x, s.f.Cat.Stage(h.Stage), s.f.Cat.StageShort(h.Stage)), t.Dim)
	} else {
		r.Text(0, 0, t.Glyph.Todo, t.Line)
	}
	if b.spec.Component == string(stage.Etcd) && r.H > 1 {
		if rev := revision(s.f); rev > 0 {
			r.TextMax(0, 1, r.W, fmt.Sprintf("%s %d", s.f.Cat.T("box.revision"), rev), t.Dim)
		}
	}
}

// hopSubject says in a few cells what the hop is about.
func hopSubject(h trace.Hop) string {
	switch {
	case h.Stage == stage.Persist && h.Revision > 0 || h.Stage == stage.BindingSaved && h.Revision > 0:
		return fmt.Sprintf("rev %d", h.Revision)
	case h.Reason != "" && h.Outcome != trace.OK:
		return h.Reason
	case h.Object.Name != "":
		return strings.ToLower(h.Object.Kind) + "/" + h.Object.Name
	}
	return h.Verb
}

func revision(f *frame.Frame) int64 {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		if f.Hops[i].Revision > 0 {
			return f.Hops[i].Revision
		}
	}
	return 0
}

func lastOf(f *frame.Frame, b BoxSpec, s *scene) (trace.Hop, bool) {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		h := f.Hops[i]
		if h.To != h.From && h.To != "" && s.stands(b, h.To, "") {
			return h, true
		}
		st, ok := stage.Get(h.Stage)
		if ok && (b.names(st.Component, "") && (h.To == "" || b.names(h.To, "") || b.names(h.From, ""))) {
			return h, true
		}
	}
	return trace.Hop{}, false
}

// The three gates as the whole cluster shows them.
var gateGroups = []struct {
	name   string
	stages []stage.ID
}{
	{"authn", []stage.ID{stage.Authentication}},
	{"authz", []stage.ID{stage.Authorization}},
	{"admission", []stage.ID{stage.Decode, stage.MutatingAdmission, stage.SchemaValidation, stage.ValidatingAdmission}},
}

func drawGateLine(r ui.Region, s *scene, _ box) {
	states := s.f.Stages()
	x := 0
	for i, g := range gateGroups {
		st := frame.Todo
		for _, id := range g.stages {
			if v := states[id]; v != frame.Todo {
				st = v
			}
			if states[id] == frame.Failed {
				break
			}
		}
		if i > 0 {
			x += 2
		}
		ns := s.t.Dim
		if st == frame.Here || st == frame.Failed {
			ns = s.t.Strong
		}
		if x+text.Width(g.name)+2 > r.W {
			break
		}
		x = r.Text(x, 0, g.name+" ", ns)
		m, ms := mark(s.t, st)
		x = r.Text(x, 0, m, ms)
	}
	if r.H > 1 {
		drawRequestLine(r, s, 1)
	}
}

// drawRequestLine says what the API server is asked, or what it answered.
func drawRequestLine(r ui.Region, s *scene, y int) {
	if !s.has || s.hop.From != stage.APIServer && s.hop.To != stage.APIServer {
		return
	}
	st := s.t.Dim
	if s.hop.Bad() {
		st = s.t.Fail
	}
	line := strings.TrimSpace(s.hop.Verb + " " + hopSubject(s.hop))
	r.TextMax(0, y, r.W, line, st)
}

func drawNode(r ui.Region, s *scene, b box) {
	t := s.t
	x := 0
	for i, c := range []stage.Component{stage.Kubelet, stage.Containerd, stage.CNI, stage.KubeProxy} {
		st := t.Dim
		on := stage.On(c, b.node)
		active := s.has && (s.hop.From == on || s.hop.To == on)
		if active {
			st = t.NowStrong
			if s.hop.Bad() {
				st = t.FailStrong
			}
		}
		w := text.Width(string(c))
		if i > 0 {
			x += 2
		}
		if x+w > r.W {
			break
		}
		if active {
			x = r.Text(x, 0, t.Glyph.Here, st) + 0
			if x+w > r.W {
				break
			}
		}
		x = r.Text(x, 0, string(c), st)
	}
	y := 1
	var n *corev1.Node
	for _, v := range s.f.AllNodes(false) {
		if v.Name == b.node {
			n = v
		}
	}
	bars := 0
	if n != nil && r.H >= 6 {
		bars = 1
	}
	drawPodsOf(r.Sub(0, y, r.W, r.H-y-bars), s, b.node)
	if bars > 0 {
		used, whole := s.f.Requests(n, corev1.ResourceCPU)
		label := s.f.Cat.T("box.cpu")
		lx := r.Text(0, r.H-1, label+" ", t.Dim)
		note := fmt.Sprintf(" %s %s %s", cores(used.MilliValue()), s.f.Cat.T("box.of"), cores(whole.MilliValue()))
		bw := max(min(r.W-lx-text.Width(note), 16), 0)
		bx := ui.Bar(r, t, lx, r.H-1, bw, float64(used.MilliValue()), float64(whole.MilliValue()), t.Dim)
		r.TextMax(bx, r.H-1, r.W-bx, note, t.Dim)
	}
}

func cores(milli int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(milli)/1000), ".0")
}

// drawPodsOf draws the Pods of a node as small boxes, or lines where there are many.
func drawPodsOf(r ui.Region, s *scene, node string) int {
	var pods []*corev1.Pod
	for _, p := range s.f.AllPods() {
		if p.Spec.NodeName == node {
			pods = append(pods, p)
		}
	}
	t := s.t
	if len(pods) == 0 {
		if r.H > 1 {
			r.TextMax(0, 1, r.W, s.f.Cat.T("box.noPods"), t.Line)
		}
		return 0
	}
	const bw = 24
	per := max((r.W+1)/(bw+1), 1)
	if r.H >= 4 && len(pods) <= per*(r.H/4) {
		for i, p := range pods {
			q := ui.Rect{X: i % per * (bw + 1), Y: i / per * 4, W: min(bw, r.W), H: 4}
			drawPodBox(r, s, p, q)
		}
		return 0
	}
	for i, p := range pods {
		if i == r.H-1 && len(pods) > r.H {
			r.TextMax(0, i, r.W, s.f.Cat.T("object.more", "n", len(pods)-i), t.Dim)
			break
		}
		if i >= r.H {
			break
		}
		drawPodLine(r, s, p, i)
	}
	return 0
}

func podState(p *corev1.Pod) frame.State {
	switch st := kube.PodStatus(p); {
	case p.Status.Phase == corev1.PodSucceeded:
		return frame.Done
	case p.Status.Phase == corev1.PodFailed:
		return frame.Failed
	case st == "Running" && frame.PodReady(p):
		return frame.Done
	case strings.Contains(st, "BackOff") || strings.HasPrefix(st, "Err") || strings.HasSuffix(st, "Error") || st == "OOMKilled":
		return frame.Failed
	case st == "Terminating":
		return frame.Retry
	}
	return frame.Waiting
}

func drawPodLine(r ui.Region, s *scene, p *corev1.Pod, y int) {
	g, st := mark(s.t, podState(p))
	x := r.Text(0, y, g+" ", st)
	status := kube.PodStatus(p)
	nw := max(min(r.W-x-text.Width(status)-1, text.Width(p.Name)), 4)
	x = r.TextMax(x, y, nw, shortPod(p, nw), s.t.Text)
	r.TextMax(x+1, y, r.W-x-1, status, s.t.Dim)
}

// shortPod keeps the end of a generated name: the part that tells Pods apart.
func shortPod(p *corev1.Pod, w int) string {
	if text.Width(p.Name) <= w {
		return p.Name
	}
	return text.TruncateLeft(p.Name, w)
}

func drawPodBox(r ui.Region, s *scene, p *corev1.Pod, q ui.Rect) {
	t := s.t
	fs, ts := t.Line, t.Text
	if s.hop.Object.Kind == "Pod" && s.hop.Object.Name == p.Name {
		fs, ts = s.now, t.Strong
	}
	r.TitledBox(q, t.Glyph.Square, fs, shortPod(p, q.W-5), ts)
	in := r.Sub(q.X+2, q.Y+1, q.W-4, q.H-2)
	g, st := mark(t, podState(p))
	y := 0
	for _, c := range p.Spec.Containers {
		if y >= in.H-1 && y > 0 {
			break
		}
		x := in.Text(0, y, t.Glyph.Container+" ", t.Dim)
		in.TextMax(x, y, in.W-x, c.Name, t.Text)
		y++
	}
	x := in.Text(0, in.H-1, g+" ", st)
	in.TextMax(x, in.H-1, in.W-x, kube.PodStatus(p), st)
}

func drawRegistryLine(r ui.Region, s *scene, b box) {
	t := s.t
	st := t.Dim
	if b.active {
		st = t.NowStrong
	}
	x := r.TextMax(0, 0, r.W, "registry", st)
	images := []string{}
	seen := map[string]bool{}
	for _, p := range s.f.AllPods() {
		for _, c := range p.Spec.Containers {
			if !seen[c.Image] {
				seen[c.Image] = true
				images = append(images, t.Glyph.Blueprint+" "+c.Image)
			}
		}
	}
	r.TextMax(x+3, 0, r.W-x-3, ui.Join(r.W-x-3, "   ", images...), t.Dim)
}

// drawNeighbourhood draws the two ends of the hop and what stands between them: the
// diagram for small terminals.
func drawNeighbourhood(r ui.Region, s *scene, _ box) {
	t, h := s.t, s.hop
	if !s.has {
		r.TextCenter(0, r.H/2, r.W, s.f.Cat.T("app.start"), t.Dim)
		return
	}
	bh := min(max(r.H-2, 3), 4)
	y := (r.H - bh) / 2
	if r.H >= 8 {
		s.podStrip(r, r.H-1)
		y = (r.H - 1 - bh) / 2
	}
	from, to := h.From, h.To
	if from == "" {
		from = to
	}
	if from == to || to == "" {
		w := min(40, r.W-2)
		s.endBox(r, ui.Rect{X: (r.W - w) / 2, Y: y, W: w, H: bh}, from, true)
		return
	}
	w := min(max((r.W-18)/2, 12), 30)
	gap := min(max(r.W-2*w, 2), 30)
	x := (r.W - 2*w - gap) / 2
	a, b := ui.Rect{X: x, Y: y, W: w, H: bh}, ui.Rect{X: x + w + gap, Y: y, W: w, H: bh}
	s.endBox(r, a, from, false)
	s.endBox(r, b, to, true)
	path := ui.Route(a.Port(ui.Right, .5), ui.Right, b.Port(ui.Left, .5), ui.Left)
	r.Edge(&t.Glyph, path, s.now, false, true)
	r.TextCenter(x+w, y+(bh-1)/2-1, gap, h.Verb, t.Strong)
	old := s.r
	s.r = r
	s.packet(path)
	s.r = old
}

// podStrip draws all nodes and the Pods on them in one row.
func (s *scene) podStrip(r ui.Region, y int) {
	t := s.t
	x := 1
	for _, n := range s.workers(4) {
		x = r.TextMax(x, y, r.W-x, n, t.Dim) + 1
		mine := 0
		for _, p := range s.f.AllPods() {
			if p.Spec.NodeName != n {
				continue
			}
			mine++
			g, st := mark(t, podState(p))
			ns := t.Text
			if s.hop.Object.Name == p.Name {
				ns = t.Strong
			}
			name := shortPod(p, 12)
			if x+text.Width(name)+2 > r.W {
				return
			}
			x = r.Text(x, y, g+" ", st)
			x = r.Text(x, y, name, ns) + 1
		}
		if mine == 0 {
			x = r.Text(x, y, t.Glyph.Todo, t.Line) + 1
		}
		x += 3
	}
}

func (s *scene) endBox(r ui.Region, q ui.Rect, c stage.Component, here bool) {
	kind, node := c.Split()
	title := string(kind)
	if node != "" {
		title += " " + s.t.Glyph.Dot + " " + string(node)
	}
	frm, st := s.t.Glyph.Box, s.t.Dim
	if here {
		frm, st = s.t.Glyph.Heavy, s.now
	}
	r.TitledBox(q, frm, st, title, s.t.Strong)
	in := r.Sub(q.X+2, q.Y+1, q.W-4, q.H-2)
	if here {
		g, ms := mark(s.t, hereState(s.hop))
		x := in.Text(0, 0, g+" ", ms)
		in.TextMax(x, 0, in.W-x, s.f.Cat.Stage(s.hop.Stage), s.t.Strong)
		in.TextMax(0, 1, in.W, hopSubject(s.hop), s.t.Dim)
	} else {
		in.TextMax(0, 0, in.W, s.hop.Object.Name, s.t.Dim)
	}
}
