// Package scheduler is kube-scheduler: it takes each Pod that has no node yet and finds
// one for it.
//
// A Pod waits in one of three queues (active, backoff, unschedulable). The scheduling
// cycle takes one Pod at a time through PreFilter, Filter, PostFilter, PreScore, Score,
// Reserve and Permit; the binding cycle (PreBind, Bind, PostBind) of one Pod runs beside
// the scheduling cycles of the next. Each extension point is a kernel event of its own,
// so that any of them is a place to stop, and leaves a hop in the trace. What was decided
// but is not confirmed yet counts as done in the node cache: the Pod is assumed.
//
// A Pod that fits nowhere becomes unschedulable. Each cluster change is put to the
// plugins that refused it, and only if one of them thinks that the change may help is the
// Pod tried again; after five minutes it is tried anyhow.
//
// Upstream: k8s.io/kubernetes/pkg/scheduler, whose only profile by default is default-scheduler.
//
// Left out: leader election, extenders, Pod groups, batching of alike Pods, waiting on
// Permit. Upstream filters on 16 threads; here nodes are looked at one after the other,
// and the time that takes is divided by 16.
package scheduler

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/scheduler/plugins"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// ID is the scheduler's actor id.
const ID = kernel.ActorID(stage.Scheduler)

// DefaultName is the scheduler name of the default profile, and the reporting component
// of its events.
const DefaultName = corev1.DefaultSchedulerName

// Config holds the durations of the model and upstream's settings.
type Config struct {
	// Step is how long an extension point takes; PerNode is added for each node that Filter
	// or Score looks at.
	Step    time.Duration
	PerNode time.Duration
	// PodInitialBackoff and PodMaxBackoff bound the wait of a Pod between two attempts.
	PodInitialBackoff time.Duration
	PodMaxBackoff     time.Duration
	// UnschedulableTimeout is after how long an unschedulable Pod is tried again anyhow;
	// FlushEvery is how often that is looked at.
	UnschedulableTimeout time.Duration
	FlushEvery           time.Duration
	// PercentageOfNodesToScore ends the search once so many nodes fit; 0 means that the
	// size of the cluster decides (50% at 100 nodes, less for more, at least 5%).
	PercentageOfNodesToScore int
	// Profiles are the scheduler names that are served, each with its plugins; all of them
	// sort the queue alike.
	Profiles []Profile
}

// Profile is one scheduler name with its plugins in order.
type Profile struct {
	Name    string
	Plugins []plugins.Entry
}

// DefaultConfig returns upstream's settings and plausible durations.
func DefaultConfig() Config {
	return Config{
		Step: 150 * time.Microsecond, PerNode: 5 * time.Microsecond,
		PodInitialBackoff: time.Second, PodMaxBackoff: 10 * time.Second,
		UnschedulableTimeout: 5 * time.Minute, FlushEvery: 30 * time.Second,
		Profiles: []Profile{{DefaultName, plugins.Default()}},
	}
}

// Scheduler is the actor.
type Scheduler struct {
	k        *kernel.Kernel
	log      *trace.Log
	board    *fault.Board
	c        *client.Client
	cfg      Config
	profiles profiles

	podCache  *client.Cache[*corev1.Pod]
	nodeWatch *client.Cache[*corev1.Node]
	others    map[reflect.Type]watched
	kinds     []reflect.Type // keys of others, in the order in which they are listed

	queue *podQueue
	s     state
}

// state is what a snapshot carries besides the queue and the client's caches.
type state struct {
	nodes     nodeCache
	nominated map[string][]string    // node → keys of the Pods nominated to it
	cycle     *cycle                 // the Pod in its scheduling cycle, nil for none
	bindings  map[string]*binding    // by Pod key
	evictions map[types.UID]eviction // by preemptor
	next      int                    // nodes[next] is where the next search begins
	cycles    uint64                 // number of the last cycle
	stopped   bool                   // by fault

	popping bool // a pop event is on its way
	flush   kernel.Timer
	sweep   kernel.Timer
}

func newState() state {
	return state{nominated: map[string][]string{}, bindings: map[string]*binding{}, evictions: map[types.UID]eviction{}, nodes: nodeCache{stale: true}}
}

