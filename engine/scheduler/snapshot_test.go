package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/plugins"
	"podwalk/engine/trace"
)

// busyRig has Pods in every queue, one in its cycle and some being bound.
func busyRig(t testing.TB) *rig {
	r := newRig(t)
	if err := r.cluster(); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		p := simplePod(fmt.Sprintf("p%02d", i), "500m", "128Mi")
		switch i {
		case 3:
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
		case 5:
			p.Spec.NodeSelector = map[string]string{"no": "where"}
		case 11:
			high := int32(1000)
			p.Spec.Priority = &high
			p.Spec.Containers[0].Resources.Requests = quantities("2", "1Gi")
		}
		r.api.put(p)
	}
	return r
}

func simplePod(name, cpu, memory string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
	}
	p.Spec.Containers[0].Resources.Requests = quantities(cpu, memory)
	defaultPod(p)
	return p
}

// TestTimeTravel stops at every event of a busy run, goes back to there from the end, and
// wants the same end again, to the bit.
func TestTimeTravel(t *testing.T) {
	const until = kernel.Time(4 * time.Second)
	r := busyRig(t)
	var stops []*kernel.Snapshot
	var hashes []uint64
	for {
		at, ok := r.k.Next()
		if !ok || at > until {
			break
		}
		s := r.k.Snapshot()
		stops = append(stops, s)
		hashes = append(hashes, s.Hash())
		r.k.Step()
	}
	r.k.AdvanceTo(until)
	end := r.k.Snapshot()
	if len(stops) < 100 {
		t.Fatalf("only %d events", len(stops))
	}
	for i := 0; i < len(stops); i += 7 {
		r.k.Restore(stops[i])
		if got := r.k.Snapshot(); got.Hash() != hashes[i] {
			t.Fatalf("event %d: restoring changed the state of %v", i, differing(got, stops[i]))
		}
		r.k.AdvanceTo(until)
		again := r.k.Snapshot()
		if again.Hash() == end.Hash() {
			continue
		}
		t.Fatalf("from event %d, these end differently: %v", i, differing(again, end))
	}
	if len(r.api.keys(kube.Pods)) != 12 {
		t.Fatalf("Pods: %d", len(r.api.keys(kube.Pods)))
	}
}

func differing(a, b *kernel.Snapshot) []string {
	var out []string
	for _, name := range a.StateNames() {
		if a.StateHash(name) != b.StateHash(name) {
			out = append(out, name)
		}
	}
	return out
}

