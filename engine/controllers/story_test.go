package controllers_test

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/fault"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
)

// TestStories runs the scripts in testdata. Commands:
//
//	apply            create the objects in the input, or replace them
//	patch KIND NAME  merge patch in the input
//	delete KIND NAME [cascade=orphan|foreground|background] [now]
//	run DURATION     let time pass
//	pods             NAME PHASE READY NODE of the Pods
//	show KIND [NAME] [fields=a.b,c]   YAML, without what a cluster makes up
//	names KIND       what there is
//	events           reasons and messages, oldest first
//	denied           requests that RBAC refused
//	hops             what the controller manager noticed and decided, since the last time
//	refuse [MESSAGE] the API server refuses new Pods
//	nodes down=NAME up=NAME unready=IMAGE
//	label-first      change the label app of the first Pod
//	endpoints        the EndpointSlices
//	in NAMESPACE     where the following commands look
//	break, repair POINT  switch a fault point
//	stop, start      the controller manager
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{w: newWorld(t, "node01", "node02")}
		s.seen = s.w.log.Len()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.w.t = t
			out := s.command(d)
			if out == "" {
				return ""
			}
			return strings.TrimRight(suffix.ReplaceAllString(out, "$1-*****"), "\n") + "\n"
		})
	})
}

// suffix matches generated name suffixes.
var suffix = regexp.MustCompile(`\b([a-z0-9-]+)-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

type story struct {
	w    *world
	ns   string
	seen int
}

func (s *story) namespace() string {
	if s.ns == "" {
		return "default"
	}
	return s.ns
}

func (s *story) command(d *datadriven.TestData) string {
	args := make([]string, 0, len(d.CmdArgs))
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			args = append(args, a.Key)
		}
	}
	opt := func(key string) string {
		for _, a := range d.CmdArgs {
			if a.Key == key && len(a.Vals) > 0 {
				return strings.Join(a.Vals, ",")
			}
		}
		return ""
	}
	switch d.Cmd {
	case "in":
		s.ns = args[0]
	case "apply":
		return s.apply(d.Input)
	case "patch":
		return s.patch(args[0], args[1], d.Input)
	case "delete":
		return s.delete(args, opt("cascade"))
	case "denied": // requests of the controllers that the API server refused
		return s.denied()
	case "run":
		dur, err := time.ParseDuration(args[0])
		if err != nil {
			d.Fatalf(s.w.t.(*testing.T), "%v", err)
		}
		s.w.advance(dur)
	case "pods":
		return s.pods()
	case "show":
		return s.show(args, opt("fields"))
	case "names":
		var b strings.Builder
		for _, o := range s.w.list(kindOf(args[0]), s.namespace()) {
			fmt.Fprintln(&b, o.GetName())
		}
		return b.String()
	case "events":
		return s.events()
	case "hops":
		return s.hops()
	case "refuse":
		s.w.refuse.message = strings.TrimSpace(d.Input)
	case "nodes":
		s.nodes(opt)
	case "break":
		_ = s.w.board.Set(fault.Point(args[0]), "")
	case "repair":
		s.w.board.Clear(fault.Point(args[0]))
	case "stop":
		_ = s.w.board.Set(fault.ControllerManagerStopped, "")
	case "start":
		s.w.board.Clear(fault.ControllerManagerStopped)
	case "label-first":
		pod := s.w.list(kindOf("Pod"), s.namespace())[0]
		return s.patch("Pod", pod.GetName(), "metadata: {labels: {app: debug}}")
	case "endpoints":
		return s.endpoints()
	default:
		return "unknown command " + d.Cmd
	}
	return ""
}

func (s *story) nodes(opt func(string) string) {
	if n := opt("down"); n != "" {
		s.w.nodes.state.Down[n] = true
	}
	if n := opt("up"); n != "" {
		delete(s.w.nodes.state.Down, n)
		s.w.do(wire.Request{Verb: wire.Patch, Resource: kube.Nodes, Subresource: "status", Name: n,
			PatchType: types.StrategicMergePatchType, MediaType: string(types.StrategicMergePatchType),
			Body: []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":"2026-11-30T09:00:00Z"}]}}`)})
	}
	if i := opt("unready"); i != "" {
		s.w.nodes.state.Unready = i
	}
}

func kindOf(name string) kube.Kind {
	for _, k := range kube.Kinds() {
		if strings.EqualFold(k.Kind.Kind, name) || strings.EqualFold(k.Resource.Resource, name) {
			return k
		}
	}
	panic("no such kind: " + name)
}

func (s *story) apply(input string) string {
	r := utilyaml.NewYAMLReader(newReader(input))
	var out strings.Builder
	for {
		doc, err := r.Read()
		if err == io.EOF {
			return out.String()
		}
		if err != nil {
			return err.Error()
		}
		var tm metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &tm); err != nil {
			return err.Error()
		}
		k, ok := kube.ByKind(schema.FromAPIVersionAndKind(tm.APIVersion, tm.Kind))
		if !ok {
			return "unknown kind " + tm.Kind
		}
		obj := k.New()
		if err := yaml.UnmarshalStrict(doc, obj); err != nil {
			return err.Error()
		}
		if k.Namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace(s.namespace())
		}
		verb := wire.Create
		if _, there := s.w.api.Get(k.Resource, obj.GetNamespace(), obj.GetName()); there {
			verb = wire.Update
		}
		a := s.w.do(wire.Request{Verb: verb, Resource: k.Resource, Namespace: obj.GetNamespace(), Name: obj.GetName(), Object: obj})
		if err := a.Err(); err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
		}
	}
}

