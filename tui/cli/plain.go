package cli

import (
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
	store, err := progress.Open(progress.Path(c.getenv))
	if err != nil {
		return usage("%v", err)
	}
	run, err := engine.StartRun(l.Scenario, c.newKubectl)
	if err != nil {
		return err
	}
	defer run.Close()
	var failed error
	err = plain.New(c.stdin, c.stdout, c.words()).Learn(l, run, plain.Keep{Lesson: func(step int, answers map[string]string) {
		failed = store.Change(func(d *progress.Data) {
			kept := map[string]string{}
			for k, v := range answers {
				kept[k] = v
			}
			d.Lessons[l.ID] = progress.Lesson{Step: step, Answers: kept, Done: d.Lessons[l.ID].Done || step == len(l.Steps)-1}
		})
	}})
	if err != nil {
		return err
	}
	return failed
}

// drillPlainly goes through exercises until the learner leaves; with an exercise given,
// through variants of that one.
func (c *command) drillPlainly(only *exercises.Exercise) error {
	store, err := progress.Open(progress.Path(c.getenv))
	if err != nil {
		return usage("%v", err)
	}
	all, err := exercises.Exercises()
	if err != nil {
		return err
	}
	tutor := plain.New(c.stdin, c.stdout, c.words())
	for {
		x := seldom(all, store.Get())
		if only != nil {
			x = *only
		}
		tries, _ := store.Get().Tries(x.ID)
		seed := c.cfg.Seed + uint64(tries)
		again, err := c.oneDrill(tutor, x, seed, func(points int, truth stage.ID) error {
			return store.Change(func(d *progress.Data) {
				d.Results = append(d.Results, progress.Result{Exercise: x.ID, Seed: seed, Stage: truth, Points: points, At: time.Now()})
			})
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

// seldom is the exercise that was answered least often; among those, the first.
func seldom(all []exercises.Exercise, d progress.Data) exercises.Exercise {
	best, fewest := 0, int(^uint(0)>>1)
	for i, x := range all {
		if n, _ := d.Tries(x.ID); n < fewest {
			best, fewest = i, n
		}
	}
	return all[best]
}
