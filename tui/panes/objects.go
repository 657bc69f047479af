package panes

import (
	"fmt"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"podwalk/engine/kube"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
	"podwalk/tui/text"
	themepkg "podwalk/tui/theme"
	"podwalk/tui/ui"
)

// Short names for what nearly every function of this package takes.
type (
	theme = themepkg.Theme
	style = themepkg.Style
)

// drawTree draws who owns whom: Deployments, their ReplicaSets, their Pods; desired and
// current counts beside each.
func drawTree(r ui.Region, s *scene, _ box) {
	d := &tree{r: r, s: s, pods: s.f.AllPods()}
	sets := frame.ListOf[*appsv1.ReplicaSet](s.f, frame.ReplicaSets)
	for _, dep := range frame.ListOf[*appsv1.Deployment](s.f, frame.Deployments) {
		note, st := d.count(dep.Spec.Replicas, dep.Status.Replicas, dep.Status.ReadyReplicas)
		d.put(0, true, dep, "Deployment", note, st)
		d.sets(1, dep.Name, sets)
	}
	d.sets(0, "", sets)
	d.podsOf(0, "")
	if d.y == 0 {
		r.TextMax(0, 0, r.W, s.f.Cat.T("object.none"), s.t.Line)
	}
}

// tree draws owners and what they own, one line an object, from the top downwards.
type tree struct {
	r    ui.Region
	s    *scene
	y    int
	pods []*corev1.Pod
}

func (d *tree) put(depth int, last bool, o frame.Object, kind, note string, noteStyle *style) {
	if d.y >= d.r.H {
		return
	}
	r, s, t := d.r, d.s, d.s.t
	x := depth * 4
	if depth > 0 {
		g := t.Glyph.BranchMid
		if last {
			g = t.Glyph.Branch
		}
		r.Text(x-3, d.y, g+t.Glyph.Track+t.Glyph.Track, t.Line)
	}
	ks, ns := t.Dim, t.Text
	if s.has && s.hop.Object.Name == o.GetName() && strings.EqualFold(s.hop.Object.Kind, kind) {
		g, st := mark(t, hereState(s.hop))
		r.Text(x, d.y, g, st)
		ns = t.Strong
	}
	x = r.Text(x+2, d.y, kind+" ", ks)
	x = r.TextMax(x, d.y, max(r.W-x-text.Width(note)-2, 6), o.GetName(), ns)
	r.TextMax(x+2, d.y, r.W-x-2, note, noteStyle)
	d.y++
	d.event(depth, o, kind)
}

// event adds an object's last event where there is room and it matters.
func (d *tree) event(depth int, o frame.Object, kind string) {
	r, s, t := d.r, d.s, d.s.t
	if d.y >= r.H || r.H < 8 {
		return
	}
	e := lastEvent(s.f, trace.Ref{Kind: kind, Name: o.GetName()})
	if e == nil || e.Type != corev1.EventTypeWarning && s.hop.Object.Name != o.GetName() {
		return
	}
	es := t.Dim
	if e.Type == corev1.EventTypeWarning {
		es = t.Fail
	}
	r.TextMax(depth*4+2, d.y, r.W-depth*4-2, t.Glyph.Change+" "+e.Reason+": "+e.Message, es)
	d.y++
}

// count says what is wanted, what is there and what is ready.
func (d *tree) count(want *int32, have, ready int32) (string, *style) {
	n := int32(1)
	if want != nil {
		n = *want
	}
	cat := d.s.f.Cat
	note := fmt.Sprintf("%s %d  %s %d  %s %d", cat.T("box.desired"), n, cat.T("box.current"), have, cat.T("box.ready"), ready)
	if ready == n {
		return note, d.s.t.OK
	}
	return note, d.s.t.Wait
}

func (d *tree) sets(depth int, owner string, all []*appsv1.ReplicaSet) {
	var mine []*appsv1.ReplicaSet
	for _, rs := range all {
		if ownerName(rs) == owner {
			mine = append(mine, rs)
		}
	}
	for i, rs := range mine {
		note, st := d.count(rs.Spec.Replicas, rs.Status.Replicas, rs.Status.ReadyReplicas)
		d.put(depth, i == len(mine)-1, rs, "ReplicaSet", note, st)
		d.podsOf(depth+1, rs.Name)
	}
}

func (d *tree) podsOf(depth int, owner string) {
	var mine []*corev1.Pod
	for _, p := range d.pods {
		if ownerName(p) == owner {
			mine = append(mine, p)
		}
	}
	for i, p := range mine {
		_, st := mark(d.s.t, podState(p))
		d.put(depth, i == len(mine)-1, p, "Pod", frame.ReadyOf(p)+" "+kube.PodStatus(p), st)
	}
}

func ownerName(o frame.Object) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return ref.Name
		}
	}
	return ""
}

func lastEvent(f *frame.Frame, ref trace.Ref) *corev1.Event {
	es := f.EventsOf(ref)
	if len(es) == 0 {
		return nil
	}
	return es[len(es)-1]
}

