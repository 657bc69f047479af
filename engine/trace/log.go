package trace

import (
	"slices"
	"sort"

	"podwalk/engine/kernel"
)

// backgroundMax is how many background hops are kept.
const backgroundMax = 4096

// hopsMax is how many hops in focus are kept; a run that goes on longer keeps its
// first ones, so that the story from the beginning stays whole.
const hopsMax = 400_000

// Log is the trace of one run. It is part of the kernel's state: going back in time
// shortens it.
type Log struct {
	k    *kernel.Kernel
	seq  uint64
	hops []Hop // in focus, by Seq
	back []Hop // background, by Seq; at most 2*backgroundMax
	// dropped counts hops in focus beyond hopsMax.
	dropped int
}

// New returns an empty log and attaches it to the kernel's state.
func New(k *kernel.Kernel) *Log {
	l := &Log{k: k}
	k.Attach("trace", l)
	return l
}

// Record appends h and returns its sequence number. Seq and At are filled in, Cause
// where it is zero. From here on h is the cause of what the current turn does.
func (l *Log) Record(h Hop) uint64 {
	l.seq++
	h.Seq, h.At = l.seq, l.k.Now()
	if h.Cause == 0 {
		h.Cause = l.k.Cause()
	}
	if h.Outcome == "" {
		h.Outcome = OK
	}
	if h.Background {
		h.Detail = nil
		if len(l.back) >= 2*backgroundMax {
			l.back = append([]Hop(nil), l.back[backgroundMax:]...)
		}
		l.back = append(l.back, h)
	} else if len(l.hops) < hopsMax {
		if len(l.hops) == cap(l.hops) {
			l.hops = slices.Grow(l.hops, max(64, len(l.hops))) // append alone grows long lists by a quarter
		}
		l.hops = append(l.hops, h)
	} else {
		l.dropped++
	}
	l.k.SetCause(h.Seq)
	return h.Seq
}

// Begin declares that the hops so far were preparation: they move to the background.
func (l *Log) Begin() {
	back := newest(l.back, l.hops, backgroundMax)
	for i := range back {
		back[i].Background, back[i].Detail = true, nil
	}
	l.back, l.hops, l.dropped = back, nil, 0
}

// Promote brings a background hop, and the background hops that led to it, into focus: a
// client that only wanted to look was refused, and that is the story.
func (l *Log) Promote(seq uint64) {
	var come []Hop
	for seq != 0 {
		i := sort.Search(len(l.back), func(i int) bool { return l.back[i].Seq >= seq })
		if i == len(l.back) || l.back[i].Seq != seq {
			break
		}
		h := l.back[i]
		l.back = append(l.back[:i:i], l.back[i+1:]...)
		seq, h.Background = h.Cause, false
		come = append(come, h)
	}
	if len(come) == 0 {
		return
	}
	l.hops = append(l.hops[:len(l.hops):len(l.hops)], come...)
	sort.SliceStable(l.hops, func(i, j int) bool { return l.hops[i].Seq < l.hops[j].Seq })
}

// newest merges two lists, each by Seq, and returns a copy of the last n hops.
func newest(a, b []Hop, n int) []Hop {
	n = min(n, len(a)+len(b))
	out := make([]Hop, n)
	for i := n - 1; i >= 0; i-- {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[len(b)-1].Seq > a[len(a)-1].Seq {
			from = &b
		}
		last := len(*from) - 1
		out[i], *from = (*from)[last], (*from)[:last]
	}
	return out
}

// Len returns the number of hops in focus.
func (l *Log) Len() int { return len(l.hops) }

// Hops returns the hops in focus, oldest first. The caller must not change the slice.
func (l *Log) Hops() []Hop { return l.hops[:len(l.hops):len(l.hops)] }

// Background returns the background hops that are still kept, oldest first.
func (l *Log) Background() []Hop { return l.back[:len(l.back):len(l.back)] }

// Dropped returns how many hops in focus came after the log was full.
func (l *Log) Dropped() int { return l.dropped }

// Get returns the hop with that sequence number, and false where it is unknown or was
// dropped.
func (l *Log) Get(seq uint64) (Hop, bool) {
	for _, hops := range [][]Hop{l.hops, l.back} {
		i := sort.Search(len(hops), func(i int) bool { return hops[i].Seq >= seq })
		if i < len(hops) && hops[i].Seq == seq {
			return hops[i], true
		}
	}
	return Hop{}, false
}

// Why returns the chain of causes that ends with the hop seq, first cause first.
func (l *Log) Why(seq uint64) []Hop {
	var chain []Hop
	for seq != 0 {
		h, ok := l.Get(seq)
		if !ok {
			break
		}
		chain = append(chain, h)
		seq = h.Cause
	}
	for i, j := 0, len(chain)-1; i < j; i, j = i+1, j-1 {
		chain[i], chain[j] = chain[j], chain[i]
	}
	return chain
}

type logState struct {
	Seq     uint64
	Hops    []Hop
	Back    []Hop
	Dropped int
}

// HashState leaves out nothing but the capacity of the slices.
func (s logState) HashState() any {
	return []any{s.Seq, s.Dropped, len(s.Hops), len(s.Back), tail(s.Hops), tail(s.Back)}
}

// tail keeps hashing cheap: each hop was hashed when it was among the last ones.
func tail(h []Hop) []Hop {
	if len(h) > 64 {
		h = h[len(h)-64:]
	}
	plain := append([]Hop(nil), h...)
	for i := range plain {
		plain[i].Detail = nil
	}
	return plain
}

// Snapshot implements kernel.State. Hops are never changed, so the slices are shared;
// their capacity is cut, so that an append copies.
func (l *Log) Snapshot() any {
	return logState{l.seq, l.hops[:len(l.hops):len(l.hops)], l.back[:len(l.back):len(l.back)], l.dropped}
}

// Restore implements kernel.State.
func (l *Log) Restore(snap any) {
	s := snap.(logState)
	l.seq, l.hops, l.back, l.dropped = s.Seq, s.Hops, s.Back, s.Dropped
}
