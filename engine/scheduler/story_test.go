package scheduler

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"podwalk/engine/fault"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func quantities(cpu, memory string) corev1.ResourceList {
	out := corev1.ResourceList{}
	if cpu != "" {
		out[corev1.ResourceCPU] = quantity(cpu)
	}
	if memory != "" {
		out[corev1.ResourceMemory] = quantity(memory)
	}
	return out
}

// TestStories runs the scripts of testdata. Each begins with the cluster of the
// recordings: controlplane (tainted) and three nodes with 2 CPU and 4Gi.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r := newRig(t)
		shown := 0
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := r.command(d, &shown)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func (r *rig) command(d *datadriven.TestData, shown *int) (string, error) {
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	switch d.Cmd {
	case "cluster":
		return "", r.cluster()
	case "apply":
		return "", r.apply(d.Input)
	case "delete":
		o, ok := r.api.objects[arg(0)+" "+arg(1)]
		if !ok {
			return "", errors.New("no such object")
		}
		r.api.remove(o)
		return "", nil
	case "cordon", "uncordon":
		n := r.api.objects["nodes "+arg(0)].DeepCopyObject().(*corev1.Node)
		n.Spec.Unschedulable, n.Spec.Taints = d.Cmd == "cordon", nil
		if d.Cmd == "cordon" {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}
		r.api.put(n)
		return "", nil
	case "taint", "label":
		return "", r.mark(d.Cmd, arg(0), d.CmdArgs[1:])
	case "ungate":
		p := r.pod(arg(0)).DeepCopy()
		p.Spec.SchedulingGates = nil
		r.api.put(p)
		return "", nil
	case "fail-bind":
		if arg(1) == "off" {
			delete(r.api.failBind, arg(0))
		} else {
			r.api.failBind[arg(0)] = apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, "p", errors.New(strings.TrimSpace(d.Input)))
		}
		return "", nil
	case "stop":
		return "", r.board.Set(fault.SchedulerStopped, "")
	case "go-on":
		r.board.Clear(fault.SchedulerStopped)
		return "", nil
	case "advance":
		dur, err := time.ParseDuration(arg(0))
		if err != nil {
			return "", err
		}
		r.advance(dur)
		return "", nil
	case "trace":
		hops := r.log.Hops()
		out := printHops(hops[*shown:])
		*shown = len(hops)
		return out, nil
	case "table":
		return r.table(arg(0)), nil
	case "queues":
		return r.queues(), nil
	case "pods":
		return r.pods(), nil
	case "events":
		return r.events(), nil
	case "requests":
		out := stamp.ReplaceAllString(strings.Join(r.api.requests, "\n"), "")
		r.api.requests = nil
		return out, nil
	}
	return "", fmt.Errorf("unknown command %s", d.Cmd)
}

func (r *rig) cluster() error {
	for i, name := range []string{"controlplane", "node01", "node02", "node03"} {
		n := node(name, "2", "4Gi")
		n.Labels[corev1.LabelTopologyZone] = []string{"zone-a", "zone-a", "zone-b", "zone-b"}[i]
		switch name {
		case "controlplane":
			n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		case "node01":
			n.Labels["disktype"] = "ssd"
		}
		r.api.put(n)
	}
	r.advance(time.Second)
	return nil
}

// apply stores the manifests as the API server would after defaulting what matters here.
func (r *rig) apply(text string) error {
	for _, doc := range strings.Split(text, "\n---\n") {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			return err
		}
		obj := o.(kube.Object)
		if p, ok := obj.(*corev1.Pod); ok {
			defaultPod(p)
		}
		if k, _ := kube.KindOf(o); k.Namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace("default")
		}
		r.api.put(obj)
	}
	return nil
}

func defaultPod(p *corev1.Pod) {
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = DefaultName
	}
	if p.Spec.Priority == nil {
		p.Spec.Priority = new(int32)
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		for name, q := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				if c.Resources.Requests == nil {
					c.Resources.Requests = corev1.ResourceList{}
				}
				c.Resources.Requests[name] = q
			}
		}
	}
	if p.Spec.NodeName != "" {
		p.Status.Phase = corev1.PodRunning
	} else {
		p.Status.Phase = corev1.PodPending
	}
}

