package exercises

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"podwalk/engine"
	"podwalk/engine/kube"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Rule says where the words against a wrong guess come from: the fault's own, or what the
// simulation recorded at the stage that was guessed.
type Rule string

// The rules.
const (
	Own      Rule = "own"      // the fault has words for this guess
	Passed   Rule = "passed"   // it went well there, before what decides
	After    Rule = "after"    // it went well there, after what decides
	Followed Rule = "followed" // it did not go well there, because of what decides
	Answered Rule = "answered" // the guess is that the control plane is down; it did something
	Never    Rule = "never"    // it never came so far
	NoPart   Rule = "no-part"  // nothing was recorded there: it has no part in the story
)

//go:embed rules.yaml
var rulesFile []byte

// rules are the general words, by rule; silent are those for a run in which nothing failed
// and nothing happened, symptom those for one that fails at the right stage in a wrong way.
var rules = sync.OnceValues(func() (r struct {
	Silent  scenario.Text          `json:"silent"`
	Symptom scenario.Text          `json:"symptom"`
	Refuted map[Rule]scenario.Text `json:"refuted"`
}, err error) {
	err = yaml.UnmarshalStrict(rulesFile, &r)
	return r, err
})

// Score is what an answer is worth, and why.
type Score struct {
	Points int // 0 to 100
	Right  stage.ID
	// Refuted is what speaks against a wrong answer, by Rule; Evidence the hop that shows it,
	// nil where the absence of any is what shows it.
	Refuted  scenario.Text
	Rule     Rule
	Evidence *trace.Hop
	// Deciding is the hop that failed. Where nothing failed and nothing happened it is the
	// last thing that happened to the object, and Silent says so.
	Deciding *trace.Hop
	Silent   scenario.Text
	// Status is what kubectl shows of the Pod in an inject exercise, "" where there is none;
	// Symptom says whether that is what was asked for, Amiss, where only that is wrong, that it
	// is not.
	Status  string
	Symptom bool
	Amiss   scenario.Text
	// Solved says that an inject exercise is done, with hints or without.
	Solved bool
}

// Answer grades a guess in an identify exercise: 100 for the stage itself, part of it for
// its step or a neighbour, less a tenth for each hint.
func (a *Attempt) Answer(guess stage.ID) Score {
	s := Score{Right: a.Verdict.Stage}
	r, _ := rules() // the tests see to it that the file can be read
	s.Deciding = hopNumbered(a.hops, a.Verdict.Hop)
	if s.Deciding == nil {
		s.Deciding, s.Silent = lastAbout(a.hops, a.Verdict.Object), r.Silent
	}
	if guess != s.Right && s.Deciding != nil {
		s.Rule, s.Evidence = a.evidence(guess, *s.Deciding)
		s.Refuted = r.Refuted[s.Rule]
		for _, w := range a.Variant.Fault.Wrong {
			if w.Stage == guess {
				s.Rule, s.Refuted = Own, w.Refuted
			}
		}
	}
	s.Points = points(guess, s.Right) * (10 - min(a.Hints, 3)) / 10
	return s
}

// evidence looks for what the simulation recorded at a stage that was guessed.
func (a *Attempt) evidence(guess stage.ID, deciding trace.Hop) (Rule, *trace.Hop) {
	way := a.Run.Why(deciding.Seq)
	for i := len(way) - 1; i >= 0; i-- {
		if way[i].Stage == guess && !way[i].Bad() && way[i].Seq != deciding.Seq {
			return Passed, &way[i]
		}
	}
	var found *trace.Hop
	for i, h := range a.hops {
		if h.Stage != guess || h.Object != a.Verdict.Object && h.Object != deciding.Object {
			continue
		}
		if h.Seq <= deciding.Seq || found == nil {
			found = &a.hops[i]
		}
	}
	switch {
	case found != nil && found.Outcome != trace.OK:
		return Followed, found
	case found != nil && found.Seq > deciding.Seq:
		return After, found
	case found != nil:
		return Passed, found
	case guess == stage.ControlPlane:
		bound := func(h trace.Hop) bool { return h.Stage == stage.BindingSaved && h.Outcome == trace.OK }
		if i := slices.IndexFunc(a.hops, bound); i >= 0 && stage.Order(deciding.Stage) > stage.Order(stage.BindingSaved) {
			return Answered, &a.hops[i]
		}
		return Answered, &deciding
	case stage.StepOf(guess) != "L" && stage.Order(guess) > stage.Order(deciding.Stage):
		return Never, nil
	}
	return NoPart, nil
}

