package panes

import (
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	"podwalk/tui/ui"
)

// Object is the truth panel: the five words that beginners mix up, as they are at one
// and the same moment, and the fields that the hop changed.
func Object(r ui.Region, t *theme, f *frame.Frame) int {
	y := 0
	if p := f.FocusPod(); p != nil {
		y = Truth(r, t, f, p)
		y++
	}
	h, ok := f.Hop()
	if !ok {
		return y
	}
	before, after := f.ObjectChange()
	diffs := frame.Compare(before, after)
	var shown []frame.Diff
	for _, d := range diffs {
		if d.Path != "metadata.resourceVersion" && d.Path != "metadata.generation" {
			shown = append(shown, d)
		}
	}
	r.TextMax(0, y, r.W, f.Cat.T("object.changed"), t.Dim)
	y++
	if len(shown) == 0 {
		return r.Rich(0, y, r.W, f.Cat.T("object.nothing"), t.Dim, t.Dim, t.Dim)
	}
	r.TextMax(0, y, r.W, h.Object.String(), t.Strong)
	y++
	return DrawDiffs(r, t, f, shown, y)
}

// Truth puts phase, container state, STATUS, conditions and the last event side by side;
// what changed in this hop is marked.
func Truth(r ui.Region, t *theme, f *frame.Frame, p *corev1.Pod) int {
	var old *corev1.Pod
	if f.Before != nil {
		old, _ = f.Before.Get(frame.Pods, p.Namespace, p.Name).(*corev1.Pod)
	}
	x := r.TextMax(0, 0, r.W, p.Name, t.Strong)
	r.TextMax(x+2, 0, r.W-x-2, f.Cat.T("truth.title"), t.Dim)
	rows := []struct {
		label, now, was string
		bad             bool
	}{
		{f.Cat.T("truth.phase"), string(p.Status.Phase), phaseOf(old), p.Status.Phase == corev1.PodFailed},
		{f.Cat.T("truth.container"), containersText(f, p), containersText(f, old), false},
		{f.Cat.T("truth.status"), statusText(p), statusText(old), podState(p) == frame.Failed},
		{f.Cat.T("truth.conditions"), conditionsText(t, p), conditionsText(t, old), false},
		{f.Cat.T("truth.event"), eventText(f, p), "", false},
	}
	lw := 0
	for _, row := range rows {
		lw = max(lw, text.Width(row.label))
	}
	y := 1
	for i, row := range rows {
		st := t.Text
		if row.bad {
			st = t.Fail
		}
		lead := " "
		if old != nil && i < 4 && row.now != row.was || old == nil && f.Before != nil && i < 4 {
			lead, st = t.Glyph.Change, t.Changed
		}
		r.Text(0, y, lead, t.Now)
		r.Text(2, y, row.label, t.Dim)
		for _, l := range text.Wrap(row.now, max(r.W-lw-4, 8)) {
			r.Text(lw+4, y, l, st)
			y++
		}
	}
	return y
}

func phaseOf(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	return string(p.Status.Phase)
}

func statusText(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	return frame.ReadyOf(p) + "  " + kube.PodStatus(p)
}

