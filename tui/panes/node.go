package panes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

func podTitle(f *frame.Frame) string {
	p := f.FocusPod()
	if p == nil {
		return f.Cat.T("box.pod")
	}
	s := f.Cat.T("box.pod") + " " + p.Name
	if p.Status.PodIP != "" {
		s += "  " + p.Status.PodIP
	}
	return s
}

// drawPodInside draws the Pod as a box that fills up: sandbox with its address, volumes,
// image outside as the blueprint, containers with their state and probes.
func drawPodInside(r ui.Region, s *scene, _ box) {
	p := s.f.FocusPod()
	t := s.t
	if p == nil {
		r.TextMax(0, 0, r.W, s.f.Cat.T("box.noPods"), t.Line)
		return
	}
	states := s.f.PodStages()
	x := 0
	for _, part := range []struct {
		id   stage.ID
		word string
	}{{stage.Volumes, s.f.Cat.T("box.volumes")}, {stage.Sandbox, s.f.Cat.T("box.sandbox")}, {stage.Image, s.f.Cat.T("box.image")}} {
		g, st := mark(t, states[part.id])
		ws := t.Text
		if states[part.id] == frame.Todo {
			ws = t.Dim
		}
		x = r.Text(x, 0, g+" ", st)
		x = r.Text(x, 0, part.word, ws)
		switch part.id {
		case stage.Volumes:
			if r.W > 60 {
				x = r.Text(x, 0, fmt.Sprintf(" %d", len(p.Spec.Volumes)), t.Dim)
			}
		case stage.Sandbox:
			if p.Status.PodIP != "" {
				x = r.Text(x, 0, " "+p.Status.PodIP, t.Dim)
			}
		}
		x += 3
	}
	if r.H >= 8 {
		s.volumeNames(r, p)
	}
	y := 2
	if r.H < 6 {
		y = 1
	}
	s.containers(r.Sub(0, y, r.W, r.H-y), p)
}

// volumeNames writes what the volumes are, dimly.
func (s *scene) volumeNames(r ui.Region, p *corev1.Pod) {
	var names []string
	for _, v := range p.Spec.Volumes {
		n := v.Name
		if strings.HasPrefix(n, "kube-api-access-") {
			n = "kube-api-access"
		}
		names = append(names, n)
	}
	if len(names) > 0 {
		r.TextMax(2, 1, r.W-2, strings.Join(names, ", "), s.t.Line)
	}
}

// drawImages draws the images that the Pod's containers are made from: blueprints, outside
// of the Pod, with their layers as they arrive.
func drawImages(r ui.Region, s *scene, _ box) {
	t := s.t
	p := s.f.FocusPod()
	r.TextMax(0, 0, r.W, s.f.Cat.T("box.image"), t.Dim)
	if p == nil {
		return
	}
	y := 1
	for _, c := range p.Spec.Containers {
		if y >= r.H {
			return
		}
		x := r.Text(0, y, t.Glyph.Blueprint+" ", t.Now)
		r.TextMax(x, y, r.W-x, c.Image, t.Text)
		y++
	}
	pull, h, ok := frame.Last[trace.Pull](s.f, nil)
	state := s.f.PodStages()[stage.Image]
	switch {
	case state == frame.Todo:
		r.TextMax(2, y, r.W-2, s.f.Cat.T("box.notYet"), t.Line)
		return
	case state == frame.Failed || state == frame.Retry:
		g, st := mark(t, state)
		r.TextMax(2, y, r.W-2, g+" "+lastReason(s.f, stage.Image), st)
		return
	case !ok || pull.Layers == 0:
		return
	}
	n := pull.Layers
	if h.Outcome == trace.Waiting {
		n = pull.Cached
	}
	w := min(pull.Layers, max(r.W-2, 1))
	full := n * w / pull.Layers
	x := r.Text(2, y, strings.Repeat(t.Glyph.LayerFull, full), t.OK)
	r.Text(x, y, strings.Repeat(t.Glyph.LayerEmpty, w-full), t.Line)
	for i, l := range text.Wrap(s.f.Cat.T("box.layers", "n", n, "m", pull.Layers, "c", pull.Cached), r.W-2) {
		r.TextMax(2, y+1+i, r.W-2, l, t.Dim)
	}
}