func hopNumbered(hops []trace.Hop, seq uint64) *trace.Hop {
	i, ok := slices.BinarySearchFunc(hops, seq, func(h trace.Hop, seq uint64) int { return int(h.Seq) - int(seq) })
	if !ok {
		return nil
	}
	return &hops[i]
}

// lastAbout is the last hop about an object, or of all where there is none.
func lastAbout(hops []trace.Hop, ref trace.Ref) *trace.Hop {
	for i := len(hops) - 1; i >= 0; i-- {
		if hops[i].Object == ref {
			return &hops[i]
		}
	}
	if len(hops) == 0 {
		return nil
	}
	return &hops[len(hops)-1]
}

// points: the stages of step L lie side by side and not one after the other, so that there
// is no near miss among them.
func points(guess, right stage.ID) int {
	switch {
	case guess == right:
		return 100
	case stage.StepOf(guess) == "L" || stage.StepOf(right) == "L":
		return 0
	case stage.StepOf(guess) == stage.StepOf(right):
		return 50
	case stage.Distance(guess, right) <= 2:
		return 20
	}
	return 0
}

// Grade looks at what has become of the run in an inject exercise: full points for the
// stage and the symptom, half for the stage alone or its step.
func (a *Attempt) Grade() Score {
	t := a.Variant.Exercise.Target
	a.Verdict = a.Run.Settle(a.Run.Deadline())
	s := Score{Right: t.Stage}
	hops := a.Run.Hops()
	pods := a.pods()
	if len(pods) > 0 {
		s.Status = kube.PodStatus(pods[0])
	}
	if a.Verdict.Ready {
		return s
	}
	if s.Deciding = hopNumbered(hops, a.Verdict.Hop); s.Deciding == nil {
		s.Deciding = lastAbout(hops, a.Verdict.Object)
	}
	s.Symptom = t.met(pods)
	s.Points = points(a.Verdict.Stage, t.Stage)
	s.Solved = s.Symptom && a.Verdict.Stage == t.Stage
	if !s.Symptom {
		s.Points /= 2
		if a.Verdict.Stage == t.Stage {
			r, _ := rules()
			s.Amiss = filledText(r.Symptom, strings.NewReplacer("{pod}", a.Variant.Name, "{status}", cmp.Or(s.Status, "-")))
		}
	}
	s.Points = s.Points * (10 - min(a.Hints, 3)) / 10
	return s
}

// pods are the story's Pods as they stand.
func (a *Attempt) pods() []*corev1.Pod {
	var out []*corev1.Pod
	ns := a.Run.Scenario.Namespace
	if ns == "" {
		ns = corev1.NamespaceDefault
	}
	_ = a.Run.Engine(func(e *engine.Engine) error {
		for _, o := range e.List(kube.Pods, ns) {
			if pod := o.(*corev1.Pod); pod.Name == a.Variant.Name || strings.HasPrefix(pod.Name, a.Variant.Name+"-") {
				out = append(out, pod)
			}
		}
		return nil
	})
	return out
}

// met reports whether the story's Pods look as the target says.
func (t Target) met(pods []*corev1.Pod) bool {
	if t.None {
		return len(pods) == 0
	}
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		status := kube.PodStatus(p)
		if t.Status != "" && status != t.Status && (t.Status != "ImagePullBackOff" || status != "ErrImagePull") {
			return false
		}
		restarts, ended := int32(0), ""
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
			for _, st := range []corev1.ContainerState{c.LastTerminationState, c.State} {
				if st.Terminated != nil {
					ended = st.Terminated.Reason
				}
			}
		}
		if t.Restarts != nil && (restarts > 0) != *t.Restarts {
			return false
		}
		return len(t.Ended) == 0 || slices.Contains(t.Ended, ended)
	})
}
