package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// queueName says where a Pod waits.
type queueName string

const (
	activeQ        queueName = "active"
	backoffQ       queueName = "backoff"
	errorBackoffQ  queueName = "error-backoff" // after an internal error: never cut short
	unschedulableQ queueName = "unschedulable"
	gatedQ         queueName = "gated" // part of the unschedulable ones upstream
)

// queued is a waiting Pod. Immutable once it is in the queue: a change puts in a copy.
type queued struct {
	Info      *framework.PodInfo
	Queue     queueName
	Timestamp kernel.Time // when it came, or its last attempt failed
	Order     uint64      // tells apart what happened at one instant
	Initial   kernel.Time // when it was first active
	Attempts  int
	// UnschedulableCount and Errors are the failed attempts so far, and the internal errors
	// in a row: they set the back-off.
	UnschedulableCount, Errors int
	Backoff                    kernel.Time // when the back-off ends
	Rejectors                  []string    // plugins that refused it in the last attempt, sorted
	Gate                       string      // plugin that keeps it out of the active queue
	Hop                        uint64      // last hop of the Pod: the cause of its next cycle
}

// GetPriority implements framework.QueuedPod.
func (q *queued) GetPriority() int32 { return q.Info.Priority }

// GetTimestamp implements framework.QueuedPod.
func (q *queued) GetTimestamp() int64 { return int64(q.Timestamp) }

// happened is a cluster change that came while some Pod was in its cycle.
type happened struct {
	Event    framework.ClusterEvent
	Old, Obj kube.Object
}

// podQueue is the scheduling queue: active, backoff, unschedulable.
type podQueue struct {
	profiles profiles
	initial  time.Duration // first back-off
	max      time.Duration
	// held says that a Pod waits for its own preemption to be carried out.
	held func(types.UID) bool

	s queueState
}

type queueState struct {
	pods    btree.Map[string, *queued] // all, by namespace/name
	active  *btree.BTreeG[*queued]
	backoff *btree.BTreeG[*queued]
	failed  *btree.BTreeG[*queued]
	// parked are the unschedulable and the gated ones.
	parked btree.Map[string, *queued]

	// inFlight maps each Pod between pop and done to the number of changes seen before it.
	inFlight map[types.UID]int
	changes  []happened // since the oldest in-flight Pod was popped
	seen     int        // changes before changes[0]
	order    uint64
}

// next returns the next number in the order of arrival.
func (s *queueState) next() uint64 {
	s.order++
	return s.order
}