// TestNothingIsOvercommitted binds more Pods than fit and adds up what runs where.
func TestNothingIsOvercommitted(t *testing.T) {
	r := newRig(t)
	if err := r.cluster(); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		r.api.put(simplePod(fmt.Sprintf("p%02d", i), "300m", "128Mi"))
	}
	r.advance(5 * time.Second)
	used := map[string]int64{}
	bound := 0
	for _, k := range r.api.keys(kube.Pods) {
		p := r.api.objects[k].(*corev1.Pod)
		if p.Spec.NodeName != "" {
			bound++
			used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	if bound != 18 { // six of 300m on each of three nodes with 2 CPU
		t.Errorf("%d Pods bound, want 18", bound)
	}
	for n, m := range used {
		if m > 2000 || n == "controlplane" {
			t.Errorf("%s: %dm in use", n, m)
		}
	}
}

// TestPriorityFirst queues Pods while the scheduler is down; the most important one is
// bound first.
func TestPriorityFirst(t *testing.T) {
	r := newRig(t)
	for i, pr := range []int32{1, 5, 3} {
		p := simplePod(fmt.Sprintf("p%d", i), "100m", "1Mi")
		p.Spec.Priority = &pr
		r.api.put(p)
	}
	if err := r.cluster(); err != nil {
		t.Fatal(err)
	}
	r.advance(5 * time.Second)
	var got []string
	for _, e := range r.eventList() {
		if e.Reason == "Scheduled" {
			got = append(got, e.Regarding.Name)
		}
	}
	if fmt.Sprint(got) != "[p1 p2 p0]" {
		t.Errorf("bound in the order %v", got)
	}
}

// TestUnschedulableTimeout: nothing happens for five minutes, then the Pod is tried again.
func TestUnschedulableTimeout(t *testing.T) {
	r := newRig(t)
	if err := r.cluster(); err != nil {
		t.Fatal(err)
	}
	r.api.put(simplePod("big", "64", "1Gi"))
	r.advance(5 * time.Minute)
	pops := func() (n int) {
		for _, h := range r.log.Hops() {
			if h.Verb == "Pop" {
				n++
			}
		}
		return n
	}
	if pops() != 1 {
		t.Errorf("%d attempts within five minutes, want 1", pops())
	}
	r.advance(time.Minute)
	if pops() != 2 {
		t.Errorf("%d attempts after six minutes, want 2", pops())
	}
}

// BenchmarkSchedule measures whole laps through the scheduler (watch, cycle, binding,
// confirmation) on clusters of several sizes.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{3, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("%d-nodes", n), func(b *testing.B) {
			r := newRig(b)
			for i := range n {
				r.api.put(node(fmt.Sprintf("node%04d", i), "64", "256Gi"))
			}
			r.advance(time.Second)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				p := simplePod(fmt.Sprintf("p%d", i), "1m", "1Mi")
				p.Namespace = metav1.NamespaceSystem // in the background: no tables
				r.api.put(p)
				r.advance(20 * time.Millisecond)
				if r.pod("kube-system/"+p.Name).Spec.NodeName == "" && i < 100*n {
					b.Fatal("not bound")
				}
				r.api.remove(r.pod("kube-system/" + p.Name))
				r.advance(5 * time.Millisecond)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

// TestSearchOfLargeClusters: a search ends once enough nodes fit, the next one begins
// where it ended, and the tables in the trace stay short.
func TestSearchOfLargeClusters(t *testing.T) {
	r := newRig(t)
	for i := range 1000 {
		r.api.put(node(fmt.Sprintf("node%04d", i), "64", "256Gi"))
	}
	r.advance(time.Second)
	chosen := 0
	for i := range 3 {
		r.api.put(simplePod(fmt.Sprintf("p%d", i), "100m", "1Mi"))
		r.advance(100 * time.Millisecond)
		if got, want := r.s.s.next, (i+1)*420%1000; got != want { // 50-1000/125 = 42%
			t.Errorf("after %d Pods the search goes on at node %d, want %d", i+1, got, want)
		}
	}
	for _, h := range r.log.Hops() {
		d, ok := h.Detail.(trace.SchedulingCycle)
		if !ok {
			continue
		}
		if len(d.Nodes) != detailNodesMax {
			t.Errorf("%s: %d rows", h.Stage, len(d.Nodes))
		}
		for _, row := range d.Nodes {
			if row.Chosen {
				chosen++
			}
		}
	}
	if chosen != 3 {
		t.Errorf("%d tables show the chosen node, want 3", chosen)
	}
}

// TestPodDeletedWhileItIsBound: the room that it had is free, and nobody tries it again.
func TestPodDeletedWhileItIsBound(t *testing.T) {
	r := newRig(t)
	if err := r.cluster(); err != nil {
		t.Fatal(err)
	}
	p := simplePod("p", "2", "1Gi")
	p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "node01"}
	r.api.put(p)
	for r.s.s.bindings["default/p"] == nil {
		if !r.k.Step() {
			t.Fatal("never bound")
		}
	}
	r.api.remove(r.pod("default/p"))
	q := simplePod("q", "2", "1Gi")
	q.Spec.NodeSelector = p.Spec.NodeSelector
	r.api.put(q)
	r.advance(2 * time.Second)
	if got := r.pod("default/q").Spec.NodeName; got != "node01" {
		t.Errorf("q runs on %q", got)
	}
	if r.s.queue.get("default/p") != nil || len(r.s.s.bindings) > 0 {
		t.Error("the deleted Pod is still known")
	}
}

// TestProfiles: a second scheduler name with plugins of its own, served by one scheduler.
func TestProfiles(t *testing.T) {
	cfg := DefaultConfig()
	bare := slices.DeleteFunc(plugins.Default(), func(e plugins.Entry) bool { return e.Plugin.Name() == "TaintToleration" })
	cfg.Profiles = append(cfg.Profiles, Profile{"taint-blind", bare})
	r := newRigWith(t, cfg)
	if err := r.cluster(); err != nil {
		t.Fatal(err)
	}
	p := simplePod("p", "100m", "1Mi")
	p.Spec.SchedulerName = "taint-blind"
	p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "controlplane"}
	r.api.put(p)
	q := p.DeepCopy()
	q.Name, q.Spec.SchedulerName = "q", DefaultName
	r.api.put(q)
	r.advance(time.Second)
	if a, b := r.pod("default/p").Spec.NodeName, r.pod("default/q").Spec.NodeName; a != "controlplane" || b != "" {
		t.Errorf("p runs on %q, q on %q", a, b)
	}
	for _, e := range r.eventList() {
		want := map[string]string{"p": "taint-blind", "q": DefaultName}[e.Regarding.Name]
		if e.ReportingController != want {
			t.Errorf("the event about %s comes from %s", e.Regarding.Name, e.ReportingController)
		}
	}
}
