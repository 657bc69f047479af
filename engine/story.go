package engine

import (
	"slices"

	"podwalk/engine/kernel"
	"podwalk/engine/trace"
)

// story is what the verdict looks at besides the cluster: what somebody outside asked for
// and what became of that. It is part of the kernel's state, and only commands and their
// answers change it: going back brings back what had been asked for then.
type story struct {
	asked   []trace.Ref // what was asked for, in order: the objects that somebody outside created
	taken   []trace.Ref // of these, what somebody outside deleted again, and namespaces
	refused []uint64    // hops that refused a request from outside
	origin  kernel.Time // when the story began
	acted   kernel.Time // when somebody outside last changed something
}

type storyState struct {
	Asked, Taken  []trace.Ref
	Refused       []uint64
	Origin, Acted kernel.Time
}

// Snapshot implements kernel.State. The lists only grow, or are replaced; their capacity is
// cut, so that an append copies.
func (s *story) Snapshot() any {
	return storyState{slices.Clip(s.asked), slices.Clip(s.taken), slices.Clip(s.refused), s.origin, s.acted}
}

// Restore implements kernel.State.
func (s *story) Restore(snap any) {
	was := snap.(storyState)
	s.asked, s.taken, s.refused, s.origin, s.acted = was.Asked, was.Taken, was.Refused, was.Origin, was.Acted
}

// forget drops an object from what was asked for: somebody has replaced it.
func (s *story) forget(ref trace.Ref) {
	s.asked = slices.DeleteFunc(slices.Clone(s.asked), func(have trace.Ref) bool { return have == ref })
}

// aside collects what is refused of things that somebody else does: the story is not
// judged by them.
type aside struct{ refused []uint64 }