func newPodQueue(p profiles, initial, max time.Duration) *podQueue {
	less := p.queueSort().Less
	active := func(a, b *queued) bool {
		if less(a, b) || less(b, a) {
			return less(a, b)
		}
		return a.Order < b.Order
	}
	byExpiry := func(a, b *queued) bool {
		if c := cmp.Compare(a.Backoff, b.Backoff); c != 0 {
			return c < 0
		}
		return active(a, b)
	}
	tree := func(less func(a, b *queued) bool) *btree.BTreeG[*queued] {
		return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	return &podQueue{profiles: p, initial: initial, max: max, s: queueState{
		active: tree(active), backoff: tree(byExpiry), failed: tree(byExpiry), inFlight: map[types.UID]int{},
	}}
}

func (s *queueState) copy() queueState {
	out := *s
	out.pods, out.parked = *s.pods.Copy(), *s.parked.Copy()
	out.active, out.backoff, out.failed = s.active.Copy(), s.backoff.Copy(), s.failed.Copy()
	out.inFlight = map[types.UID]int{}
	for uid, n := range s.inFlight {
		out.inFlight[uid] = n
	}
	out.changes = s.changes[:len(s.changes):len(s.changes)]
	return out
}

func (q *podQueue) clear() {
	q.s = newPodQueue(q.profiles, q.initial, q.max).s
}

func (q *podQueue) get(key string) *queued {
	p, _ := q.s.pods.Get(key)
	return p
}

// put places a Pod that is in no queue.
func (q *podQueue) put(p *queued, where queueName) {
	p.Queue = where
	q.s.pods.Set(p.Info.Key, p)
	switch where {
	case activeQ:
		q.s.active.Set(p)
	case backoffQ:
		q.s.backoff.Set(p)
	case errorBackoffQ:
		q.s.failed.Set(p)
	default:
		q.s.parked.Set(p.Info.Key, p)
	}
}

// take removes a Pod from wherever it is.
func (q *podQueue) take(key string) *queued {
	p, ok := q.s.pods.Delete(key)
	if !ok {
		return nil
	}
	switch p.Queue {
	case activeQ:
		q.s.active.Delete(p)
	case backoffQ:
		q.s.backoff.Delete(p)
	case errorBackoffQ:
		q.s.failed.Delete(p)
	default:
		q.s.parked.Delete(key)
	}
	return p
}

// replace puts a changed copy of a waiting Pod where the Pod is.
func (q *podQueue) replace(p *queued, change func(*queued)) *queued {
	q.take(p.Info.Key)
	out := *p
	change(&out)
	q.put(&out, p.Queue)
	return &out
}

// admit runs the PreEnqueue plugins; a Pod that they keep out is parked as gated.
func (q *podQueue) admit(p *queued, where queueName) (queueName, *framework.Status) {
	p.Gate = ""
	for _, pl := range q.profiles.of(p.Info).preEnqueue {
		if s := pl.PreEnqueue(p.Info); !s.IsSuccess() {
			p.Gate = pl.Name()
			p.Rejectors = insert(p.Rejectors, pl.Name())
			q.put(p, gatedQ)
			return gatedQ, s
		}
	}
	if q.held != nil && q.held(p.Info.UID()) {
		p.Gate = preemptionGate
		q.put(p, gatedQ)
		return gatedQ, framework.NewStatus(framework.UnschedulableAndUnresolvable, preemptionGate, "waiting for the preemption for this pod to be finished")
	}
	q.put(p, where)
	return where, nil
}

// preemptionGate keeps a Pod out of the active queue while its victims are being evicted.
const preemptionGate = "DefaultPreemption"

// canMove reports whether a change may move a parked Pod at all: a gated one only if the
// change is one that its gate waits for.
func (p *queued) canMove(h happened) bool {
	return p.Gate == "" || p.Gate == preemptionGate && h.Event.Matches(framework.ClusterEvent{Resource: framework.AssignedPod, Action: framework.Delete})
}

func insert(names []string, name string) []string {
	i, found := slices.BinarySearch(names, name)
	if found {
		return names
	}
	return slices.Insert(slices.Clone(names), i, name)
}

// add takes in a Pod that has just been seen.
func (q *podQueue) add(info *framework.PodInfo, now kernel.Time, hop uint64) (*queued, *framework.Status) {
	p := &queued{Info: info, Timestamp: now, Order: q.s.next(), Initial: now, Hop: hop}
	_, s := q.admit(p, activeQ)
	return p, s
}

// pop takes the next Pod: the first active one, or, if there is none, the one whose
// back-off ends first (which is then cut short, as upstream does since 1.33).
func (q *podQueue) pop() *queued {
	p, ok := q.s.active.Min()
	if !ok {
		if p, ok = q.s.backoff.Min(); !ok {
			return nil
		}
	}
	q.take(p.Info.Key)
	q.s.inFlight[p.Info.UID()] = q.s.seen + len(q.s.changes)
	out := *p
	out.Attempts++
	return &out
}

// done ends the cycle of a Pod.
func (q *podQueue) done(uid types.UID) {
	delete(q.s.inFlight, uid)
	if len(q.s.inFlight) == 0 {
		q.s.seen += len(q.s.changes)
		q.s.changes = nil
	}
}

func (q *podQueue) isInFlight(uid types.UID) bool {
	_, ok := q.s.inFlight[uid]
	return ok
}

// saw remembers a change for the Pods that are in their cycle.
func (q *podQueue) saw(h happened) {
	if len(q.s.inFlight) > 0 {
		q.s.changes = append(q.s.changes, h)
	}
}

// windowed is upstream's ordering window: back-offs end on whole seconds.
func windowed(t kernel.Time) kernel.Time { return t - t%kernel.Time(time.Second) }

// setBackoff works out when the Pod may be tried again.
func (q *podQueue) setBackoff(p *queued) {
	n := p.UnschedulableCount
	if p.Errors > 0 {
		n = p.Errors
	}
	if n == 0 {
		p.Backoff = 0
		return
	}
	d := q.max
	if shift := n - 1; shift < 30 && q.initial <= q.max>>shift {
		d = q.initial << shift
	}
	p.Backoff = windowed(p.Timestamp.Add(d))
}

// backingOff reports whether the back-off of a Pod still runs.
func backingOff(p *queued, now kernel.Time) bool {
	return p.Backoff != 0 && p.Backoff >= windowed(now)
}

// failed puts back a Pod whose attempt failed: where to depends on whether anything that
// happened meanwhile may help it.
func (q *podQueue) fail(p *queued, now kernel.Time) queueName {
	p.Timestamp, p.Order = now, q.s.next()
	if len(p.Rejectors) == 0 {
		p.Errors++
	} else {
		p.UnschedulableCount++
		p.Errors = 0
	}
	q.setBackoff(p)
	helped := len(p.Rejectors) == 0
	if from, ok := q.s.inFlight[p.Info.UID()]; ok && !helped {
		for _, h := range q.s.changes[from-q.s.seen:] {
			if helped = q.worth(p, h); helped {
				break
			}
		}
	}
	q.done(p.Info.UID())
	if !helped {
		q.put(p, unschedulableQ)
		return unschedulableQ
	}
	return q.requeue(p, now)
}

// requeue sends a Pod that may be schedulable to the active queue, or to back-off first.
func (q *podQueue) requeue(p *queued, now kernel.Time) queueName {
	where := activeQ
	if backingOff(p, now) {
		where = backoffQ
		if len(p.Rejectors) == 0 {
			where = errorBackoffQ
		}
	}
	where, _ = q.admit(p, where)
	return where
}

// worth asks the plugins that refused the Pod whether a change may help it.
func (q *podQueue) worth(p *queued, h happened) bool {
	if len(p.Rejectors) == 0 {
		return true
	}
	if h.Event.IsWildCard() {
		return true
	}
	for _, r := range q.profiles.of(p.Info).hints {
		if !r.event.Matches(h.Event) {
			continue
		}
		if _, refused := slices.BinarySearch(p.Rejectors, r.plugin); !refused {
			continue
		}
		if r.hint == nil || r.hint(p.Info, h.Old, h.Obj) == framework.Queue {
			return true
		}
	}
	return false
}

// move wakes the parked Pods that a change may help, in the order in which they came,
// and returns them. The check, if any, narrows whom the change concerns.
func (q *podQueue) move(h happened, now kernel.Time, check func(*queued) bool) []*queued {
	var woken []*queued
	if q.s.parked.Len() > 0 {
		q.s.parked.Scan(func(_ string, p *queued) bool {
			if p.canMove(h) && (check == nil || check(p)) && q.worth(p, h) {
				woken = append(woken, p)
			}
			return true
		})
	}
	q.saw(h)
	for i, p := range woken {
		woken[i] = q.wake(p, now)
	}
	return woken
}

// wake requeues one parked Pod.
func (q *podQueue) wake(p *queued, now kernel.Time) *queued {
	q.take(p.Info.Key)
	out := *p
	q.requeue(&out, now)
	return &out
}

// completed moves the Pods whose back-off has ended to the active queue and returns them.
func (q *podQueue) completed(now kernel.Time) []*queued {
	var out []*queued
	for _, t := range []*btree.BTreeG[*queued]{q.s.backoff, q.s.failed} {
		for {
			p, ok := t.Min()
			if !ok || backingOff(p, now) {
				break
			}
			q.take(p.Info.Key)
			c := *p
			q.put(&c, activeQ)
			out = append(out, &c)
		}
	}
	return out
}

// nextBackoff returns when the next back-off will be over, and false if none runs.
func (q *podQueue) nextBackoff() (kernel.Time, bool) {
	var at kernel.Time
	found := false
	for _, t := range []*btree.BTreeG[*queued]{q.s.backoff, q.s.failed} {
		if p, ok := t.Min(); ok && (!found || p.Backoff < at) {
			at, found = p.Backoff, true
		}
	}
	return windowed(at).Add(time.Second), found
}

// leftover wakes the Pods that have been unschedulable for longer than limit.
func (q *podQueue) leftover(now kernel.Time, limit time.Duration) []*queued {
	var out []*queued
	q.s.parked.Scan(func(_ string, p *queued) bool {
		if p.Gate == "" && now.Sub(p.Timestamp) > limit {
			out = append(out, p)
		}
		return true
	})
	for i, p := range out {
		out[i] = q.wake(p, now)
	}
	return out
}

// oldest returns since when the oldest unschedulable Pod waits, and false if none does.
func (q *podQueue) oldest() (kernel.Time, bool) {
	var at kernel.Time
	found := false
	q.s.parked.Scan(func(_ string, p *queued) bool {
		if p.Gate == "" && (!found || p.Timestamp < at) {
			at, found = p.Timestamp, true
		}
		return true
	})
	return at, found
}
