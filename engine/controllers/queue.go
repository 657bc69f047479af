package controllers

import (
	"maps"
	"slices"
	"time"

	"podwalk/engine/kernel"
)

// The rate limit of client-go's DefaultTypedControllerRateLimiter: 5 ms, doubled with
// every failure in a row, at most 1000 s.
const (
	retryBase = 5 * time.Millisecond
	retryMax  = 1000 * time.Second
)

// queue is client-go's work queue in virtual time: a key is in it at most once, is never
// worked on twice at a time, and is worked on again if it was added meanwhile.
type queue struct {
	k     *kernel.Kernel
	self  kernel.ActorID
	state queueState
}

type queueState struct {
	Order      []string                // ready keys, oldest first
	Dirty      map[string]uint64       // added and not yet taken, with the hop that led to it
	Processing map[string]bool         // taken and not yet done
	Failures   map[string]int          // in a row
	Waiting    map[string]kernel.Timer // added for later
}

// due is sent to the actor when a key that waits becomes ready.
type due struct{ Key string }

func newQueueState() queueState {
	return queueState{
		Dirty: map[string]uint64{}, Processing: map[string]bool{}, Failures: map[string]int{},
		Waiting: map[string]kernel.Timer{},
	}
}

func (s queueState) copy() queueState {
	return queueState{
		slices.Clone(s.Order), maps.Clone(s.Dirty), maps.Clone(s.Processing), maps.Clone(s.Failures),
		maps.Clone(s.Waiting),
	}
}

// add puts a key in line.
func (q *queue) add(key string) {
	if _, in := q.state.Dirty[key]; in {
		return
	}
	q.state.Dirty[key] = q.k.Cause()
	if !q.state.Processing[key] {
		q.state.Order = append(q.state.Order, key)
	}
}

// addAfter puts a key in line later. Of several times the earliest counts.
func (q *queue) addAfter(key string, d time.Duration) {
	if d <= 0 {
		q.add(key)
		return
	}
	if t, waits := q.state.Waiting[key]; waits {
		if t.At <= q.k.Now().Add(d) {
			return
		}
		q.k.Cancel(t)
	}
	q.state.Waiting[key] = q.k.Send(q.self, d, due{key})
}

// cancel takes back a key that waits for its time.
func (q *queue) cancel(key string) {
	if t, waits := q.state.Waiting[key]; waits {
		q.k.Cancel(t)
		delete(q.state.Waiting, key)
	}
}

// addRateLimited puts a key in line after a time that doubles with every failure.
func (q *queue) addRateLimited(key string) {
	n := q.state.Failures[key]
	q.state.Failures[key] = n + 1
	d := retryMax
	if n < 18 { // 5 ms · 2^18 is above the maximum
		d = min(retryMax, retryBase<<n)
	}
	q.addAfter(key, d)
}

// forget ends a row of failures.
func (q *queue) forget(key string) { delete(q.state.Failures, key) }

// ripe takes note that a waiting key's time has come.
func (q *queue) ripe(key string) {
	if t, waits := q.state.Waiting[key]; waits && t.At <= q.k.Now() {
		delete(q.state.Waiting, key)
		q.add(key)
	}
}

// get takes the first key that pass lets through, and the hop that led to it.
func (q *queue) get(pass func(key string) bool) (key string, cause uint64, ok bool) {
	for i, key := range q.state.Order {
		if !pass(key) {
			continue
		}
		cause := q.state.Dirty[key]
		q.state.Order = slices.Delete(q.state.Order, i, i+1)
		delete(q.state.Dirty, key)
		q.state.Processing[key] = true
		return key, cause, true
	}
	return "", 0, false
}

// done says that the work on a key has ended; if it was added meanwhile it is next in
// line.
func (q *queue) done(key string) {
	delete(q.state.Processing, key)
	if _, dirty := q.state.Dirty[key]; dirty {
		q.state.Order = append(q.state.Order, key)
	}
}

// clear drops all work: the component has stopped.
func (q *queue) clear() {
	for _, key := range slices.Sorted(maps.Keys(q.state.Waiting)) {
		q.k.Cancel(q.state.Waiting[key])
	}
	q.state = newQueueState()
}
