package apiserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// TestScripts runs testdata/*.txt: requests as a client at the HTTP edge would send them,
// and what comes back. Commands are listed in (*script).run.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{world: newWorld()}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	*world
	seenEvents int
	seenHops   int
	cont       string
	snap       *kernel.Snapshot
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "advance":
		dur, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.k.AdvanceTo(s.k.Now().Add(dur))
		return ""
	case "fault":
		return s.fault(t, d)
	case "events":
		return s.newEvents()
	case "trace":
		return s.newHops()
	case "snapshot":
		s.snap = s.k.Snapshot()
		return ""
	case "restore":
		s.k.Restore(s.snap)
		s.seenHops = min(s.seenHops, s.log.Len())
		return ""
	}
	r := s.request(t, d)
	start := s.k.Now()
	a := s.do(r)
	took := ""
	if d.HasArg("time") {
		took = fmt.Sprintf("after %s: ", s.k.Now().Sub(start).Round(time.Second))
	}
	if a.Verb == wire.List {
		s.cont = a.Continue
	}
	return took + show(a, d)
}

// request reads "VERB RESOURCE[/SUBRESOURCE] NAME key=value…".
func (s *script) request(t *testing.T, d *datadriven.TestData) wire.Request {
	verbs := map[string]wire.Verb{
		"create": wire.Create, "get": wire.Get, "list": wire.List, "watch": wire.Watch, "replace": wire.Update,
		"patch": wire.Patch, "delete": wire.Delete, "deletecollection": wire.DeleteCollection,
	}
	r := wire.Request{Verb: verbs[d.Cmd], Namespace: "default", MediaType: runtime.ContentTypeYAML, Body: []byte(d.Input)}
	if r.Verb == "" {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	name := d.CmdArgs[0].Key
	if base, sub, ok := strings.Cut(name, "/"); ok && !strings.Contains(base, "@") {
		name, r.Subresource = base, sub
	}
	r.Resource = resourceNamed(name)
	if row, ok := kube.ByResource(r.Resource); ok && !row.Namespaced {
		r.Namespace = ""
	}
	for _, a := range d.CmdArgs[1:] {
		v := strings.Join(a.Vals, ",")
		switch a.Key {
		case "ns":
			r.Namespace = v
		case "as":
			r.Credential.CommonName = v
		case "cert":
			r.Credential.BadCert = v
		case "validate":
			r.Options.FieldValidation = v
		case "dryrun":
			r.Options.DryRun = true
		case "l":
			r.Options.LabelSelector = v
		case "f":
			r.Options.FieldSelector = v
		case "rv":
			r.Options.ResourceVersion = v
		case "limit":
			fmt.Sscan(v, &r.Options.Limit)
		case "continue":
			r.Options.Continue = s.cont
		case "sendinitial":
			r.Options.SendInitial, r.Options.Bookmarks = true, true
		case "for":
			r.Options.Timeout, _ = time.ParseDuration(v)
		case "type":
			r.PatchType = map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType, "strategic": types.StrategicMergePatchType, "apply": types.ApplyPatchType}[v]
			r.Body, _ = yaml.YAMLToJSON(r.Body)
		case "grace":
			g := new(int64)
			fmt.Sscan(v, g)
			deleteOptions(&r).GracePeriodSeconds = g
		case "policy":
			p := metav1.DeletionPropagation(v)
			deleteOptions(&r).PropagationPolicy = &p
		case "uid":
			u := types.UID(v)
			deleteOptions(&r).Preconditions = &metav1.Preconditions{UID: &u}
		case "client":
			r.Client = stage.Component(v)
		case "fields", "time":
		default:
			if len(a.Vals) > 0 {
				d.Fatalf(t, "unknown argument %s", a)
			}
			r.Name = a.Key
		}
	}
	return r
}

func deleteOptions(r *wire.Request) *metav1.DeleteOptions {
	if r.Options.Delete == nil {
		r.Options.Delete = &metav1.DeleteOptions{}
	}
	return r.Options.Delete
}

func resourceNamed(name string) schema.GroupVersionResource {
	name, gv, versioned := strings.Cut(name, "@") // events@events.k8s.io/v1
	for _, k := range kube.Kinds() {
		if k.Resource.Resource == name && (!versioned || k.Resource.GroupVersion().String() == gv) {
			return k.Resource
		}
	}
	if parsed, err := schema.ParseGroupVersion(gv); versioned && err == nil {
		return parsed.WithResource(name)
	}
	return schema.GroupVersionResource{Version: "v1", Resource: name}
}