func (s *story) patch(kind, name, body string) string {
	k := kindOf(kind)
	j, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		return err.Error()
	}
	r := wire.Request{Verb: wire.Patch, Resource: k.Resource, Name: name, PatchType: types.MergePatchType, MediaType: string(types.MergePatchType), Body: j}
	if k.Namespaced {
		r.Namespace = s.namespace()
	}
	if err := s.w.do(r).Err(); err != nil {
		return "error: " + err.Error()
	}
	return ""
}

func (s *story) delete(args []string, cascade string) string {
	k := kindOf(args[0])
	name := args[1]
	if n, err := strconv.Atoi(name); err == nil { // the n-th of its kind
		name = s.w.list(k, s.namespace())[n-1].GetName()
	}
	o := &metav1.DeleteOptions{}
	if cascade != "" {
		p := metav1.DeletionPropagation(strings.ToUpper(cascade[:1]) + cascade[1:])
		o.PropagationPolicy = &p
	}
	r := wire.Request{Verb: wire.Delete, Resource: k.Resource, Name: name, Options: wire.Options{Delete: o}}
	if k.Namespaced {
		r.Namespace = s.namespace()
	}
	if err := s.w.do(r).Err(); err != nil {
		return "error: " + err.Error()
	}
	return ""
}

func (s *story) pods() string {
	var lines []string
	for _, o := range s.w.list(kindOf("Pod"), s.namespace()) {
		p := o.(*corev1.Pod)
		ready, phase := "0/1", string(p.Status.Phase)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready = "1/1"
			}
		}
		if p.DeletionTimestamp != nil {
			phase = "Terminating"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", suffix.ReplaceAllString(p.Name, "$1-*****"), p.Spec.Containers[0].Image, ready, phase, p.Spec.NodeName))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n") + "\n"
}

func (s *story) endpoints() string {
	var b strings.Builder
	for _, o := range s.w.list(kindOf("EndpointSlice"), s.namespace()) {
		e := o.(*discoveryv1.EndpointSlice)
		if e.Labels[discoveryv1.LabelManagedBy] == "" {
			continue // the API server's own
		}
		fmt.Fprintf(&b, "%s labels=%v", e.Name, e.Labels)
		for _, p := range e.Ports {
			fmt.Fprintf(&b, " %s:%d/%s", *p.Name, *p.Port, *p.Protocol)
		}
		fmt.Fprintln(&b)
		for _, ep := range e.Endpoints {
			fmt.Fprintf(&b, "  %s ready=%v serving=%v terminating=%v %s %s\n", strings.Join(ep.Addresses, ","),
				*ep.Conditions.Ready, *ep.Conditions.Serving, *ep.Conditions.Terminating, *ep.NodeName, *ep.Zone)
		}
	}
	return b.String()
}

// show prints an object, or the named parts of it.
func (s *story) show(args []string, fields string) string {
	k := kindOf(args[0])
	ns := s.namespace()
	if !k.Namespaced {
		ns = ""
	}
	var b strings.Builder
	for _, o := range s.w.list(k, ns) {
		if len(args) > 1 && o.GetName() != args[1] || o.GetName() == "kubernetes" {
			continue
		}
		j, _ := yaml.Marshal(o)
		var m map[string]any
		_ = yaml.Unmarshal(j, &m)
		part := map[string]any{}
		for _, f := range strings.Split(fields, ",") {
			var v any = m
			for _, key := range strings.Split(f, ".") {
				if inner, ok := v.(map[string]any); ok {
					v = inner[key]
				} else {
					v = nil
				}
			}
			part[f] = v
		}
		if fields == "" {
			part = m
		}
		y, _ := yaml.Marshal(part)
		b.Write(y)
	}
	return uids.ReplaceAllString(b.String(), "UID")
}

var uids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

func (s *story) events() string {
	list := s.w.list(kindOf("Event"), s.namespace())
	sort.SliceStable(list, func(i, j int) bool {
		return list[i].(*corev1.Event).CreationTimestamp.Before(&list[j].(*corev1.Event).CreationTimestamp)
	})
	var b strings.Builder
	for _, o := range list {
		e := o.(*corev1.Event)
		fmt.Fprintf(&b, "%s %s %s/%s x%d %s: %s\n", e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name, e.Count, e.Source.Component, e.Message)
	}
	return b.String()
}

func (s *story) denied() string {
	var b strings.Builder
	for _, h := range s.w.log.Background() {
		if h.Bad() && h.Stage == stage.Authorization {
			fmt.Fprintf(&b, "%s %s %s: %s\n", h.Stage, h.Verb, h.Object, h.Message)
		}
	}
	return b.String()
}

func (s *story) hops() string {
	var b strings.Builder
	all := s.w.log.Hops()
	for _, h := range all[min(s.seen, len(all)):] {
		if h.From != stage.ControllerManager && h.To != stage.ControllerManager || h.Stage == stage.Request || h.Stage == stage.Persist {
			continue
		}
		fmt.Fprintf(&b, "%s %s [%s]", h.Stage, h.Verb, h.Object)
		if h.Outcome != "ok" {
			fmt.Fprintf(&b, " %s", h.Outcome)
		}
		if h.Reason != "" {
			fmt.Fprintf(&b, " %s", h.Reason)
		}
		fmt.Fprintf(&b, "\n  %s\n", h.Message)
	}
	s.seen = len(all)
	return b.String()
}

func newReader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }
