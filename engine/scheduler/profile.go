package scheduler

import (
	"fmt"
	"slices"

	"podwalk/engine/client"
	"podwalk/engine/scheduler/framework"
	"podwalk/engine/scheduler/plugins"
)

// profile is one scheduler name with its plugins, sorted by extension point.
type profile struct {
	name       string
	recorder   *client.Recorder
	queueSort  framework.QueueSortPlugin
	preEnqueue []framework.PreEnqueuePlugin
	preFilter  []framework.PreFilterPlugin
	extensions []framework.PreFilterExtensions
	filter     []framework.FilterPlugin
	postFilter []framework.PostFilterPlugin
	preScore   []framework.PreScorePlugin
	score      []weighted
	reserve    []framework.ReservePlugin
	permit     []framework.PermitPlugin
	preBind    []framework.PreBindPlugin
	bind       []framework.BindPlugin
	postBind   []framework.PostBindPlugin
	hints      []registration
}

type weighted struct {
	framework.ScorePlugin
	weight int64
}

// registration is what a plugin wants to be woken by.
type registration struct {
	plugin string
	event  framework.ClusterEvent
	hint   framework.HintFn
}

func newProfile(name string, entries []plugins.Entry) *profile {
	f := &profile{name: name}
	for _, e := range entries {
		f.addScheduling(e)
		f.addBinding(e.Plugin)
		f.addHints(e.Plugin)
	}
	return f
}

func (f *profile) addScheduling(e plugins.Entry) {
	if p, ok := e.Plugin.(framework.QueueSortPlugin); ok {
		f.queueSort = p
	}
	if p, ok := e.Plugin.(framework.PreEnqueuePlugin); ok {
		f.preEnqueue = append(f.preEnqueue, p)
	}
	if p, ok := e.Plugin.(framework.PreFilterPlugin); ok {
		f.preFilter = append(f.preFilter, p)
	}
	if p, ok := e.Plugin.(framework.PreFilterExtensions); ok {
		f.extensions = append(f.extensions, p)
	}
	if p, ok := e.Plugin.(framework.FilterPlugin); ok {
		f.filter = append(f.filter, p)
	}
	if p, ok := e.Plugin.(framework.PostFilterPlugin); ok {
		f.postFilter = append(f.postFilter, p)
	}
	if p, ok := e.Plugin.(framework.PreScorePlugin); ok {
		f.preScore = append(f.preScore, p)
	}
	if p, ok := e.Plugin.(framework.ScorePlugin); ok {
		f.score = append(f.score, weighted{p, max(e.Weight, 1)})
	}
}

func (f *profile) addBinding(plugin framework.Plugin) {
	if p, ok := plugin.(framework.ReservePlugin); ok {
		f.reserve = append(f.reserve, p)
	}
	if p, ok := plugin.(framework.PermitPlugin); ok {
		f.permit = append(f.permit, p)
	}
	if p, ok := plugin.(framework.PreBindPlugin); ok {
		f.preBind = append(f.preBind, p)
	}
	if p, ok := plugin.(framework.BindPlugin); ok {
		f.bind = append(f.bind, p)
	}
	if p, ok := plugin.(framework.PostBindPlugin); ok {
		f.postBind = append(f.postBind, p)
	}
}

func (f *profile) addHints(plugin framework.Plugin) {
	p, ok := plugin.(framework.EnqueueExtensions)
	if !ok {
		if _, filters := plugin.(framework.FilterPlugin); filters {
			f.hints = append(f.hints, registration{plugin.Name(), framework.ClusterEvent{Resource: framework.WildCard, Action: framework.All}, nil})
		}
		return
	}
	for _, e := range p.EventsToRegister() {
		f.hints = append(f.hints, registration{p.Name(), e.Event, e.Hint})
	}
}

// profiles are all scheduler names that this scheduler serves.
type profiles []*profile

func (ps profiles) get(schedulerName string) *profile {
	for _, f := range ps {
		if f.name == schedulerName {
			return f
		}
	}
	return nil
}

// of returns the profile of a Pod that the scheduler is responsible for.
func (ps profiles) of(p *framework.PodInfo) *profile { return ps.get(p.Pod.Spec.SchedulerName) }

// queueSort is shared: there is one queue.
func (ps profiles) queueSort() framework.QueueSortPlugin { return ps[0].queueSort }

// runPreFilter runs the PreFilter plugins. names are the nodes to which they narrow the
// search, nil for all; by says who did.
func (f *profile) runPreFilter(state *framework.CycleState, pod *framework.PodInfo) (names map[string]bool, by []string, s *framework.Status) {
	var refused *framework.Status
	for _, p := range f.preFilter {
		r, s := p.PreFilter(state, pod)
		switch s.GetCode() {
		case framework.Success:
		case framework.Skip:
			state.Skip = append(state.Skip[:len(state.Skip):len(state.Skip)], p.Name())
			continue
		case framework.UnschedulableAndUnresolvable:
			return nil, nil, s
		case framework.Unschedulable: // preemption may help: it needs what the others work out
			refused = s
			continue
		default:
			return nil, nil, framework.AsStatus(p.Name(), fmt.Errorf("running PreFilter plugin %q: %s", p.Name(), s.Message()))
		}
		if r == nil || r.NodeNames == nil {
			continue
		}
		by = append(by, p.Name())
		names = intersect(names, r.NodeNames)
		if len(names) == 0 {
			slices.Sort(by)
			text := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", by)
			if len(by) == 1 {
				text = "node(s) didn't satisfy plugin " + by[0]
			}
			return names, by, framework.NewStatus(framework.UnschedulableAndUnresolvable, "", text)
		}
	}
	slices.Sort(by)
	return names, by, refused
}

func intersect(a, b map[string]bool) map[string]bool {
	if a == nil {
		return b
	}
	out := map[string]bool{}
	for n := range a {
		if b[n] {
			out[n] = true
		}
	}
	return out
}

// filters returns the Filter plugins that PreFilter did not skip.
func (f *profile) filters(state *framework.CycleState) []framework.FilterPlugin {
	out := make([]framework.FilterPlugin, 0, len(f.filter))
	for _, p := range f.filter {
		if !slices.Contains(state.Skip, p.Name()) {
			out = append(out, p)
		}
	}
	return out
}

// scorers returns the Score plugins that PreScore did not skip.
func (f *profile) scorers(state *framework.CycleState) []weighted {
	out := make([]weighted, 0, len(f.score))
	for _, p := range f.score {
		if !slices.Contains(state.NoScore, p.Name()) {
			out = append(out, p)
		}
	}
	return out
}

func runFilters(filters []framework.FilterPlugin, state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	for _, p := range filters {
		if s := p.Filter(state, pod, node); !s.IsSuccess() {
			return s
		}
	}
	return nil
}

// filterNode runs the filters, first as if the Pods of at least the same priority for
// which preemption made room on the node were there already, then without them.
func (f *profile) filterNode(filters []framework.FilterPlugin, state *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	nominated := state.Snapshot.Nominated[node.Name]
	if len(nominated) > 0 {
		with, tried := node, false
		out := state.Clone()
		for _, q := range nominated {
			if q.Priority >= pod.Priority && q.UID() != pod.UID() {
				with, tried = with.WithPod(q), true
				f.addPod(out, pod, q, with)
			}
		}
		if tried {
			if s := runFilters(filters, out, pod, with); !s.IsSuccess() {
				return s
			}
		}
	}
	return runFilters(filters, state, pod, node)
}

func (f *profile) addPod(state *framework.CycleState, pod, added *framework.PodInfo, node *framework.NodeInfo) {
	for _, p := range f.extensions {
		p.AddPod(state, pod, added, node)
	}
}

func (f *profile) removePod(state *framework.CycleState, pod, removed *framework.PodInfo, node *framework.NodeInfo) {
	for _, p := range f.extensions {
		p.RemovePod(state, pod, removed, node)
	}
}