func containersText(f *frame.Frame, p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, c := range p.Status.ContainerStatuses {
		state, reason := frame.ContainerState(c)
		s := strings.TrimSpace(state + " " + reason)
		if len(p.Spec.Containers) > 1 {
			s = c.Name + ": " + s
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return f.Cat.T("truth.none")
	}
	return strings.Join(parts, "\n")
}

func conditionsText(t *theme, p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, c := range p.Status.Conditions {
		g := t.Glyph.Failed
		switch c.Status {
		case corev1.ConditionTrue:
			g = t.Glyph.Done
		case corev1.ConditionUnknown:
			g = "?"
		}
		parts = append(parts, g+" "+string(c.Type))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "\n")
}

func eventText(f *frame.Frame, p *corev1.Pod) string {
	e := lastEvent(f, trace.Ref{Kind: "Pod", Name: p.Name})
	if e == nil {
		return f.Cat.T("truth.none")
	}
	return e.Reason
}

// Events lists the events as kubectl does, newest last, with the wrapped message below
// each.
func Events(r ui.Region, t *theme, f *frame.Frame) int {
	es := f.EventsOf(trace.Ref{})
	if len(es) == 0 {
		return r.Rich(0, 0, r.W, f.Cat.T("events.none"), t.Dim, t.Strong, t.Code)
	}
	y := 0
	for i := len(es) - 1; i >= 0; i-- {
		e := es[i]
		g, st := t.Glyph.Dot, t.Dim
		ns := t.Strong
		if e.Type == corev1.EventTypeWarning {
			g, st, ns = t.Glyph.Failed, t.FailStrong, t.FailStrong
		}
		x := r.Text(0, y, g+" ", st)
		x = r.TextMax(x, y, r.W-x, e.Reason, ns)
		if e.Count > 1 {
			x = r.Text(x+1, y, fmt.Sprintf("×%d", e.Count), t.Dim)
		}
		note := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name + "  " + age(f.Now(), e)
		if left := r.W - x - 2; left > 6 {
			r.TextRight(r.W, y, text.TruncateLeft(note, left), t.Dim)
		}
		y++
		ms := t.Text
		for j, l := range text.Wrap(e.Message, max(r.W-2, 4)) {
			if j == 4 {
				break
			}
			r.Text(2, y, l, ms)
			y++
		}
		y++
	}
	return y
}

func age(now kernel.Time, e *corev1.Event) string {
	ts := e.LastTimestamp.Time
	if ts.IsZero() {
		ts = e.EventTime.Time
	}
	d := max(now.Wall().Sub(ts), 0)
	switch {
	case d.Seconds() < 120:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d.Minutes() < 120:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}

// Request shows the request and the answer of the newest HTTP hop.
func Request(r ui.Region, t *theme, f *frame.Frame) int {
	h, hop, ok := frame.Last[trace.HTTP](f, nil)
	if !ok {
		return r.Rich(0, 0, r.W, f.Cat.T("request.none"), t.Dim, t.Strong, t.Code)
	}
	y := 0
	if here, _ := f.Hop(); here.Seq != hop.Seq {
		r.TextMax(0, y, r.W, f.Cat.T("request.last", "t", Duration(f.Since(hop))), t.Dim)
		y++
	}
	x := r.Text(0, y, h.Method+" ", t.NowStrong)
	for _, l := range text.Wrap(h.Path, max(r.W-x, 8)) {
		r.Text(x, y, l, t.Code)
		y++
	}
	if h.User != "" {
		x := r.Text(0, y, f.Cat.T("request.user")+" ", t.Dim)
		r.TextMax(x, y, r.W-x, h.User, t.Text)
		y++
	}
	if h.Code > 0 {
		st := t.OK
		if h.Code >= 400 {
			st = t.FailStrong
		}
		r.TextMax(0, y, r.W, t.Glyph.ArrowLeft+fmt.Sprintf(" %d %s", h.Code, http.StatusText(h.Code)), st)
		y++
	}
	if hop.Message != "" {
		for _, l := range text.Wrap(hop.Message, r.W) {
			r.Text(0, y, l, t.Text)
			y++
		}
	}
	if len(h.Body) > 0 {
		y++
		for _, l := range strings.Split(string(h.Body), "\n") {
			for _, w := range text.Wrap(l, r.W) {
				r.Text(0, y, w, t.Dim)
				y++
			}
		}
	}
	return y
}

// Why shows the chain of causes that ends at the cursor: this hop on top, below it what
// led to it, down to where it began.
func Why(r ui.Region, t *theme, f *frame.Frame) int {
	chain := f.Why()
	r.TextMax(0, 0, r.W, f.Cat.T("why.title"), t.Dim)
	y := 2
	for i := len(chain) - 1; i >= 0; i-- {
		y = whyLink(r, t, f, chain[i], i == len(chain)-1, y)
		if i > 0 {
			r.Text(0, y, t.Glyph.Up, t.Line)
			y++
		}
	}
	return y
}

func whyLink(r ui.Region, t *theme, f *frame.Frame, h trace.Hop, here bool, y int) int {
	g, st := mark(t, frame.Of(h.Outcome))
	ws := t.Text
	if here {
		g, st = mark(t, hereState(h))
		ws = t.Strong
	}
	r.Text(0, y, g, st)
	x := r.Text(2, y, string(h.Step()), t.Key)
	x = r.TextMax(x+1, y, r.W-x-1, f.Cat.Stage(h.Stage), ws)
	if h.Verb != "" {
		x = r.TextMax(x+1, y, r.W-x-1, h.Verb, t.Dim)
	}
	who := fromTo(t, h)
	if left := r.W - x - 2; left >= text.Width(who) {
		r.TextRight(r.W, y, who, t.Dim)
	}
	y++
	if !h.Bad() && !here {
		return y
	}
	fs := t.Dim
	if h.Bad() {
		fs = t.Fail
	}
	for j, l := range text.Wrap(firstOf(h.Message, h.Reason), max(r.W-4, 4)) {
		if j == 3 || l == "" {
			break
		}
		r.Text(2, y, l, fs)
		y++
	}
	return y
}

func firstOf(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}

func fromTo(t *theme, h trace.Hop) string {
	if h.From == h.To || h.To == "" || h.From == "" {
		return firstOf(string(h.From), string(h.To))
	}
	return string(h.From) + " " + t.Glyph.ArrowRight + " " + string(h.To)
}

// Hops lists the hops around the cursor, one a line: the trace as a log.
func Hops(r ui.Region, t *theme, f *frame.Frame) int {
	first := max(len(f.Hops)-r.H, 0)
	for i, h := range f.Hops[first:] {
		cur := first+i == len(f.Hops)-1
		g, st := mark(t, frame.Of(h.Outcome))
		ws := t.Dim
		if cur {
			g, st = mark(t, hereState(h))
			ws = t.Strong
		}
		x := r.Text(0, i, text.PadLeft(Duration(f.Since(h)), 9)+" ", t.Line)
		x = r.Text(x, i, text.PadLeft(string(h.Step()), 2)+" ", t.Key)
		x = r.Text(x, i, g+" ", st)
		x = r.Text(x, i, text.Fit(f.Cat.StageShort(h.Stage), 9), ws)
		line := strings.TrimSpace(h.Verb + " " + h.Object.Name)
		if h.Outcome != trace.OK {
			line = strings.TrimSpace(h.Verb + " " + firstOf(h.Reason, h.Message))
		}
		end := r.TextMax(x, i, min(r.W-x, 34), line, ws)
		if r.W > 80 && h.Message != "" {
			r.TextMax(max(end, x+32)+2, i, r.W-max(end, x+32)-2, h.Message, t.Line)
		}
	}
	return min(len(f.Hops), r.H)
}
