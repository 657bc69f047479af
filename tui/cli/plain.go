package cli

import (
	"fmt"
	"time"

	"podwalk/engine"
	"podwalk/engine/stage"
	"podwalk/exercises"
	"podwalk/lessons"
	"podwalk/tui/plain"
	"podwalk/tui/progress"
)

// plainly reports whether the tutor speaks line by line: asked for, or nobody at a screen.
func (c *command) plainly() bool { return c.cfg.Plain || !c.terminal() }

func (c *command) learnPlainly(l lessons.Lesson) error {
	store, err := c.progress()
	if err != nil {
		return err
	}
	run, err := engine.StartRun(l.Scenario, c.newKubectl)
	if err != nil {
		return err
	}
	defer run.Close()
	var failed error
	err = plain.New(c.stdin, c.stdout, c.words()).Learn(l, run, store.Get().Resume(l.ID), plain.Keep{Lesson: func(step int, answers map[string]string) {
		failed = store.Reached(l.ID, step, len(l.Steps), answers)
	}})
	if err != nil {
		return err
	}
	return failed
}

// progress opens the progress file, and says so where a damaged one was put aside.
func (c *command) progress() (*progress.Store, error) {
	store, err := progress.Open(progress.Path(c.getenv))
	if err != nil {
		return nil, usage("progress file: %v", err)
	}
	if to := store.Aside(); to != "" {
		fmt.Fprintln(c.stderr, "podwalk: "+c.words().T("app.aside", "file", to))
	}
	return store, nil
}

// drillPlainly goes through exercises until the learner leaves; with an exercise given,
// through variants of that one.
func (c *command) drillPlainly(only *exercises.Exercise) error {
	store, err := c.progress()
	if err != nil {
		return err
	}
	all, err := exercises.Exercises()
	if err != nil {
		return err
	}
	tutor := plain.New(c.stdin, c.stdout, c.words())
	for {
		x, err := exercises.ExerciseByID(store.Get().LeastTried(exercises.IDs(all)))
		if only != nil {
			x, err = *only, nil
		}
		if err != nil {
			return err
		}
		tries, _ := store.Get().Tries(x.ID)
		seed := c.cfg.Seed + uint64(tries)
		again, err := c.oneDrill(tutor, x, seed, func(points int, truth stage.ID) error {
			return store.Answered(progress.Result{Exercise: x.ID, Seed: seed, Stage: truth, Points: points, At: time.Now()})
		})
		if err != nil || !again {
			return err
		}
	}
}

func (c *command) oneDrill(t *plain.Tutor, x exercises.Exercise, seed uint64, keep func(int, stage.ID) error) (again bool, err error) {
	v, err := x.Variant(seed)
	if err != nil {
		return false, err
	}
	a, err := v.Begin(c.newKubectl)
	if err != nil {
		return false, err
	}
	defer a.Run.Close()
	var failed error
	again, err = t.Drill(a, plain.Keep{Result: func(points int, truth stage.ID) { failed = keep(points, truth) }})
	if err == nil {
		err = failed
	}
	return again, err
}
