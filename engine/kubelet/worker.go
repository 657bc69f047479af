package kubelet

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/cri"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// phase is where a Pod worker stands.
type phase string

const (
	syncing     phase = "sync"
	terminating phase = "terminating" // containers are being stopped
	terminated  phase = "terminated"  // they have stopped; volumes and sandbox go
	finished    phase = "finished"
)

// worker is all that the kubelet knows of one Pod.
type worker struct {
	UID      types.UID
	Pod      *corev1.Pod // as last seen; immutable
	Gone     bool        // the API server has it no more
	Static   bool
	Mirror   types.UID // of a static Pod: its mirror, "" while there is none
	Making   bool      // the mirror is being created
	Rejected bool
	Phase    phase
	SeenAt   kernel.Time

	// The pass.
	Pass    uint64
	Running bool
	At      phase  // the phase that the pass began in
	Stage   string // what a running pass waits for
	Ops     []op
	Op      op
	Await   uint64 // the answer that the current operation waits for
	Failed  bool
	Network bool        // it failed for want of a network
	Until   kernel.Time // when the earliest back-off of a failed pass ends, 0 for none
	Did     bool        // it did something to the runtime
	Changed bool        // the runtime changed meanwhile
	Again   bool        // somebody asked for a pass meanwhile
	Last    kernel.Time // end of the last pass, 0 for none
	Timer   kernel.Timer

	// The runtime.
	SandboxID    string
	SandboxReady bool
	Attempt      int // sandboxes made so far
	PodIP        string
	Containers   map[string]*container

	// Volumes and what was fetched for them and for the environment.
	Volumes   map[string]*volume
	WaitSince kernel.Time
	Got       map[string]fetched
	Wanted    int // answers that the current operation still waits for
	NoSecrets []string

	Probes map[probeKey]*probe

	// The status manager.
	Status   *corev1.PodStatus
	Version  int
	Patched  int
	Patching bool
	Untold   bool // the API server did not take the last one
	Deleting bool // the final delete was sent
	Deadline bool // activeDeadlineSeconds has passed
}

// op is one operation of a pass.
type op struct {
	Kind      opKind
	Container string
	Message   string // of a kill
	Reason    string
	Alone     bool   // of a kill: waits for those before it
	Image     string // of a start: the reference with its tag
	ImageID   string
	Ref       string        // the image's full name, as the status shows it
	User      string        // of the image's config
	Present   cri.ImageInfo // the image that is there, until it is known whether the Pod may use it
	Killed    bool          // of a start: the container still ran when the pass began
	Step      int
}

type opKind string

const (
	opKill        opKind = "kill"
	opSandbox     opKind = "sandbox"
	opStopSandbox opKind = "stop-sandbox"
	opStart       opKind = "start"
)

// abort forgets what is under way, as the end of the process does.
func (w *worker) abort() {
	w.Running, w.Stage, w.Ops, w.Await, w.Timer = false, "", nil, 0, kernel.Timer{}
	w.Patching, w.Making, w.Deleting = false, false, false
	w.Patched = 0
	w.Last = 0
	for _, c := range w.Containers {
		c.Kill = kill{}
	}
	for _, v := range w.Volumes {
		v.Fetching = false
	}
	for _, p := range w.Probes {
		p.Gen++
		p.Asking = 0
	}
}

func (w *worker) clone() *worker {
	c := *w
	c.Ops, c.NoSecrets = slices.Clone(w.Ops), slices.Clone(w.NoSecrets)
	c.Got = maps.Clone(w.Got)
	c.Containers = cloneValues(w.Containers)
	c.Volumes = cloneValues(w.Volumes)
	c.Probes = cloneValues(w.Probes)
	return &c
}

// cloneValues copies a map whose values are structs without references that change.
func cloneValues[K comparable, V any](m map[K]*V) map[K]*V {
	if m == nil {
		return nil
	}
	out := make(map[K]*V, len(m))
	for k, v := range m {
		c := *v
		out[k] = &c
	}
	return out
}

func (s state) clone() state {
	c := s
	c.Workers = make(map[types.UID]*worker, len(s.Workers))
	for uid, w := range s.Workers {
		c.Workers[uid] = w.clone()
	}
	c.Pulls = slices.Clone(s.Pulls)
	c.Pulled = s.Pulled.clone()
	c.Asked = maps.Clone(s.Asked)
	c.Serving = maps.Clone(s.Serving)
	return c
}

