package scheduler

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"podwalk/engine/scheduler/framework"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// cycle is the scheduling cycle that is under way. It is replaced, not changed, so that
// a snapshot can keep it.
type cycle struct {
	N        uint64
	Pod      *queued
	Next     stage.ID // the extension point to run next
	State    framework.CycleState
	Names    map[string]bool // nodes to which PreFilter narrowed the search, nil for all
	Verdicts framework.Verdicts
	Feasible []*framework.NodeInfo
	Host     string // the chosen node
	// PreFilter is the text of a PreFilter refusal, PostFilter what preemption said.
	PreFilter, PostFilter string
	Rejectors             []string
	Nomination            *string // nominatedNodeName to write, nil to leave it
}

// errNoNodes is the text for a cluster without nodes.
var errNoNodes = errors.New("no nodes available to schedule pods")

// startCycle takes the next Pod from the queue.
func (s *Scheduler) startCycle() {
	if s.s.cycle != nil || !s.synced() {
		return
	}
	for {
		q := s.queue.pop()
		if q == nil {
			return
		}
		s.k.SetCause(q.Hop)
		if s.skip(q) {
			s.queue.done(q.Info.UID())
			continue
		}
		s.s.cycles++
		c := &cycle{N: s.s.cycles, Pod: q, Next: stage.PreFilter}
		h := s.hop(q.Info, stage.QueueSort, "Pop")
		h.Detail = s.queueDetail(q.Info, q.Info.Key)
		s.log.Record(h)
		s.goOn(c, s.cfg.Step)
		return
	}
}

// skip reports whether there is nothing to do for a Pod: it is being deleted, or assumed
// to be on a node already.
func (s *Scheduler) skip(q *queued) bool {
	pod := q.Info.Pod
	if pod.DeletionTimestamp != nil {
		s.profiles.of(q.Info).recorder.EventAction(pod, "Warning", "FailedScheduling", "Scheduling", "skip schedule deleting pod: "+pod.Namespace+"/"+pod.Name)
		return true
	}
	return s.s.nodes.assumed(pod.UID)
}

// goOn makes c the running cycle and sends for its next extension point.
func (s *Scheduler) goOn(c *cycle, after time.Duration) {
	s.s.cycle = c
	s.k.Send(ID, after, step{c.N})
}

// runStep runs one extension point of the scheduling cycle.
func (s *Scheduler) runStep(e step) {
	if s.s.cycle == nil || s.s.cycle.N != e.Cycle {
		return
	}
	c := *s.s.cycle
	f := s.profiles.of(c.Pod.Info)
	switch c.Next {
	case stage.PreFilter:
		s.preFilter(f, &c)
	case stage.Filter:
		s.filter(f, &c)
	case stage.PostFilter:
		s.postFilter(f, &c)
	case stage.PreScore:
		s.preScore(f, &c)
	case stage.Score:
		s.score(f, &c)
	case stage.Reserve:
		s.reserve(f, &c)
	case stage.Permit:
		s.permit(f, &c)
	}
}

func (s *Scheduler) preFilter(f *profile, c *cycle) {
	snap := s.s.nodes.snapshot()
	snap.Nominated = s.nominatedPods()
	snap.Objects = s
	c.State.Snapshot = &snap
	if snap.Nodes.Len() == 0 {
		h := s.hop(c.Pod.Info, stage.PreFilter, "PreFilter")
		h.Outcome, h.Message = trace.Denied, errNoNodes.Error()
		s.log.Record(h)
		s.failed(c, errNoNodes.Error(), true)
		return
	}
	names, by, status := f.runPreFilter(&c.State, c.Pod.Info)
	h := s.hop(c.Pod.Info, stage.PreFilter, "PreFilter")
	c.Names, c.Rejectors = names, slices.Clone(by)
	switch {
	case status.IsSuccess():
		s.log.Record(h)
		c.Next = stage.Filter
		if names != nil {
			text := "node(s) didn't satisfy plugin(s) " + listed(by)
			c.Verdicts.Absent = framework.NewStatus(framework.UnschedulableAndUnresolvable, "", text)
		}
		s.goOn(c, s.cfg.Step+s.searchTime(c))
	case status.IsRejected():
		h.Outcome, h.Reason, h.Message = trace.Denied, status.Plugin, status.Message()
		s.log.Record(h)
		c.PreFilter, c.Verdicts.Absent = status.Message(), status
		if status.Plugin != "" {
			c.Rejectors = insert(c.Rejectors, status.Plugin)
		}
		c.Next = stage.PostFilter
		s.goOn(c, s.cfg.Step)
	default:
		h.Outcome, h.Reason, h.Message = trace.Retry, status.Plugin, status.Message()
		s.log.Record(h)
		s.failed(c, status.Message(), false)
	}
}

