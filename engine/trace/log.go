package trace

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"sort"

	"podwalk/engine/kernel"
)

// backgroundMax is how many background hops are kept.
const backgroundMax = 4096

// hopsMax is how many hops in focus a story may have: it stays whole from its beginning,
// and a run that goes on longer ends there with an error.
const hopsMax = 400_000

// Log is the trace of one run. It is part of the kernel's state: going back in time
// shortens it.
type Log struct {
	k    *kernel.Kernel
	seq  uint64
	hops []Hop  // in focus, by Seq
	back []Hop  // background, by Seq; at most 2*backgroundMax
	sum  uint64 // digests all that was ever recorded, in its order, but for Detail
	max  int    // hops in focus
}

// New returns an empty log and attaches it to the kernel's state.
func New(k *kernel.Kernel) *Log {
	l := &Log{k: k, max: hopsMax}
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
	} else if len(l.hops) < l.max {
		if len(l.hops) == cap(l.hops) {
			l.hops = slices.Grow(l.hops, max(64, len(l.hops))) // append alone grows long lists by a quarter
		}
		l.hops = append(l.hops, h)
	} else {
		l.k.Fail(fmt.Errorf("the story has %d hops, and no more are kept: it ends here", l.max))
	}
	l.sum = mix(l.sum, h)
	l.k.SetCause(h.Seq)
	return h.Seq
}

// Begin declares that the hops so far were preparation: they move to the background.
func (l *Log) Begin() {
	back := newest(l.back, l.hops, backgroundMax)
	for i := range back {
		back[i].Background, back[i].Detail = true, nil
	}
	l.back, l.hops = back, nil
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

// seed is that of all sums of one process; they are compared, never stored.
var seed = maphash.MakeSeed()

// mix adds a hop to a sum. It is on the way of every hop, so it is cheap: each text is
// hashed by itself, and Detail, which may hold whole objects, is left to HashState.
func mix(sum uint64, h Hop) uint64 {
	for _, n := range [...]uint64{h.Seq, h.Cause, uint64(h.At), uint64(h.Revision), bit(h.Background)} {
		sum = add(sum, n)
	}
	for _, s := range [...]string{
		string(h.Stage), string(h.From), string(h.To), h.Verb, h.Object.Kind, h.Object.Namespace, h.Object.Name,
		string(h.Outcome), h.Reason, h.Message,
	} {
		sum = add(sum, maphash.String(seed, s))
	}
	return sum
}

func add(sum, n uint64) uint64 {
	return bits.RotateLeft64(sum^n, 29) * 0x9e3779b97f4a7c15
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

type logState struct {
	Seq  uint64
	Hops []Hop
	Back []Hop
	Sum  uint64
}

// HashState leaves out nothing: Sum digests every hop that was recorded, those that are no
// longer kept too, and the details of those in focus come with it. (Hops in the background
// have none. Which hops are in focus differs from what was recorded where some were
// promoted.)
func (s logState) HashState() any {
	focus, details := make([]uint64, len(s.Hops)), make([]any, 0, len(s.Hops))
	for i, h := range s.Hops {
		focus[i] = h.Seq
		if h.Detail != nil {
			details = append(details, h.Detail)
		}
	}
	return []any{s.Seq, s.Sum, len(s.Back), focus, details}
}

// Snapshot implements kernel.State. Hops are never changed, so the slices are shared;
// their capacity is cut, so that an append copies.
func (l *Log) Snapshot() any {
	return logState{l.seq, l.hops[:len(l.hops):len(l.hops)], l.back[:len(l.back):len(l.back)], l.sum}
}

// Restore implements kernel.State.
func (l *Log) Restore(snap any) {
	s := snap.(logState)
	l.seq, l.hops, l.back, l.sum = s.Seq, s.Hops, s.Back, s.Sum
}
