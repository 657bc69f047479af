package exercises

import (
	"fmt"

	"podwalk/engine"
)

// Inject makes the fault happen at the run's present moment. What the run does from here
// on follows from it.
func (f Fault) Inject(r *engine.Run) error {
	if err := r.PlayAside(f.Change); err != nil {
		return fmt.Errorf("fault %s cannot be injected into this story: %w", f.ID, err)
	}
	switch {
	case len(f.Pod) > 0 || len(f.Container) > 0:
		return r.Mistake(engine.Mistake{Pod: f.Pod, Container: f.Container})
	case f.Recreate:
		return r.Recreate()
	}
	return nil
}

// Repair takes the fault away again: the change is undone and, where the fault wrote the
// workload, it is written again without the mistake. Requests that the fault had refused
// must be sent again by the caller.
func (f Fault) Repair(r *engine.Run) error {
	r.Forgive()
	if err := r.PlayAside(f.Fix); err != nil {
		return err
	}
	if f.Rewrites() {
		return r.Recreate()
	}
	return nil
}

// PlayWith plays the run's story with faults in it from the beginning, lets it settle,
// and returns the verdict.
func PlayWith(r *engine.Run, faults []Fault) (engine.Verdict, error) {
	if err := PlayStory(r, faults); err != nil {
		return engine.Verdict{}, err
	}
	return r.Settle(r.Deadline()), nil
}

// PlayStory plays the run's story with faults in it from the beginning; what follows from
// it lies ahead. A fault to which the story gives nothing to act on is an error.
func PlayStory(r *engine.Run, faults []Fault) error {
	if err := injectAll(r, faults, false); err != nil {
		return err
	}
	if err := r.Play(r.Scenario.Steps); err != nil {
		return err
	}
	for _, f := range faults {
		if asked, refused := r.Asked(f.Needs); f.Needs != "" && !asked && !refused {
			return fmt.Errorf("fault %s needs a %s in the story, and there is none; add one, or give the fault alone to see it in a story of its own", f.ID, f.Needs)
		}
	}
	return injectAll(r, faults, true)
}

func injectAll(r *engine.Run, faults []Fault, after bool) error {
	for _, f := range faults {
		if f.After != after {
			continue
		}
		if err := f.Inject(r); err != nil {
			return err
		}
	}
	return nil
}

// Palette is every fault by its id, for lessons.
type Palette struct{}

// Inject injects a fault by its id.
func (Palette) Inject(r *engine.Run, id string) error {
	f, err := FaultByID(id)
	if err != nil {
		return err
	}
	return f.Inject(r)
}

// Repair takes a fault away again.
func (Palette) Repair(r *engine.Run, id string) error {
	f, err := FaultByID(id)
	if err != nil {
		return err
	}
	return f.Repair(r)
}