func (r *rig) mark(cmd, name string, args []datadriven.CmdArg) error {
	n := r.api.objects["nodes "+name].DeepCopyObject().(*corev1.Node)
	if cmd == "taint" {
		n.Spec.Taints = nil
	}
	for _, a := range args {
		if cmd == "label" {
			n.Labels[a.Key] = a.Vals[0]
			continue
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: a.Key, Effect: corev1.TaintEffect(a.Vals[0])})
	}
	r.api.put(n)
	return nil
}

func printHops(hops []trace.Hop) string {
	var b strings.Builder
	for _, h := range hops {
		fmt.Fprintf(&b, "%-11s %s %s", h.Stage, h.Object.Name, h.Verb)
		if h.From != h.To {
			fmt.Fprintf(&b, " %s→%s", h.From, h.To)
		}
		if h.Outcome != trace.OK {
			fmt.Fprintf(&b, " %s", h.Outcome)
		}
		if h.Reason != "" {
			fmt.Fprintf(&b, " %s", h.Reason)
		}
		if h.Message != "" {
			fmt.Fprintf(&b, ": %s", h.Message)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// table prints the last node × plugin table of a stage.
func (r *rig) table(at string) string {
	for _, h := range slices.Backward(r.log.Hops()) {
		d, ok := h.Detail.(trace.SchedulingCycle)
		if !ok || string(h.Stage) != at {
			continue
		}
		var b strings.Builder
		if len(d.Plugins) > 0 {
			fmt.Fprintf(&b, "%s\n", strings.Join(d.Plugins, " | "))
		}
		for _, row := range d.Nodes {
			cells := row.Status
			for _, sc := range row.Scores {
				cells = append(cells, fmt.Sprintf("%d×%d", sc.Raw, sc.Weight))
			}
			fmt.Fprintf(&b, "%s: %s", row.Node, strings.Join(cells, " | "))
			if row.Total != 0 {
				fmt.Fprintf(&b, " = %d", row.Total)
			}
			if row.Chosen {
				b.WriteString(" chosen")
			}
			if row.Message != "" {
				fmt.Fprintf(&b, " (%s)", row.Message)
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	return "none\n"
}

// queues prints what each hop so far shows of the queues.
func (r *rig) queues() string {
	var b strings.Builder
	for _, h := range r.log.Hops() {
		if q, ok := h.Detail.(trace.Queue); ok {
			fmt.Fprintf(&b, "%s %s: active%v backoff%v unschedulable%v gated%v\n", h.Object.Name, h.Verb, q.Active, q.Backoff, q.Unschedulable, q.Gated)
		}
	}
	return b.String()
}

func (r *rig) pods() string {
	var b strings.Builder
	for _, k := range r.api.keys(kube.Pods) {
		p := r.api.objects[k].(*corev1.Pod)
		fmt.Fprintf(&b, "%s/%s node=%s", p.Namespace, p.Name, p.Spec.NodeName)
		if n := p.Status.NominatedNodeName; n != "" {
			fmt.Fprintf(&b, " nominated=%s", n)
		}
		for _, c := range p.Status.Conditions {
			fmt.Fprintf(&b, "\n  %s=%s %s: %s (at %s, generation %d)", c.Type, c.Status, c.Reason, c.Message,
				c.LastTransitionTime.UTC().Format(time.TimeOnly), c.ObservedGeneration)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *rig) events() string {
	var b strings.Builder
	for _, e := range r.eventList() {
		fmt.Fprintf(&b, "%s %s %s %s %s: %s", e.EventTime.UTC().Format(time.TimeOnly), e.Type, e.Reason, e.Action, e.Regarding.Name, e.Note)
		if e.Series != nil {
			fmt.Fprintf(&b, " (x%d)", e.Series.Count)
		}
		if e.ReportingController != DefaultName || e.DeprecatedSource.Component != "" || e.DeprecatedCount != 0 {
			fmt.Fprintf(&b, " [%s %s %d]", e.ReportingController, e.DeprecatedSource.Component, e.DeprecatedCount)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// stamp is the suffix of an event's name.
var stamp = regexp.MustCompile(`\.[0-9a-f]{16}\b`)