func listed(names []string) string {
	out := "["
	for i, n := range names {
		if i > 0 {
			out += " "
		}
		out += n
	}
	return out + "]"
}

// searchTime estimates how long Filter will look at nodes.
func (s *Scheduler) searchTime(c *cycle) time.Duration {
	n := c.State.Snapshot.Nodes.Len()
	return time.Duration(min(n, s.enough(n))) * s.cfg.PerNode
}

// Upstream's bounds for how many feasible nodes end the search.
const (
	minFeasibleNodes           = 100
	minFeasibleNodesPercentage = 5
)

// enough returns how many feasible nodes are enough among n.
func (s *Scheduler) enough(n int) int {
	if n < minFeasibleNodes {
		return n
	}
	percentage := s.cfg.PercentageOfNodesToScore
	if percentage == 0 {
		percentage = max(50-n/125, minFeasibleNodesPercentage)
	}
	return max(n*percentage/100, minFeasibleNodes)
}

func (s *Scheduler) filter(f *profile, c *cycle) {
	filters := f.filters(&c.State)
	nominated := c.State.Snapshot.Get(c.Pod.Info.Pod.Status.NominatedNodeName)
	if nominated != nil && f.filterNode(filters, &c.State, c.Pod.Info, nominated).IsSuccess() {
		c.Feasible = []*framework.NodeInfo{nominated} // the place that preemption made
	} else {
		s.search(f, filters, c)
	}
	h := s.hop(c.Pod.Info, stage.Filter, "Filter")
	if !h.Background {
		h.Detail = filterTable(filters, c)
	}
	switch len(c.Feasible) {
	case 0:
		h.Outcome, h.Reason = trace.Denied, refusers(filters, c)
		h.Message = framework.FitErrorMessage(c.State.Snapshot.Nodes.Len(), "", &c.Verdicts, "")
		c.Next = stage.PostFilter
	case 1: // nothing to compare
		c.Host = c.Feasible[0].Name
		c.Next = stage.Reserve
	default:
		c.Next = stage.PreScore
	}
	s.log.Record(h)
	s.goOn(c, s.cfg.Step)
}

// search looks for enough nodes that fit, beginning where the last cycle left off.
func (s *Scheduler) search(f *profile, filters []framework.FilterPlugin, c *cycle) {
	nodes := c.State.Snapshot.Nodes
	total := nodes.Len()
	var some []*framework.NodeInfo
	if c.Names != nil {
		for i := range total {
			if n := nodes.At(i); c.Names[n.Name] {
				some = append(some, n)
			}
		}
		nodes = framework.NewNodes(some)
	}
	n := nodes.Len()
	want := s.enough(n)
	for i := 0; i < n && len(c.Feasible) < want; i++ {
		node := nodes.At((s.s.next + i) % n)
		if st := f.filterNode(filters, &c.State, c.Pod.Info, node); st.IsSuccess() {
			c.Feasible = append(c.Feasible, node)
		} else {
			c.Verdicts.Nodes = append(c.Verdicts.Nodes, framework.NodeStatus{Node: node.Name, Status: st})
			if len(c.Verdicts.Nodes) == 1 || c.Verdicts.Nodes[len(c.Verdicts.Nodes)-2].Status.Plugin != st.Plugin {
				c.Rejectors = insert(c.Rejectors, st.Plugin)
			}
		}
	}
	s.s.next = (s.s.next + len(c.Feasible) + len(c.Verdicts.Nodes)) % total
}

func (s *Scheduler) postFilter(f *profile, c *cycle) {
	h := s.hop(c.Pod.Info, stage.PostFilter, "PostFilter")
	result, status := s.runPostFilter(f, c)
	c.PostFilter = status.Message()
	if result != nil && result.Override {
		c.Nomination = &result.NominatedNode
	}
	message := framework.FitErrorMessage(c.State.Snapshot.Nodes.Len(), c.PreFilter, &c.Verdicts, c.PostFilter)
	h.Message = message
	if status.IsSuccess() {
		h.Reason = "DefaultPreemption"
	} else {
		h.Outcome, h.Reason = trace.Denied, "FailedScheduling"
	}
	if !h.Background {
		h.Detail = preemptionTable(c, result, message)
	}
	s.log.Record(h)
	s.failed(c, message, true)
	if status.IsSuccess() {
		s.evict(c.Pod.Info, result)
	}
}