func lastReason(f *frame.Frame, id stage.ID) string {
	for i := len(f.Hops) - 1; i >= 0; i-- {
		if f.Hops[i].Stage == id && f.Hops[i].Reason != "" {
			return f.Hops[i].Reason
		}
	}
	return ""
}

// containers draws each container as a box, side by side.
func (s *scene) containers(r ui.Region, p *corev1.Pod) {
	t := s.t
	n := len(p.Spec.Containers)
	if n == 0 || r.H < 1 {
		return
	}
	w := min(max((r.W-(n-1)*2)/n, 14), 44)
	h := min(r.H, 7)
	for i, c := range p.Spec.Containers {
		st := corev1.ContainerStatus{}
		for _, cs := range p.Status.ContainerStatuses {
			if cs.Name == c.Name {
				st = cs
			}
		}
		q := ui.Rect{X: i * (w + 2), Y: 0, W: w, H: h}
		if q.X+q.W > r.W {
			break
		}
		state, reason := frame.ContainerState(st)
		g, gs := containerMark(t, st)
		if h < 4 {
			x := r.Text(q.X, 0, t.Glyph.Container+" ", t.Dim)
			x = r.Text(x, 0, c.Name+"  ", t.Strong)
			x = r.Text(x, 0, g+" ", gs)
			r.TextMax(x, 0, r.W-x, strings.TrimSpace(state+" "+reason), gs)
			if h > 1 {
				r.TextMax(q.X+2, 1, q.W-2, t.Glyph.Blueprint+" "+c.Image, t.Dim)
			}
			continue
		}
		r.TitledBox(q, t.Glyph.Square, t.Dim, t.Glyph.Container+" "+c.Name, t.Strong)
		in := r.Sub(q.X+2, 1, q.W-4, h-2)
		x := in.Text(0, 0, g+" ", gs)
		in.TextMax(x, 0, in.W-x, strings.TrimSpace(state+" "+reason), gs)
		in.TextMax(0, 1, in.W, t.Glyph.Blueprint+" "+c.Image, t.Dim)
		s.probeLines(in.Sub(0, 2, in.W, in.H-2), p, c, st)
	}
}

func containerMark(t *theme, c corev1.ContainerStatus) (string, *style) {
	switch {
	case c.State.Running != nil && c.Ready:
		return mark(t, frame.Done)
	case c.State.Running != nil:
		return mark(t, frame.Here)
	case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
		return mark(t, frame.Done)
	case c.State.Terminated != nil:
		return mark(t, frame.Failed)
	case c.State.Waiting != nil && (strings.Contains(c.State.Waiting.Reason, "BackOff") || strings.Contains(c.State.Waiting.Reason, "Err")):
		return mark(t, frame.Failed)
	case c.State.Waiting != nil:
		return mark(t, frame.Waiting)
	}
	return mark(t, frame.Todo)
}

// probeLines draws the answers of each probe as a pulse: the newest on the right.
func (s *scene) probeLines(r ui.Region, p *corev1.Pod, c corev1.Container, st corev1.ContainerStatus) {
	t := s.t
	y := 0
	for _, kind := range []struct {
		name string
		spec *corev1.Probe
	}{{"startup", c.StartupProbe}, {"liveness", c.LivenessProbe}, {"readiness", c.ReadinessProbe}} {
		if kind.spec == nil || y >= r.H {
			continue
		}
		x := r.Text(0, y, text.Pad(kind.name, 10), t.Dim)
		for _, ok := range s.pulse(p.Name, c.Name, kind.name, r.W-x) {
			if ok {
				x = r.Text(x, y, t.Glyph.Done, t.OK)
			} else {
				x = r.Text(x, y, t.Glyph.Failed, t.FailStrong)
			}
		}
		y++
	}
	if st.RestartCount > 0 && y < r.H {
		r.TextMax(0, y, r.W, fmt.Sprintf("%s %d", t.Glyph.Retry, st.RestartCount), t.Wait)
	}
}

func (s *scene) pulse(pod, container, kind string, room int) []bool {
	var out []bool
	for _, h := range s.f.Hops {
		if d, ok := h.Detail.(trace.Probe); ok && d.Kind == kind && d.Container == container && h.Object.Name == pod {
			out = append(out, d.Success)
		}
	}
	if len(out) > room {
		out = out[len(out)-max(room, 0):]
	}
	return out
}
