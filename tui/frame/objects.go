package frame

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// FocusPod returns the Pod that is followed as it is at the cursor, nil while there is
// none.
func (f *Frame) FocusPod() *corev1.Pod {
	if f.View == nil || f.Pod.Name == "" {
		return nil
	}
	p, _ := f.View.Get(Pods, f.Pod.Namespace, f.Pod.Name).(*corev1.Pod)
	return p
}

// AllPods returns the Pods outside kube-system.
func (f *Frame) AllPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range list[*corev1.Pod](f, Pods) {
		if p.Namespace != "kube-system" {
			out = append(out, p)
		}
	}
	return out
}

// AllNodes returns the nodes; workers says without those of the control plane.
func (f *Frame) AllNodes(workers bool) []*corev1.Node {
	var out []*corev1.Node
	for _, n := range list[*corev1.Node](f, Nodes) {
		if _, cp := n.Labels["node-role.kubernetes.io/control-plane"]; !cp || !workers {
			out = append(out, n)
		}
	}
	return out
}

// EventsOf returns the events about an object, oldest first; for an empty name all
// events outside kube-system, without those of nodes from before the story.
func (f *Frame) EventsOf(ref trace.Ref) []*corev1.Event {
	var out []*corev1.Event
	for _, e := range list[*corev1.Event](f, Events) {
		o := e.InvolvedObject
		if ref.Name == "" && (o.Namespace == "kube-system" || o.Kind == "Node" && e.LastTimestamp.Time.Before(f.Origin.Wall())) {
			continue
		}
		if ref.Name == "" || o.Name == ref.Name && o.Kind == ref.Kind {
			out = append(out, e)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		return out[i].LastTimestamp.Time.Before(out[j].LastTimestamp.Time)
	})
	return out
}

// List returns the objects of a resource that are a T.
func list[T Object](f *Frame, gvr schema.GroupVersionResource) []T {
	if f.View == nil {
		return nil
	}
	var out []T
	for _, o := range f.View.List(gvr, "") {
		if v, ok := o.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

// ListOf is list for other packages.
func ListOf[T Object](f *Frame, gvr schema.GroupVersionResource) []T { return list[T](f, gvr) }

// ReadyOf returns "1/2": containers ready of containers.
func ReadyOf(p *corev1.Pod) string {
	n := 0
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(p.Spec.Containers))
}

// PodReady reports whether the Pod's condition Ready is True.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ContainerState returns a container's state in two words: "Waiting
// ImagePullBackOff".
func ContainerState(c corev1.ContainerStatus) (state, reason string) {
	switch {
	case c.State.Running != nil:
		return "Running", ""
	case c.State.Terminated != nil:
		return "Terminated", kube.Terminated(c.State.Terminated)
	case c.State.Waiting != nil:
		return "Waiting", c.State.Waiting.Reason
	}
	return "", ""
}

// Requests returns what the Pods on a node ask for, and what it can give.
func (f *Frame) Requests(n *corev1.Node, name corev1.ResourceName) (used, whole resource.Quantity) {
	for _, p := range list[*corev1.Pod](f, Pods) {
		if p.Spec.NodeName != n.Name || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, c := range p.Spec.Containers {
			if q, ok := c.Resources.Requests[name]; ok {
				used.Add(q)
			}
		}
	}
	return used, n.Status.Allocatable[name]
}

// Leaf is one field of an object as text.
type Leaf struct{ Path, Value string }

// Leaves takes an object apart into its fields, in order. What no learner asks for
// (managedFields) is left out.
func Leaves(o runtime.Object) []Leaf {
	if o == nil {
		return nil
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	if md, ok := m["metadata"].(map[string]any); ok {
		delete(md, "managedFields")
	}
	var out []Leaf
	walk("", m, &out)
	return out
}

func walk(path string, v any, out *[]Leaf) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			p := k
			if path != "" {
				p = path + "." + k
			}
			walk(p, v[k], out)
		}
	case []any:
		for i, e := range v {
			walk(fmt.Sprintf("%s[%s]", path, elementName(e, i)), e, out)
		}
	case nil:
	default:
		*out = append(*out, Leaf{path, strings.ReplaceAll(fmt.Sprint(v), "\n", `\n`)})
	}
}

// elementName names an element of a list by what tells it from the others.
func elementName(e any, i int) string {
	if m, ok := e.(map[string]any); ok {
		for _, k := range []string{"name", "type", "key", "mountPath", "ip"} {
			if s, ok := m[k].(string); ok && len(s) < 40 {
				return s
			}
		}
	}
	return fmt.Sprint(i)
}

// Diff is one field that differs.
type Diff struct{ Path, Old, New string }

// Compare returns the fields that differ between two objects; either may be nil.
func Compare(before, after runtime.Object) []Diff {
	old := map[string]string{}
	for _, l := range Leaves(before) {
		old[l.Path] = l.Value
	}
	var out []Diff
	seen := map[string]bool{}
	for _, l := range Leaves(after) {
		seen[l.Path] = true
		if v, ok := old[l.Path]; !ok || v != l.Value {
			out = append(out, Diff{l.Path, v, l.Value})
		}
	}
	for _, l := range Leaves(before) {
		if !seen[l.Path] {
			out = append(out, Diff{l.Path, l.Value, ""})
		}
	}
	return out
}

func change(h trace.Hop) (trace.Change, bool) {
	switch c := h.Detail.(type) {
	case trace.Change:
		return c, true
	case *trace.Change:
		if c != nil {
			return *c, true
		}
	}
	return trace.Change{}, false
}

// summary is what kubectl get shows of an object's condition: a change of it matters.
func summary(o runtime.Object) string {
	if p, ok := o.(*corev1.Pod); ok {
		return kube.PodStatus(p) + " " + ReadyOf(p) + " " + p.Spec.NodeName
	}
	return ""
}

// ObjectChange returns what the hop at the cursor changed in its object: from the hop's
// own detail, else by comparing the cluster before and after.
func (f *Frame) ObjectChange() (before, after runtime.Object) {
	h, ok := f.Hop()
	if !ok {
		return nil, nil
	}
	if c, ok := change(h); ok {
		return c.Before, c.After
	}
	gvr, ok := resourceOf[h.Object.Kind]
	if !ok || f.View == nil {
		return nil, nil
	}
	if o := f.View.Get(gvr, h.Object.Namespace, h.Object.Name); o != nil {
		after = o
	}
	if f.Before != nil {
		if o := f.Before.Get(gvr, h.Object.Namespace, h.Object.Name); o != nil {
			before = o
		}
	}
	return before, after
}

var resourceOf = map[string]schema.GroupVersionResource{
	"Pod": Pods, "Node": Nodes, "Service": Services, "Deployment": Deployments,
	"ReplicaSet": ReplicaSets, "EndpointSlice": EndpointSlices,
}