// runPostFilter asks the PostFilter plugins in turn until one made room or failed itself.
func (s *Scheduler) runPostFilter(f *profile, c *cycle) (*framework.PostFilterResult, *framework.Status) {
	var last *framework.PostFilterResult
	var reasons []string
	for _, p := range f.postFilter {
		r, st := p.PostFilter(handle{s, f}, &c.State, c.Pod.Info, &c.Verdicts)
		switch st.GetCode() {
		case framework.Unschedulable, framework.Pending:
			if r != nil {
				last = r
			}
			reasons = append(reasons, st.Reasons...)
		case framework.Success, framework.UnschedulableAndUnresolvable:
			return r, st
		default:
			return nil, st
		}
	}
	return last, framework.NewStatus(framework.Unschedulable, "", reasons...)
}

func (s *Scheduler) preScore(f *profile, c *cycle) {
	h := s.hop(c.Pod.Info, stage.PreScore, "PreScore")
	for _, p := range f.preScore {
		st := p.PreScore(&c.State, c.Pod.Info, c.Feasible)
		if st.IsSkip() {
			c.State.NoScore = append(c.State.NoScore[:len(c.State.NoScore):len(c.State.NoScore)], p.Name())
		} else if !st.IsSuccess() {
			h.Outcome, h.Reason, h.Message = trace.Retry, p.Name(), `running PreScore plugin "`+p.Name()+`": `+st.Message()
			s.log.Record(h)
			s.failed(c, h.Message, false)
			return
		}
	}
	s.log.Record(h)
	c.Next = stage.Score
	s.goOn(c, s.cfg.Step+time.Duration(len(c.Feasible))*s.cfg.PerNode)
}

func (s *Scheduler) score(f *profile, c *cycle) {
	scorers := f.scorers(&c.State)
	n := len(c.Feasible)
	scores := make([][]int64, len(scorers))
	totals := make([]int64, n)
	flat := make([]int64, n*len(scorers))
	for i, p := range scorers {
		scores[i] = flat[i*n : (i+1)*n]
		for j, node := range c.Feasible {
			v, st := p.Score(&c.State, c.Pod.Info, node)
			if !st.IsSuccess() {
				s.failed(c, `running Score plugins: plugin "`+p.Name()+`" failed with: `+st.Message(), false)
				return
			}
			scores[i][j] = v
		}
		if norm, ok := p.ScorePlugin.(framework.ScoreExtensions); ok {
			norm.NormalizeScore(&c.State, c.Pod.Info, c.Feasible, scores[i])
		}
		for j := range totals {
			totals[j] += scores[i][j] * p.weight
		}
	}
	best := s.best(totals)
	c.Host = c.Feasible[best].Name
	h := s.hop(c.Pod.Info, stage.Score, "Score")
	h.Message = c.Host + ": " + strconv.FormatInt(totals[best], 10)
	if !h.Background {
		h.Detail = scoreTable(scorers, c, scores, totals, best)
	}
	s.log.Record(h)
	c.Next = stage.Reserve
	s.goOn(c, s.cfg.Step)
}

// best returns the highest total; among equals each has the same chance.
func (s *Scheduler) best(totals []int64) int {
	best, equal := 0, 1
	for i := 1; i < len(totals); i++ {
		switch {
		case totals[i] > totals[best]:
			best, equal = i, 1
		case totals[i] == totals[best]:
			if equal++; s.IntN(equal) == 0 {
				best = i
			}
		}
	}
	return best
}

// IntN draws from the scheduler's random stream.
func (s *Scheduler) IntN(n int) int { return s.k.Rand(string(ID)).IntN(n) }

// handle is what a PostFilter plugin gets of the scheduler.
type handle struct {
	*Scheduler
	f *profile
}

// RunFilterPlugins implements framework.Handle.
func (h handle) RunFilterPlugins(state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	return h.f.filterNode(h.f.filters(state), state, pod, node)
}

// AddPod implements framework.Handle.
func (h handle) AddPod(state *framework.CycleState, pod, added *framework.PodInfo, node *framework.NodeInfo) {
	h.f.addPod(state, pod, added, node)
}

// RemovePod implements framework.Handle.
func (h handle) RemovePod(state *framework.CycleState, pod, removed *framework.PodInfo, node *framework.NodeInfo) {
	h.f.removePod(state, pod, removed, node)
}
