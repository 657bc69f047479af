package exercises

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/trace"
)

// waitDefault is how long a broken run has been standing when the learner comes.
const waitDefault = 2 * time.Minute

// Variant is one exercise with everything drawn.
type Variant struct {
	Exercise Exercise
	Seed     uint64
	Fault    Fault // of an identify exercise
	Scenario scenario.Scenario
	Show     []string
	Ways     [][]string // of an inject exercise: commands that solve it
	Name     string
}

// Variant draws one: the same seed gives the same variant.
func (x Exercise) Variant(seed uint64) (Variant, error) {
	r := rand.New(rand.NewPCG(seed, 0x706f6477616c6b))
	v := Variant{Exercise: x, Seed: seed, Name: pick(r, x.Names, "web")}
	image := pick(r, x.Images, "nginx:1.29")
	replicas := pick(r, x.Replicas, 2)
	if x.Kind == Identify {
		f, err := FaultByID(pick(r, x.Faults, ""))
		if err != nil {
			return v, err
		}
		v.Fault, v.Scenario = f, f.Scenario
	}
	if w := x.workload(v.Fault.ID); w != nil {
		v.Scenario = *w
	}
	fill := strings.NewReplacer("$NAME", v.Name, "$IMAGE", image, "$REPLICAS", fmt.Sprint(replicas))
	var err error
	if v.Scenario, err = filled(v.Scenario, fill); err != nil {
		return v, err
	}
	v.Scenario.Cluster.Seed = seed%1_000_000 + 1
	if x.Kind == Identify {
		if err := refill(&v.Fault, fill); err != nil {
			return v, err
		}
	}
	v.Exercise.Prompt = filledText(x.Prompt, fill)
	for _, line := range x.Show {
		v.Show = append(v.Show, fill.Replace(line))
	}
	for _, way := range x.Ways {
		var lines []string
		for _, line := range way {
			lines = append(lines, fill.Replace(line))
		}
		v.Ways = append(v.Ways, lines)
	}
	return v, nil
}

func pick[T any](r *rand.Rand, from []T, otherwise T) T {
	if len(from) == 0 {
		return otherwise
	}
	return from[r.IntN(len(from))]
}

// filled replaces the placeholders everywhere in a scenario, through its JSON.
func filled(s scenario.Scenario, fill *strings.Replacer) (scenario.Scenario, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return s, err
	}
	var out scenario.Scenario
	err = json.Unmarshal([]byte(fill.Replace(string(b))), &out)
	return out, err
}

func filledText(t scenario.Text, fill *strings.Replacer) scenario.Text {
	out := scenario.Text{}
	for lang, words := range t {
		out[lang] = fill.Replace(words)
	}
	return out
}

func refill(f *Fault, fill *strings.Replacer) error {
	b, err := json.Marshal(*f)
	if err != nil {
		return err
	}
	var out Fault
	if err := json.Unmarshal([]byte(fill.Replace(string(b))), &out); err != nil {
		return err
	}
	*f = out
	return nil
}

// Attempt is a variant being worked on.
type Attempt struct {
	Variant Variant
	Run     *engine.Run
	Verdict engine.Verdict // of an identify exercise: the truth
	Hints   int            // given so far
	Looked  []string       // kubectl lines that the learner ran
	Done    []string       // faults that the learner injected, and kubectl lines that change something

	hops []trace.Hop // of an identify exercise: the story as the learner finds it
}

// Begin makes the variant's cluster; an identify exercise is broken and stands still when
// it returns.
func (v Variant) Begin(newShell func(t *engine.Timeline, namespace string) (engine.Shell, error)) (*Attempt, error) {
	run, err := engine.StartRun(v.Scenario, newShell)
	if err != nil {
		return nil, err
	}
	a := &Attempt{Variant: v, Run: run}
	if err := a.begin(); err != nil {
		run.Close()
		return nil, err
	}
	return a, nil
}

func (a *Attempt) begin() error {
	v := a.Variant
	if v.Exercise.Kind == Inject {
		if err := a.Run.Play(v.Scenario.Steps); err != nil {
			return err
		}
		if verdict := a.Run.Settle(0); !verdict.Ready {
			return fmt.Errorf("the healthy run fails at %s", verdict)
		}
		a.Run.Seek(a.Run.Len())
		return nil
	}
	if err := PlayStory(a.Run, []Fault{v.Fault}); err != nil {
		return err
	}
	wait := time.Duration(v.Exercise.Wait)
	if wait <= 0 {
		wait = waitDefault
	}
	a.Verdict = a.Run.Settle(wait)
	a.Run.Seek(a.Run.Len())
	a.hops = a.Run.Hops()
	return nil
}

// Kubectl runs a command line of the learner's. In an inject exercise only his last change
// counts: what the API server refused before was a try.
func (a *Attempt) Kubectl(line string) (engine.Output, error) {
	if !kubectl.Changes(line) {
		a.Looked = append(a.Looked, line)
		return a.Run.KubectlAside(line)
	}
	a.Done = append(a.Done, line)
	if a.Variant.Exercise.Kind == Inject {
		a.Run.Here()
		a.Run.Forgive()
	}
	return a.Run.Kubectl(line)
}

// Inject injects a fault that the learner chose.
func (a *Attempt) Inject(f Fault) error {
	a.Done = append(a.Done, f.ID)
	return f.Inject(a.Run)
}
