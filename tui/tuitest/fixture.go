// Package tuitest holds runs that were written down by hand, so that the screens can be
// drawn and tested without an engine: the gallery and the tests use it. The messages are
// those of Kubernetes 1.37.
package tuitest

import (
	"maps"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
)

// Run is a recorded run. It implements the player's Timeline.
type Run struct {
	hops   []trace.Hop
	views  []view // after hop i
	start  view
	shown  int // hops known so far
	chunk  int // hops that RunMore adds
	branch string
	twin   []trace.Hop
	focus  trace.Ref
}

// Len implements player.Timeline.
func (r *Run) Len() int { return r.shown }

// Hop implements player.Timeline.
func (r *Run) Hop(i int) trace.Hop { return r.hops[i] }

// At implements player.Timeline.
func (r *Run) At(i int) frame.View {
	if i < 0 {
		return r.start
	}
	return r.views[i]
}

// RunMore implements player.Timeline.
func (r *Run) RunMore() (bool, error) {
	r.shown = min(r.shown+r.chunk, len(r.hops))
	return r.shown < len(r.hops), nil
}

// Branch implements player.Timeline.
func (r *Run) Branch() string { return r.branch }

// Twin implements player.Timeline.
func (r *Run) Twin() []trace.Hop {
	return r.twin
}

// Origin implements player.Timeline.
func (r *Run) Origin() kernel.Time { return 0 }

// Focus implements player.Timeline.
func (r *Run) Focus() trace.Ref { return r.focus }

type view struct {
	at      kernel.Time
	objects map[key]frame.Object
}

type key struct {
	gvr      schema.GroupVersionResource
	ns, name string
}

func (v view) Now() kernel.Time { return v.at }

func (v view) Get(gvr schema.GroupVersionResource, ns, name string) frame.Object {
	return v.objects[key{gvr, ns, name}]
}

func (v view) List(gvr schema.GroupVersionResource, ns string) []frame.Object {
	var keys []key
	for k := range v.objects {
		if k.gvr == gvr && (ns == "" || k.ns == ns) {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].ns+"/"+keys[i].name < keys[j].ns+"/"+keys[j].name })
	out := make([]frame.Object, len(keys))
	for i, k := range keys {
		out[i] = v.objects[k]
	}
	return out
}

// builder writes a run down.
type builder struct {
	run  *Run
	now  view
	rev  int64
	obj  trace.Ref
	evts int
}

func newBuilder(pod string) *builder {
	b := &builder{run: &Run{chunk: 25}, now: view{objects: map[key]frame.Object{}}, rev: 210}
	b.obj = trace.Ref{Kind: "Pod", Namespace: "default", Name: pod}
	b.run.focus = b.obj
	b.put(frame.Nodes, node("controlplane", true))
	b.put(frame.Nodes, node("node01", false))
	b.put(frame.Nodes, node("node02", false))
	web := pod1("web-5f6", "nginx:1.29")
	web.Spec.NodeName = "node01"
	web.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1900m")}
	running(web, "10.244.1.5")
	b.put(frame.Pods, web)
	b.run.start = b.snapshot()
	return b
}

func (b *builder) snapshot() view { return view{b.now.at, maps.Clone(b.now.objects)} }

func (b *builder) put(gvr schema.GroupVersionResource, o frame.Object) {
	b.now.objects[key{gvr, o.GetNamespace(), o.GetName()}] = o
}

// hop appends a hop d after the one before.
func (b *builder) hop(d time.Duration, h trace.Hop) {
	b.now.at = b.now.at.Add(d)
	h.At, h.Seq = b.now.at, uint64(len(b.run.hops)+1)
	if h.Cause == 0 {
		h.Cause = h.Seq - 1
	}
	if h.Outcome == "" {
		h.Outcome = trace.OK
	}
	if h.Object.Name == "" {
		h.Object = b.obj
	}
	b.run.hops = append(b.run.hops, h)
	b.run.views = append(b.run.views, b.snapshot())
}

// change stores the new state of a Pod and appends the hop that made it.
func (b *builder) change(d time.Duration, h trace.Hop, edit func(p *corev1.Pod)) {
	k := key{frame.Pods, b.obj.Namespace, b.obj.Name}
	old, _ := b.now.objects[k].(*corev1.Pod)
	p := old.DeepCopy()
	edit(p)
	b.now.objects[k] = p
	b.rev++
	h.Revision = b.rev
	h.Detail = trace.Change{Before: old, After: p}
	b.hop(d, h)
}

func (b *builder) event(kind, reason, from, msg string) {
	b.evts++
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: b.obj.Name + "." + string(rune('a'+b.evts))},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: b.obj.Name},
		Type:           kind, Reason: reason, Message: msg, Count: 1,
		Source:        corev1.EventSource{Component: from},
		LastTimestamp: metav1.NewTime(b.now.at.Wall()),
	}
	b.put(frame.Events, e)
}

func node(name string, cp bool) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	if cp {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
		n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func pod1(name, image string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"run": name}}}
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.Spec.Containers = []corev1.Container{{Name: "nginx", Image: image, ImagePullPolicy: corev1.PullIfNotPresent}}
	p.Status.Phase = corev1.PodPending
	return p
}

func running(p *corev1.Pod, ip string) {
	yes := true
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, ip
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: p.Spec.Containers[0].Name, Ready: true, Started: &yes, Image: p.Spec.Containers[0].Image,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	conditions(p, "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
}

func waiting(p *corev1.Pod, reason string) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
	}}
}

func conditions(p *corev1.Pod, trueOnes ...string) {
	p.Status.Conditions = nil
	for _, c := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		st := corev1.ConditionFalse
		for _, y := range trueOnes {
			if y == c {
				st = corev1.ConditionTrue
			}
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(c), Status: st})
	}
}

const ms = time.Millisecond

var plugins = []string{
	"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
}

func sched(id stage.ID, verb string) trace.Hop {
	return trace.Hop{Stage: id, From: stage.Scheduler, To: stage.Scheduler, Verb: verb}
}

func gate(id stage.ID, verb, reason string) trace.Hop {
	return trace.Hop{Stage: id, From: stage.APIServer, To: stage.APIServer, Verb: verb, Reason: reason}
}
