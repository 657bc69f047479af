package engine_test

import (
	"fmt"
	"testing"
	"time"

	"podwalk/engine"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/scenario"
)

func clusterOf(nodes int, kwok bool) scenario.Cluster {
	c := scenario.Cluster{Seed: 1, Bare: true}
	for i := range nodes {
		c.Nodes = append(c.Nodes, scenario.Node{Name: fmt.Sprintf("node%04d", i), Kwok: kwok})
	}
	return c
}

// BenchmarkLifecycles measures whole lives of Pods: created, scheduled, started, Ready,
// deleted, gone.
func BenchmarkLifecycles(b *testing.B) {
	for _, nodes := range []int{3, 100, 1000} {
		for _, kwok := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d/kwok=%v", nodes, kwok), func(b *testing.B) {
				e, err := engine.New(clusterOf(nodes, kwok))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				const batch = 50
				for done := 0; done < b.N; done += batch {
					for i := range batch {
						name := fmt.Sprintf("p%d", done+i)
						body := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{"terminationGracePeriodSeconds":1,"containers":[{"name":"c","image":"nginx"}]}}`)
						a := e.Do(wire.Request{
							Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Body: body, MediaType: "application/json",
							Credential: engine.Admin, Client: "bench",
						})
						if a.Err() != nil {
							b.Fatal(a.Err())
						}
					}
					e.Advance(8 * time.Second)
					for i := range batch {
						e.Do(wire.Request{
							Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: fmt.Sprintf("p%d", done+i),
							Credential: engine.Admin, Client: "bench",
						})
					}
					e.Advance(4 * time.Second)
					if left := len(e.List(kube.Pods, "default")); left > 0 {
						b.Fatalf("%d Pods are left", left)
					}
					e.Begin() // a learner's trace does not go on for ever either
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lifecycles/s")
			})
		}
	}
}

// BenchmarkBoot measures making the default cluster, until it stands still.
func BenchmarkBoot(b *testing.B) {
	for b.Loop() {
		if _, err := engine.New(scenario.Default()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSeek measures going to a hop of a long trace, anywhere.
func BenchmarkSeek(b *testing.B) {
	t := longTimeline(b, 10_000)
	n := t.Len()
	b.ReportMetric(float64(n), "hops")
	b.ResetTimer()
	for i := range b.N {
		t.Seek((i * 7919) % n)
	}
}

func longTimeline(tb testing.TB, hops int) *engine.Timeline {
	tb.Helper()
	e := newEngine(tb)
	t, err := engine.NewTimeline(e)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; t.Len() < hops; i++ {
		manifest := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d%d"},"spec":{"replicas":5,"selector":{"matchLabels":{"a":"d%d"}},"template":{"metadata":{"labels":{"a":"d%d"}},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}}`, i, i, i)
		if err := t.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(manifest), "") }); err != nil {
			tb.Fatal(err)
		}
		t.Run(hops, 10*time.Second)
	}
	return t
}
