package scheduler

import (
	"maps"
	"slices"

	"podwalk/engine/kernel"
	"podwalk/engine/scheduler/framework"
)

// saved is the scheduler's snapshot.
type saved struct {
	Queue     queueState
	State     state
	Recorders []any // of the profiles
	Pods      any
	Nodes     any
	Others    []any // in the order of Scheduler.kinds
}

// Snapshot implements kernel.State.
func (s *Scheduler) Snapshot() any {
	v := saved{
		Queue: s.queue.s.copy(), State: s.s.copy(),
		Pods: s.podCache.Snapshot(), Nodes: s.nodeWatch.Snapshot(),
	}
	for _, f := range s.profiles {
		v.Recorders = append(v.Recorders, f.recorder.Snapshot())
	}
	for _, t := range s.kinds {
		v.Others = append(v.Others, s.others[t].Snapshot())
	}
	return v
}

// Restore implements kernel.State.
func (s *Scheduler) Restore(snap any) {
	v := snap.(saved)
	s.queue.s, s.s = v.Queue.copy(), v.State.copy()
	for i, f := range s.profiles {
		f.recorder.Restore(v.Recorders[i])
	}
	s.podCache.Restore(v.Pods)
	s.nodeWatch.Restore(v.Nodes)
	for i, t := range s.kinds {
		s.others[t].Restore(v.Others[i])
	}
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
	out := []any{v.Recorders, v.Pods, v.Nodes, v.Others, v.Queue.inFlight, len(v.Queue.changes)}
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
