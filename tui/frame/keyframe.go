package frame

import (
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// quiet stages matter only when they refuse: a learner who asks for the next thing that
// matters is not stopped there.
var quiet = map[stage.ID]bool{
	stage.QueueSort: true, stage.PreFilter: true, stage.PreScore: true, stage.Reserve: true,
	stage.Permit: true, stage.PreBind: true, stage.PostBind: true, stage.SchemaValidation: true,
	stage.NodeAdmission: true,
}

// Keyframes finds the hops that matter, one after the other.
type Keyframes struct {
	seen map[keyOf]bool
	last map[trace.Ref]string
	key  []bool
}

type keyOf struct {
	stage   stage.ID
	kind    string
	object  string // for what went wrong: each object counts
	outcome trace.Outcome
	reason  string
}

// Add looks at the next hop.
func (k *Keyframes) Add(h trace.Hop) {
	if k.seen == nil {
		k.seen, k.last = map[keyOf]bool{}, map[trace.Ref]string{}
	}
	k.key = append(k.key, k.matters(h))
}

func (k *Keyframes) matters(h trace.Hop) bool {
	id := keyOf{stage: h.Stage, kind: h.Object.Kind, outcome: h.Outcome}
	if h.Outcome != trace.OK {
		id.reason, id.object = h.Reason, h.Object.String()
	}
	fresh := !k.seen[id]
	k.seen[id] = true
	if c, ok := change(h); ok && c.After != nil {
		if s := summary(c.After); s != "" && s != k.last[h.Object] {
			k.last[h.Object] = s
			return true
		}
	}
	return fresh && (h.Outcome != trace.OK || !quiet[h.Stage])
}

// Set overrides what the rule says about hop i.
func (k *Keyframes) Set(i int, matters bool) { k.key[i] = matters }

// Len returns how many hops were added.
func (k *Keyframes) Len() int { return len(k.key) }

// Is reports whether hop i matters.
func (k *Keyframes) Is(i int) bool { return i >= 0 && i < len(k.key) && k.key[i] }

// Next returns the first hop after i that matters; false if none is known yet.
func (k *Keyframes) Next(i int) (int, bool) {
	for j := i + 1; j < len(k.key); j++ {
		if k.key[j] {
			return j, true
		}
	}
	return 0, false
}

// Prev returns the last hop before i that matters, -1 for the start.
func (k *Keyframes) Prev(i int) int {
	for j := i - 1; j >= 0; j-- {
		if k.key[j] {
			return j
		}
	}
	return -1
}

// Mark is one hop as the track of all hops draws it.
type Mark struct {
	Step  stage.Step
	State State
	Key   bool
	Lap   bool
}
