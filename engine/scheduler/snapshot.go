package scheduler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// saved is the scheduler's snapshot.
type saved struct {
	Queue    queueState
	State    state
	Recorder any
	Pods     any
	Nodes    any
	PDBs     any
}

// Snapshot implements kernel.State.
func (s *Scheduler) Snapshot() any {
	return saved{
		Queue: s.queue.s.copy(), State: s.s.copy(), Recorder: s.recorder.Snapshot(),
		Pods: s.podCache.Snapshot(), Nodes: s.nodeWatch.Snapshot(), PDBs: s.pdbs.Snapshot(),
	}
}

// Restore implements kernel.State.
func (s *Scheduler) Restore(snap any) {
	v := snap.(saved)
	s.queue.s, s.s = v.Queue.copy(), v.State.copy()
	s.recorder.Restore(v.Recorder)
	s.podCache.Restore(v.Pods)
	s.nodeWatch.Restore(v.Nodes)
	s.pdbs.Restore(v.PDBs)
}

func (s *state) copy() state {
	out := *s
	out.nodes = s.nodes.copy()
	out.nominated = maps.Clone(s.nominated)
	out.bindings = maps.Clone(s.bindings)
	out.evictions = maps.Clone(s.evictions)
	return out
}

// podDigest and nodeDigest are what of a waiting Pod and of a node can differ between two
// runs; everything else follows from the API objects, which the caches hash.
type podDigest struct {
	Key                        string
	Queue                      queueName
	Timestamp, Initial         kernel.Time
	Attempts, Failures, Errors int
	Backoff                    kernel.Time
	Rejectors                  []string
	Gate                       string
	Hop                        uint64
}

type nodeDigest struct {
	Name      string
	Pods      []string
	Requested framework.Resource
}

func (q *queued) digest() podDigest {
	return podDigest{q.Info.Key, q.Queue, q.Timestamp, q.Initial, q.Attempts, q.UnschedulableCount, q.Errors, q.Backoff, q.Rejectors, q.Gate, q.Hop}
}

// HashState digests the snapshot.
func (v saved) HashState() any {
	out := []any{v.Recorder, v.Pods, v.Nodes, v.PDBs, v.Queue.inFlight, len(v.Queue.changes)}
	v.Queue.pods.Scan(func(_ string, q *queued) bool {
		out = append(out, q.digest())
		return true
	})
	st := &v.State
	st.nodes.nodes.Scan(func(_ string, n *framework.NodeInfo) bool {
		d := nodeDigest{Name: n.Name, Requested: n.Requested}
		for _, p := range n.Pods {
			d.Pods = append(d.Pods, p.Key)
		}
		out = append(out, d)
		return true
	})
	if c := st.cycle; c != nil {
		out = append(out, c.N, c.Pod.digest(), c.Next, c.Host, c.PreFilter, c.PostFilter, len(c.Feasible), len(c.Verdicts.Nodes), c.Rejectors)
	}
	for _, key := range slices.Sorted(maps.Keys(st.bindings)) {
		b := st.bindings[key]
		out = append(out, key, b.N, b.Next, b.Host)
	}
	return append(out, st.nominated, st.evictions, st.next, st.cycles, st.stopped, st.popping, st.flush, st.sweep)
}

// Object implements framework.Lister.
func (s *Scheduler) Object(kind kube.Object, namespace, name string) (kube.Object, bool) {
	switch kind.(type) {
	case *corev1.Pod:
		return found(s.podCache.Get(namespace, name))
	case *policyv1.PodDisruptionBudget:
		return found(s.pdbs.Get(namespace, name))
	}
	return nil, false
}

func found[T kube.Object](o T, ok bool) (kube.Object, bool) {
	if !ok {
		return nil, false
	}
	return o, true
}

// Each implements framework.Lister.
func (s *Scheduler) Each(kind kube.Object, namespace string, f func(kube.Object) bool) {
	if _, ok := kind.(*policyv1.PodDisruptionBudget); ok {
		s.pdbs.Each(namespace, func(o *policyv1.PodDisruptionBudget) bool { return f(o) })
	}
}