// sorted returns the workers by namespace and name.
func (kl *Kubelet) sorted() []*worker {
	out := slices.Collect(maps.Values(kl.Workers))
	slices.SortFunc(out, func(a, b *worker) int {
		if c := strings.Compare(kube.KeyOf(a.Pod), kube.KeyOf(b.Pod)); c != 0 {
			return c
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	return out
}

// podChanged takes one change of the watch.
func (kl *Kubelet) podChanged(ch client.Change[*corev1.Pod]) {
	pod := ch.Object()
	if kl.cfg.Kwok {
		kl.kwokPod(ch)
		return
	}
	if hash, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		kl.mirrorChanged(types.UID(hash), ch)
		return
	}
	w := kl.Workers[pod.UID]
	if ch.Type != wire.Deleted && ch.Type != wire.Added && ch.Old.UID != pod.UID {
		kl.podRemoved(kl.Workers[ch.Old.UID]) // deleted and made again between two events
	}
	switch {
	case ch.Type == wire.Deleted:
		kl.podRemoved(w)
	case w == nil:
		kl.podAdded(pod)
	default:
		kl.podUpdated(w, pod)
	}
}

func (kl *Kubelet) podAdded(pod *corev1.Pod) {
	w := newWorker(pod, kl.k.Now())
	if terminal(pod.Status.Phase) {
		// Ended before this kubelet knew of it: there is nothing to run.
		kl.Workers[pod.UID] = w
		w.Phase, w.Status = finished, pod.Status.DeepCopy()
		if pod.DeletionTimestamp != nil {
			kl.finalDelete(w)
		}
		return
	}
	kl.hop(w, trace.Hop{
		Stage: stage.NodeWatch, From: stage.APIServer, To: kl.me, Verb: "watch", Revision: revisionOf(pod),
		Message: "ADDED, spec.nodeName is " + kl.cfg.Node,
	})
	reason, message := kl.admit(w)
	kl.Workers[pod.UID] = w
	if reason != "" {
		kl.reject(w, reason, message)
		return
	}
	kl.hop(w, trace.Hop{Stage: stage.NodeAdmission, From: kl.me, To: kl.me, Verb: "admit"})
	if pod.DeletionTimestamp != nil {
		w.Phase = terminating
	}
	kl.schedule(w, kl.k.Now().Add(kl.cfg.SyncDelay))
}

func newWorker(pod *corev1.Pod, now kernel.Time) *worker {
	return &worker{
		UID: pod.UID, Pod: pod, Phase: syncing, SeenAt: now,
		Containers: map[string]*container{}, Volumes: map[string]*volume{}, Got: map[string]fetched{}, Probes: map[probeKey]*probe{},
	}
}

func (kl *Kubelet) podUpdated(w *worker, pod *corev1.Pod) {
	old := w.Pod
	w.Pod = pod
	switch {
	case pod.DeletionTimestamp != nil && old.DeletionTimestamp == nil:
		kl.hop(w, trace.Hop{
			Stage: stage.Termination, From: stage.APIServer, To: kl.me, Verb: "watch", Revision: revisionOf(pod),
			Message: "deletionTimestamp is set, grace period " + (time.Duration(graceOf(pod)) * time.Second).String(),
		})
		kl.terminate(w)
	case pod.DeletionTimestamp != nil && w.Phase == finished:
		kl.finalDelete(w)
	case pod.Generation != old.Generation:
		kl.requestSync(w)
	}
}

// podRemoved is called when the API server has the Pod no more. What still runs is
// stopped with its grace period all the same.
func (kl *Kubelet) podRemoved(w *worker) {
	if w == nil {
		return
	}
	w.Gone = true
	if w.Phase == finished {
		kl.forget(w)
		return
	}
	kl.terminate(w)
}

// terminate makes the worker stop its containers.
func (kl *Kubelet) terminate(w *worker) {
	if w.Phase == finished {
		kl.finalDelete(w)
		return
	}
	if w.Phase != syncing {
		return
	}
	w.Phase = terminating
	if w.Running && (w.Stage == "volumes" || w.Stage == "services") {
		kl.endPass(w)
		return
	}
	kl.requestSync(w)
}

// forget drops a worker and what is left of it in the runtime.
func (kl *Kubelet) forget(w *worker) {
	kl.k.Cancel(w.Timer)
	kl.stopProbes(w, true)
	if w.SandboxID != "" {
		kl.removeSandbox(w)
	}
	delete(kl.Workers, w.UID)
}

// relistAfter returns when the PLEG relists next after t.
func (kl *Kubelet) relistAfter(t kernel.Time) kernel.Time {
	p := kernel.Time(kl.cfg.RelistPeriod)
	base := kernel.Time(kl.Phase)
	n := (t-base)/p + 1
	if t < base {
		n = 0
	}
	return base + n*p
}

// requestSync asks for a pass: at once, or when the runtime's state has been read again
// since the last pass.
func (kl *Kubelet) requestSync(w *worker) {
	if w.Running {
		w.Again = true
		return
	}
	at := kl.k.Now()
	if w.Last != 0 {
		at = max(at, kl.relistAfter(w.Last))
	}
	kl.schedule(w, at)
}

// schedule plans the next pass, unless an earlier one is planned already.
func (kl *Kubelet) schedule(w *worker, at kernel.Time) {
	if w.Timer.Seq != 0 {
		if w.Timer.At <= at {
			return
		}
		kl.k.Cancel(w.Timer)
	}
	w.Timer = kl.k.Send(kl.self, at.Sub(kl.k.Now()), wake{w.UID})
}

func (kl *Kubelet) wake(uid types.UID) {
	w := kl.Workers[uid]
	if w == nil || w.Running || w.Timer.At != kl.k.Now() {
		return
	}
	w.Timer = kernel.Timer{}
	w.Pass++
	w.At = w.Phase
	w.Running, w.Stage, w.Failed, w.Network, w.Until, w.Did, w.Changed, w.Again = true, "", false, false, 0, false, false, false
	switch w.Phase {
	case syncing:
		kl.syncPod(w)
	case terminating:
		kl.syncTerminating(w)
	case terminated:
		kl.syncTerminated(w)
	default:
		w.Running = false
	}
}

// endPass plans what comes next.
func (kl *Kubelet) endPass(w *worker) {
	w.Running, w.Stage, w.Ops, w.Await = false, "", nil, 0
	w.Last = kl.k.Now()
	switch {
	case w.Phase == finished:
		return
	case w.Phase != w.At:
		kl.requestSync(w)
	case w.Failed && w.Network:
		kl.later(w, kl.k.Now().Add(kl.jitter(kl.cfg.NetworkBackOff)))
	case w.Failed && w.Until != 0:
		// Exactly when the back-off ends: waiting longer would add to it.
		kl.later(w, max(kl.k.Now(), min(w.Until, kl.k.Now().Add(kl.cfg.Resync))))
	case w.Failed:
		kl.later(w, kl.k.Now().Add(kl.jitter(kl.cfg.BackOff)))
	case w.Did:
		kl.schedule(w, kl.k.Now().Add(kl.cfg.SyncDelay)) // relists at once, to see what it did
	default:
		kl.later(w, kl.k.Now().Add(kl.jitter(kl.cfg.Resync)))
	}
	if w.Changed || w.Again {
		kl.requestSync(w)
	}
}

// later plans a pass for the first look at the kubelet's work queue that finds it due: the
// loop looks once a second.
func (kl *Kubelet) later(w *worker, at kernel.Time) { kl.schedule(w, kl.relistAfter(at-1)) }

// jitter is upstream's wait.Jitter: it lengthens d by up to the given share.
func (kl *Kubelet) jitter(d time.Duration) time.Duration {
	return d + time.Duration(float64(kl.rand.IntN(1000))/1000*kl.cfg.BackOffJitter*float64(d))
}

// hop records what happened to a Pod; the platform's own Pods stay in the background.
func (kl *Kubelet) hop(w *worker, h trace.Hop) {
	h.Object = trace.Ref{Kind: "Pod", Namespace: w.Pod.Namespace, Name: w.Pod.Name}
	h.Background = h.Background || w.Pod.Namespace == metav1.NamespaceSystem
	kl.log.Record(h)
}

func terminal(p corev1.PodPhase) bool { return p == corev1.PodFailed || p == corev1.PodSucceeded }

// graceOf is how long the Pod's containers get to end by themselves, in seconds.
func graceOf(pod *corev1.Pod) int64 {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return minGrace
}

// minGrace is the shortest time that a container gets, so that a kill is never blind.
const minGrace = 2