// New returns the scheduler and registers it. Start begins its work.
func New(k *kernel.Kernel, log *trace.Log, board *fault.Board, c *client.Client, cfg Config) *Scheduler {
	var ps profiles
	for _, p := range cfg.Profiles {
		f := newProfile(p.Name, p.Plugins)
		f.recorder = client.NewSeriesRecorder(c, p.Name)
		ps = append(ps, f)
	}
	s := &Scheduler{
		k: k, log: log, board: board, c: c, cfg: cfg, profiles: ps,
		podCache:  client.NewCache[*corev1.Pod](c, client.Selector{}),
		nodeWatch: client.NewCache[*corev1.Node](c, client.Selector{}),
		others:    kindsWatched(c),
		queue:     newPodQueue(ps, cfg.PodInitialBackoff, cfg.PodMaxBackoff),
		s:         newState(),
	}
	s.kinds = slices.SortedFunc(maps.Keys(s.others), func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	s.queue.held = s.preempting
	k.Register(ID, s)
	return s
}

// The scheduler's own events.
type (
	start struct{}
	// pop asks for the next scheduling cycle.
	pop struct{}
	// step runs the next extension point of the scheduling cycle.
	step struct{ Cycle uint64 }
	// bindStep runs the next extension point of a binding cycle.
	bindStep struct {
		Key   string
		Cycle uint64
	}
	// flushBackoff and sweep are the two clocks of the queue.
	flushBackoff  struct{}
	sweepLeftover struct{}
	// wakeUp looks whether the fault that stopped the scheduler is over.
	wakeUp struct{}
)

// Start begins to list and watch.
func (s *Scheduler) Start() { s.k.Send(ID, 0, start{}) }

// Handle implements kernel.Actor.
func (s *Scheduler) Handle(ev kernel.Event) {
	if s.isStopped(ev) {
		return
	}
	switch e := ev.(type) {
	case start:
		for _, t := range s.kinds {
			s.others[t].Start()
		}
		s.nodeWatch.Start()
		s.podCache.Start() // last: when the Pods are there, everything is
		return
	case pop:
		s.s.popping = false
		s.startCycle()
		return
	case step:
		s.runStep(e)
		return
	case bindStep:
		s.runBindStep(e)
		return
	case flushBackoff:
		s.s.flush = kernel.Timer{}
		s.woken(s.queue.completed(s.k.Now()), "BackoffComplete")
		s.schedule()
		return
	case sweepLeftover:
		s.s.sweep = kernel.Timer{}
		s.woken(s.queue.leftover(s.k.Now(), s.cfg.UnschedulableTimeout), "UnschedulableTimeout")
		s.schedule()
		return
	case wire.Answer:
		if t, ok := e.Tag.(bindTag); ok {
			s.bound(t, e)
			return
		}
		if t, ok := e.Tag.(evictTag); ok {
			s.evicting(t, e)
			return
		}
	}
	s.observe(ev)
}

// observe passes an event to the caches and acts on what has changed.
func (s *Scheduler) observe(ev kernel.Event) {
	for _, f := range s.profiles {
		if f.recorder.Handle(ev) {
			return
		}
	}
	if changes, mine := s.nodeWatch.Handle(ev); mine {
		for _, c := range changes {
			s.nodeChanged(c)
		}
		s.schedule()
		return
	}
	if changes, mine := s.podCache.Handle(ev); mine {
		for _, c := range changes {
			s.podChanged(c)
		}
		s.schedule()
		return
	}
	for _, t := range s.kinds {
		changes, mine := s.others[t].handle(ev)
		for _, h := range changes {
			s.moveAll(h, nil)
		}
		if mine {
			s.schedule()
			return
		}
	}
}

// wakeUpEvery is how often a stopped scheduler is looked at.
const wakeUpEvery = time.Second

// isStopped drops everything while the fault is on, and starts anew when it is over.
func (s *Scheduler) isStopped(ev kernel.Event) bool {
	_, off := s.board.On(fault.SchedulerStopped)
	switch {
	case !off && !s.s.stopped:
		return false
	case off && !s.s.stopped:
		s.podCache.Reset()
		s.nodeWatch.Reset()
		for _, t := range s.kinds {
			s.others[t].Reset()
		}
		s.k.Cancel(s.s.flush)
		s.k.Cancel(s.s.sweep)
		s.queue.clear()
		cycles := s.s.cycles
		s.s = newState()
		s.s.cycles, s.s.stopped = cycles, true
		s.k.Send(ID, wakeUpEvery, wakeUp{})
	case off:
		if _, mine := ev.(wakeUp); mine {
			s.k.Send(ID, wakeUpEvery, wakeUp{})
		}
	default:
		s.s.stopped = false
		s.Start()
	}
	return true
}

// schedule sees to it that the next cycle comes and that the queue's clocks run.
func (s *Scheduler) schedule() {
	q := &s.queue.s
	if s.s.cycle == nil && !s.s.popping && s.synced() && q.active.Len()+q.backoff.Len() > 0 {
		s.s.popping = true
		s.k.Send(ID, 0, pop{})
	}
	if at, ok := s.queue.nextBackoff(); ok && (s.s.flush.Seq == 0 || at < s.s.flush.At) {
		s.k.Cancel(s.s.flush)
		s.s.flush = s.k.Send(ID, at.Sub(s.k.Now()), flushBackoff{})
	}
	if s.s.sweep.Seq != 0 {
		return
	}
	if since, ok := s.queue.oldest(); ok {
		every := kernel.Time(s.cfg.FlushEvery)
		at := since.Add(s.cfg.UnschedulableTimeout)
		at += every - at%every
		s.s.sweep = s.k.Send(ID, at.Sub(s.k.Now()), sweepLeftover{})
	}
}

func (s *Scheduler) synced() bool { return s.podCache.Synced() && s.nodeWatch.Synced() }