// drawRouting draws client → Service → EndpointSlice → Pods; a Pod that is not ready
// stands outside of the slice.
func drawRouting(r ui.Region, s *scene, _ box) {
	t := s.t
	var svc *corev1.Service
	for _, v := range frame.ListOf[*corev1.Service](s.f, frame.Services) {
		if v.Name != "kubernetes" && v.Namespace != "kube-system" {
			svc = v
		}
	}
	if svc == nil {
		r.TextMax(0, 0, r.W, s.f.Cat.T("object.none"), t.Line)
		return
	}
	bh := min(max(r.H/3, 3), 5)
	w := min((r.W-8)/3, 26)
	mid := max((r.H-bh)/2, 0)
	svcBox := ui.Rect{X: 0, Y: mid, W: w, H: bh}
	r.TitledBox(svcBox, t.Glyph.Box, t.Text, "Service "+svc.Name, t.Strong)
	in := r.At(svcBox.Inset(1))
	in.TextMax(1, 0, in.W-1, svc.Spec.ClusterIP, t.Code)
	in.TextMax(1, 1, in.W-1, selectorText(svc.Spec.Selector), t.Dim)
	ready, rest := endpoints(s.f, svc)
	sliceBox := ui.Rect{X: w + 6, Y: 0, W: r.W - w - 6, H: max(min(len(ready)+2, r.H-len(rest)), 3)}
	es, title := t.OK, s.f.Cat.T("box.endpoints")
	if len(ready) == 0 {
		es = t.Fail
	}
	if sliceBox.Y+sliceBox.H/2 < mid+1 {
		sliceBox.Y = min(max(mid+bh/2-sliceBox.H/2, 0), max(r.H-sliceBox.H-len(rest)-1, 0))
	}
	r.TitledBox(sliceBox, t.Glyph.Square, es, "EndpointSlice "+t.Glyph.Dot+" "+title, t.Strong)
	path := ui.Route(svcBox.Port(ui.Right, .5), ui.Right, sliceBox.Port(ui.Left, .5), ui.Left)
	r.Edge(&t.Glyph, path, es, false, true)
	if len(ready) > 0 {
		p := path[int(s.f.Progress*float64(len(path)-1))]
		r.Set(p.X, p.Y, t.Glyph.Packet, t.NowStrong)
	} else {
		r.Set(path[len(path)/2].X, path[len(path)/2].Y, t.Glyph.Failed, t.FailStrong)
	}
	for i, p := range ready {
		if i >= sliceBox.H-2 {
			break
		}
		x := r.Text(sliceBox.X+2, sliceBox.Y+1+i, t.Glyph.Done+" ", t.OK)
		r.TextMax(x, sliceBox.Y+1+i, sliceBox.W-5, p, t.Text)
	}
	if len(ready) == 0 {
		r.TextMax(sliceBox.X+2, sliceBox.Y+1, sliceBox.W-4, s.f.Cat.T("box.empty"), t.Fail)
	}
	for i, p := range rest {
		x := r.Text(sliceBox.X+2, sliceBox.Y+sliceBox.H+i, t.Glyph.Waiting+" ", t.Wait)
		r.TextMax(x, sliceBox.Y+sliceBox.H+i, sliceBox.W-4, p+"  "+s.f.Cat.T("box.outside"), t.Dim)
	}
}

func selectorText(m map[string]string) string {
	var parts []string
	for k, v := range m {
		parts = append(parts, k+"="+v)
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

// endpoints returns the ready addresses of a Service and the Pods that are not among
// them though they match or nearly match.
func endpoints(f *frame.Frame, svc *corev1.Service) (ready, rest []string) {
	in := map[string]bool{}
	for _, sl := range frame.ListOf[*discoveryv1.EndpointSlice](f, frame.EndpointSlices) {
		if sl.Labels[discoveryv1.LabelServiceName] != svc.Name {
			continue
		}
		for _, e := range sl.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
				continue
			}
			name := ""
			if e.TargetRef != nil {
				name = e.TargetRef.Name
				in[name] = true
			}
			ready = append(ready, text.Pad(e.Addresses[0], 12)+" "+name)
		}
	}
	for _, p := range f.AllPods() {
		if !in[p.Name] {
			rest = append(rest, p.Name+" "+frame.ReadyOf(p)+" "+selectorText(p.Labels))
		}
	}
	return ready, rest
}

func drawRules(r ui.Region, s *scene, _ box) {
	n, _, ok := frame.Last[trace.Network](s.f, func(h trace.Hop) bool {
		d, is := h.Detail.(trace.Network)
		return is && len(d.Rules) > 0
	})
	if !ok {
		r.TextMax(0, 0, r.W, s.f.Cat.T("box.notYet"), s.t.Line)
		return
	}
	for i, l := range n.Rules {
		if i >= r.H {
			break
		}
		r.TextMax(0, i, r.W, l, s.t.Code)
	}
}
