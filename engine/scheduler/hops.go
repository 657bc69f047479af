package scheduler

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/scheduler/framework"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Limits of what a hop's detail holds.
const (
	detailNodesMax = 100 // rows of the node × plugin table
	detailQueueMax = 20  // Pods of each queue
)

// background says whether nobody follows this Pod: the platform's own are not part of
// the story.
func background(pod *corev1.Pod) bool { return pod.Namespace == metav1.NamespaceSystem }

// hop prepares a hop about a Pod inside the scheduler.
func (s *Scheduler) hop(p *framework.PodInfo, at stage.ID, verb string) trace.Hop {
	return trace.Hop{
		Stage: at, From: stage.Scheduler, To: stage.Scheduler, Verb: verb,
		Object:     trace.Ref{Kind: "Pod", Namespace: p.Pod.Namespace, Name: p.Pod.Name},
		Background: background(p.Pod),
	}
}

// queueDetail shows the queues, for a Pod that somebody follows; first is the Pod that
// was just taken from the head of the active queue, if any.
func (s *Scheduler) queueDetail(p *framework.PodInfo, first string) any {
	if background(p.Pod) {
		return nil
	}
	q := &s.queue.s
	d := trace.Queue{Active: names(q.active), Backoff: append(names(q.backoff), names(q.failed)...)}
	if first != "" {
		d.Active = slices.Insert(d.Active, 0, first)
	}
	seen := 0
	q.parked.Scan(func(key string, p *queued) bool {
		seen++
		switch {
		case p.Queue == gatedQ && len(d.Gated) < detailQueueMax:
			d.Gated = append(d.Gated, key)
		case p.Queue == unschedulableQ && len(d.Unschedulable) < detailQueueMax:
			d.Unschedulable = append(d.Unschedulable, key)
		}
		return seen < 4*detailQueueMax // the queue may be endless
	})
	return d
}

func names(t *btree.BTreeG[*queued]) []string {
	var out []string
	t.Scan(func(p *queued) bool {
		out = append(out, p.Info.Key)
		return len(out) < detailQueueMax
	})
	return out
}

// filterTable is the node × plugin table after Filter.
func filterTable(filters []framework.FilterPlugin, c *cycle) trace.SchedulingCycle {
	d := trace.SchedulingCycle{}
	for _, p := range filters {
		d.Plugins = append(d.Plugins, p.Name())
	}
	refused := make(map[string]*framework.Status, len(c.Verdicts.Nodes))
	for _, n := range c.Verdicts.Nodes {
		refused[n.Node] = n.Status
	}
	fits := make(map[string]bool, len(c.Feasible))
	for _, n := range c.Feasible {
		fits[n.Name] = true
	}
	for i := range c.State.Snapshot.Nodes.Len() {
		name := c.State.Snapshot.Nodes.At(i).Name
		status, bad := refused[name]
		if !bad && !fits[name] {
			continue // not looked at: enough nodes were found before
		}
		if len(d.Nodes) == detailNodesMax {
			break
		}
		row := trace.NodeRow{Node: name, Status: make([]string, len(filters))}
		if bad {
			markRefusal(row.Status, d.Plugins, status)
		}
		d.Nodes = append(d.Nodes, row)
	}
	byName(d.Nodes)
	return d
}

// byName sorts the rows of a table as kubectl lists nodes.
func byName(rows []trace.NodeRow) {
	slices.SortFunc(rows, func(a, b trace.NodeRow) int { return strings.Compare(a.Node, b.Node) })
}

// markRefusal fills a row: passed, refused, not asked any more.
func markRefusal(row, plugins []string, status *framework.Status) {
	asked := true
	for i, p := range plugins {
		switch {
		case !asked:
			row[i] = "-"
		case p == status.Plugin:
			row[i], asked = status.Message(), false
		}
	}
	if asked && len(row) > 0 { // refused before any plugin looked at the node
		for i := range row {
			row[i] = "-"
		}
		row[0] = status.Message()
	}
}

// refusers names the plugins that refused nodes, in the order of the profile.
func refusers(filters []framework.FilterPlugin, c *cycle) string {
	seen := map[string]bool{}
	for _, name := range c.Rejectors {
		seen[name] = true
	}
	var out []string
	for _, p := range filters {
		if seen[p.Name()] {
			out = append(out, p.Name())
		}
	}
	return strings.Join(out, ",")
}

// preemptionTable says node by node why preemption does not help, or where it does.
func preemptionTable(c *cycle, r *framework.PostFilterResult, message string) trace.SchedulingCycle {
	d := trace.SchedulingCycle{Event: message}
	why := map[string]string{}
	if r != nil {
		for _, n := range r.Nodes {
			why[n.Node] = n.Status.Message()
		}
	}
	for i := range c.State.Snapshot.Nodes.Len() {
		if len(d.Nodes) == detailNodesMax {
			break
		}
		name := c.State.Snapshot.Nodes.At(i).Name
		row := trace.NodeRow{Node: name, Message: why[name], Chosen: r != nil && name == r.NominatedNode}
		if row.Message == "" && r != nil && !row.Chosen && r.NominatedNode == "" {
			row.Message = "Preemption is not helpful for scheduling"
		}
		d.Nodes = append(d.Nodes, row)
	}
	byName(d.Nodes)
	return d
}

// scoreTable is the node × plugin table after Score.
func scoreTable(scorers []weighted, c *cycle, scores [][]int64, totals []int64, best int) trace.SchedulingCycle {
	d := trace.SchedulingCycle{}
	for _, p := range scorers {
		d.Plugins = append(d.Plugins, p.Name())
	}
	for j, node := range c.Feasible {
		if len(d.Nodes) == detailNodesMax-1 && j < best {
			continue // keep a row for the chosen one
		}
		if len(d.Nodes) == detailNodesMax {
			break
		}
		row := trace.NodeRow{Node: node.Name, Total: totals[j], Chosen: j == best}
		for i, p := range scorers {
			row.Scores = append(row.Scores, trace.NodeScore{Plugin: p.Name(), Raw: scores[i][j], Weight: p.weight})
		}
		d.Nodes = append(d.Nodes, row)
	}
	byName(d.Nodes)
	return d
}