// show prints an answer: the refusal, or the object's name and the fields asked for.
func show(a wire.Answer, d *datadriven.TestData) string {
	var b strings.Builder
	for _, w := range a.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", w)
	}
	switch {
	case a.Transport != "":
		return a.Transport + "\n"
	case a.Status != nil:
		fmt.Fprintf(&b, "%d %s: %s\n", a.Status.Code, a.Status.Reason, a.Status.Message)
		return b.String()
	case a.Verb == wire.Watch:
		fmt.Fprintf(&b, "%d watching\n", a.Code)
		return b.String()
	case a.Verb == wire.List:
		fmt.Fprintf(&b, "%d revision %d\n", a.Code, a.Revision)
		for _, o := range a.Items {
			fmt.Fprintf(&b, "%s%s\n", kube.KeyOf(o), fieldsOf(o, d))
		}
		if a.Continue != "" {
			fmt.Fprintf(&b, "and %d more\n", a.Remain)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%d ", a.Code)
	if st, ok := a.Object.(*metav1.Status); ok {
		fmt.Fprintf(&b, "Status %s\n", st.Status)
		return b.String()
	}
	fmt.Fprintf(&b, "%s%s\n", a.Object.(metav1.Object).GetName(), fieldsOf(a.Object, d))
	return b.String()
}

// fieldsOf prints the paths of fields=(…), "." separated, as YAML flow.
func fieldsOf(o runtime.Object, d *datadriven.TestData) string {
	if !d.HasArg("fields") {
		return ""
	}
	var paths []string
	for _, a := range d.CmdArgs {
		if a.Key == "fields" {
			paths = a.Vals
		}
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, p := range paths {
		var v any = m
		for _, step := range strings.Split(p, ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[step]
			case []any:
				var i int
				fmt.Sscan(step, &i)
				if v = nil; i < len(x) {
					v = x[i]
				}
			}
		}
		fmt.Fprintf(&b, " %s=%v", p, v)
	}
	return b.String()
}

func (s *script) newEvents() string {
	var b strings.Builder
	for _, e := range s.me.events[s.seenEvents:] {
		if e.Object == nil {
			fmt.Fprintf(&b, "watch %d: %s\n", e.WatchID, e.Type)
			continue
		}
		m := e.Object.(metav1.Object)
		fmt.Fprintf(&b, "watch %d: %s %s at %d", e.WatchID, e.Type, kube.Key(m.GetNamespace(), m.GetName()), e.Revision)
		if p, ok := e.Object.(*corev1.Pod); ok && e.Type != wire.Bookmark {
			fmt.Fprintf(&b, " node=%q phase=%s", p.Spec.NodeName, p.Status.Phase)
		}
		fmt.Fprintln(&b)
	}
	s.seenEvents = len(s.me.events)
	return b.String()
}

func (s *script) newHops() string {
	var b strings.Builder
	for _, h := range s.log.Hops()[s.seenHops:] {
		fmt.Fprintf(&b, "%d<-%d %s %s>%s %q %s %s", h.Seq, h.Cause, h.Stage, h.From, h.To, h.Verb, h.Object, h.Outcome)
		if h.Revision != 0 {
			fmt.Fprintf(&b, " rev=%d", h.Revision)
		}
		if h.Reason != "" {
			fmt.Fprintf(&b, " %s", h.Reason)
		}
		if h.Message != "" {
			fmt.Fprintf(&b, ": %s", h.Message)
		}
		if a, ok := h.Detail.(trace.Admission); ok && len(a.Plugins) > 0 {
			fmt.Fprintf(&b, " %v", a.Plugins)
		}
		fmt.Fprintln(&b)
	}
	s.seenHops = s.log.Len()
	return b.String()
}

func (s *script) fault(t *testing.T, d *datadriven.TestData) string {
	p := fault.Point(d.CmdArgs[0].Key)
	if d.CmdArgs[1].Key == "off" {
		s.board.Clear(p)
	} else if err := s.board.Set(p, ""); err != nil {
		d.Fatalf(t, "%v", err)
	}
	if p == fault.APIServerStopped {
		s.k.Send(kernel.ActorID(stage.APIServer), 0, fault.Changed{Point: p})
	}
	return ""
}
