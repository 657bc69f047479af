package exercises

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine"
	"podwalk/engine/kube"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
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
	if x.Workload != nil {
		v.Scenario = *x.Workload
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
	for _, line := range x.Show {
		v.Show = append(v.Show, fill.Replace(line))
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
	Done    []string       // faults that the learner injected
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
	return nil
}

// Score is what an answer is worth, and why.
type Score struct {
	Points int // 0 to 100
	Right  stage.ID
	// Refuted is what speaks against a wrong answer: the fault's own words, or, where it
	// has none for this guess, empty; then Evidence alone decides.
	Refuted scenario.Text
	// Evidence is the hop that shows that the guessed stage was passed, Deciding the one
	// that failed.
	Evidence *trace.Hop
	Deciding *trace.Hop
}

// Answer grades a guess in an identify exercise: 100 for the stage itself, part of it for
// its step or a neighbour, less a tenth for each hint.
func (a *Attempt) Answer(guess stage.ID) Score {
	s := Score{Right: a.Verdict.Stage}
	for i, h := range a.Run.Hops() {
		if h.Seq == a.Verdict.Hop {
			s.Deciding = &a.Run.Hops()[i]
		}
		if h.Stage == guess && h.Outcome == trace.OK && guess != s.Right {
			s.Evidence = &a.Run.Hops()[i]
		}
	}
	for _, w := range a.Variant.Fault.Wrong {
		if w.Stage == guess {
			s.Refuted = w.Refuted
		}
	}
	s.Points = points(guess, s.Right) * (10 - min(a.Hints, 3)) / 10
	return s
}

func points(guess, right stage.ID) int {
	switch {
	case guess == right:
		return 100
	case stage.StepOf(guess) == stage.StepOf(right):
		return 50
	case stage.Distance(guess, right) <= 2:
		return 20
	}
	return 0
}

// Inject injects a fault that the learner chose.
func (a *Attempt) Inject(f Fault) error {
	a.Done = append(a.Done, f.ID)
	return f.Inject(a.Run)
}

// Grade looks at what has become of the run in an inject exercise: full points for the
// stage and the symptom, half for the stage alone or its step.
func (a *Attempt) Grade() Score {
	t := a.Variant.Exercise.Target
	a.Verdict = a.Run.Settle(a.Run.Deadline())
	s := Score{Right: t.Stage}
	for i, h := range a.Run.Hops() {
		if h.Seq == a.Verdict.Hop {
			s.Deciding = &a.Run.Hops()[i]
		}
	}
	if a.Verdict.Ready {
		return s
	}
	s.Points = points(a.Verdict.Stage, t.Stage)
	if !a.symptom(*t) {
		s.Points /= 2
	}
	s.Points = s.Points * (10 - min(a.Hints, 3)) / 10
	return s
}

// symptom reports whether the story's Pod looks as the target says.
func (a *Attempt) symptom(t Target) bool {
	if t.Status == "" && !t.None {
		return true
	}
	found, seen := false, false
	_ = a.Run.Engine(func(e *engine.Engine) error {
		ns := a.Run.Scenario.Namespace
		if ns == "" {
			ns = corev1.NamespaceDefault
		}
		for _, o := range e.List(kube.Pods, ns) {
			pod := o.(*corev1.Pod)
			if !strings.HasPrefix(pod.Name, a.Variant.Name) {
				continue
			}
			seen = true
			found = found || Status(pod) == t.Status || t.Status == "ImagePullBackOff" && Status(pod) == "ErrImagePull"
		}
		return nil
	})
	if t.None {
		return !seen
	}
	return found
}

// Status is what kubectl prints in the STATUS column of a Pod.
func Status(pod *corev1.Pod) string {
	status := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		status = pod.Status.Reason
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			status = c.State.Waiting.Reason
		case c.State.Terminated != nil && c.State.Terminated.Reason != "":
			status = c.State.Terminated.Reason
		}
	}
	if pod.DeletionTimestamp != nil {
		status = "Terminating"
	}
	return status
}
