package lessons

import (
	"fmt"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"podwalk/engine"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Walk is somebody's way through a lesson: where he is, what he has answered, and the run
// that goes with it.
type Walk struct {
	Lesson Lesson
	Run    *engine.Run

	faults  Faults
	at      int
	target  int // hops that have been told up to here
	answers map[string]string
	right   map[string]string // answers that the run decided, by anchor
	tried   map[string]bool   // what the learner was asked to bring about and has
	began   int               // the hop with which the newest request of the lesson began
}

// Faults injects a fault of the palette into a run, and takes it away again.
type Faults interface {
	Inject(r *engine.Run, id string) error
	Repair(r *engine.Run, id string) error
}

// NewWalk begins a lesson on a fresh run.
func NewWalk(l Lesson, r *engine.Run, faults Faults) *Walk {
	return &Walk{Lesson: l, Run: r, faults: faults, answers: map[string]string{}, right: map[string]string{}, tried: map[string]bool{}}
}

// Step returns the step where the learner is, and its number from 0.
func (w *Walk) Step() (Step, int) { return w.Lesson.Steps[w.at], w.at }

// Target returns how many hops the player should have shown at this step.
func (w *Walk) Target() int { return w.target }

// Answered returns the learner's answer to the present question, "" for none yet.
func (w *Walk) Answered() string { return w.answers[w.Lesson.Steps[w.at].At] }

// Answers returns all answers by anchor, for the progress file.
func (w *Walk) Answers() map[string]string { return w.answers }

// Held says why the lesson does not go on yet: "answer", "try", or "" where it may.
func (w *Walk) Held() string {
	s := w.Lesson.Steps[w.at]
	switch {
	case s.Ask != nil && w.Answered() == "":
		return "answer"
	case s.Try != "" && !w.done(s):
		return "try"
	}
	return ""
}

// Last reports whether this is the last step.
func (w *Walk) Last() bool { return w.at == len(w.Lesson.Steps)-1 }

// Next goes on to the next step: what it does is done, and the run goes on to what it
// waits for. It does nothing while the lesson is held.
func (w *Walk) Next() error {
	if w.Held() != "" || w.Last() {
		return nil
	}
	w.at++
	return w.enter()
}

// Start enters the first step.
func (w *Walk) Start() error { w.at = 0; return w.enter() }

func (w *Walk) enter() error {
	s := w.Lesson.Steps[w.at]
	w.Run.Seek(w.target) // what is done now is done at the moment that is shown
	if len(s.Do) > 0 {
		w.began = w.Run.Len()
	}
	if err := w.Run.Play(s.Do); err != nil {
		return err
	}
	if s.Fault != "" {
		if err := w.faults.Inject(w.Run, s.Fault); err != nil {
			return err
		}
	}
	if s.Repair != "" {
		if err := w.faults.Repair(w.Run, s.Repair); err != nil {
			return err
		}
	}
	if s.Try != "" {
		return nil // the learner brings it about
	}
	w.runTo(s)
	return nil
}

// tryWithin is how long, in virtual time, the walk waits for what a command of the learner
// may bring about.
const tryWithin = 10 * time.Second

// Did tells the walk that the learner has done something with kubectl; it looks whether
// that brings about what the step asks for.
func (w *Walk) Did() {
	s := w.Lesson.Steps[w.at]
	if s.Try == "" {
		return
	}
	end := w.Run.HeadTime().Add(tryWithin)
	for !w.done(s) && w.Run.Len() > w.target { // who only looked has brought nothing about
		left := end.Sub(w.Run.HeadTime())
		if left <= 0 || !w.Run.Timeline.Run(1, left) {
			return
		}
	}
}

// Resume walks from where the walk is to step n with the answers that were given, doing
// what was done there again. visit is called wherever something is told. It stops early
// where an answer no longer fits: the lesson has changed since, and goes on from there.
func (w *Walk) Resume(n int, answers map[string]string, visit func()) error {
	for w.at < n {
		s := w.Lesson.Steps[w.at]
		visit()
		if a := answers[s.At]; s.Ask != nil && a != "" {
			if _, err := w.Answer(a); err != nil {
				return nil
			}
			visit()
		}
		if w.Held() == "try" {
			w.Run.Seek(w.target)
			if _, err := w.Run.Kubectl(s.Try); err != nil {
				return err
			}
			w.Did()
			visit()
		}
		if w.Held() != "" || w.Last() {
			return nil
		}
		if err := w.Next(); err != nil {
			return err
		}
	}
	return nil
}

// done reports whether what the step waits for has come, and moves the target there.
func (w *Walk) done(s Step) bool {
	if s.Until == nil || w.tried[s.At] {
		return true
	}
	if !w.find(*s.Until) {
		return false
	}
	w.tried[s.At] = true // found once: asking again must not move on to the next like it
	hops := w.Run.Hops()
	for w.began = w.target - 1; w.began > 0 && hops[w.began].Stage != stage.Client; w.began-- {
	}
	return true
}

func (w *Walk) find(u Until) bool {
	hops := w.Run.Hops()
	for i := w.target; i < len(hops); i++ {
		if u.Matches(hops[i]) {
			w.target = i + 1
			return true
		}
	}
	// It may have been told already: a step that waits for the present is there.
	return w.target > 0 && w.target <= len(hops) && u.Matches(hops[w.target-1])
}

// runTo lets the run go on until the step's Until; a wait that never ends stops at its
// bound, and the words are shown all the same.
func (w *Walk) runTo(s Step) {
	if s.Until == nil {
		return
	}
	if s.Until.Settled {
		w.Run.Settle(time.Duration(s.Until.Within))
		w.target = w.Run.Len()
		return
	}
	within := time.Duration(s.Until.Within)
	if within <= 0 {
		within = engine.DeadlineDefault
	}
	end := w.Run.HeadTime().Add(within)
	for !w.find(*s.Until) {
		left := end.Sub(w.Run.HeadTime())
		if left <= 0 || !w.Run.Timeline.Run(1, left) {
			w.target = w.Run.Len()
			return
		}
	}
}

// Words are what the learner reads at a step.
type Words struct {
	Title    string
	Body     string
	Question string
	Choices  []Choice
	Feedback string // after an answer
	Right    bool
	Answer   string // the right choice, after an answer
}

// Choice is one answer that may be given.
type Choice struct{ ID, Label string }

// Words returns the present step's words in a language, with the run's values filled in.
func (w *Walk) Words(lang string) (Words, error) {
	s := w.Lesson.Steps[w.at]
	sec := w.Lesson.prose[lang].sections[s.At]
	var err error
	fill := func(t string) string {
		out, e := w.fill(t)
		if e != nil && err == nil {
			err = fmt.Errorf("lesson %s, step %s: %w", w.Lesson.ID, s.At, e)
		}
		return out
	}
	words := Words{Title: fill(sec.title), Body: fill(sec.body), Question: fill(sec.question)}
	if s.Ask != nil {
		for _, id := range s.Ask.Choices {
			words.Choices = append(words.Choices, Choice{id, fill(sec.choices[id].label)})
		}
		if a := w.Answered(); a != "" {
			words.Feedback = fill(sec.choices[a].feedback)
			words.Right, words.Answer = a == w.right[s.At], w.right[s.At]
		}
	}
	return words, err
}

// Answer commits the learner to a choice. It reports whether it was right.
func (w *Walk) Answer(id string) (bool, error) {
	s := w.Lesson.Steps[w.at]
	if s.Ask == nil || !contains(s.Ask.Choices, id) {
		return false, fmt.Errorf("there is no choice %q here", id)
	}
	right, err := w.fill(s.Ask.Answer)
	if err != nil {
		return false, err
	}
	w.answers[s.At], w.right[s.At] = id, strings.TrimSpace(right)
	return id == w.right[s.At], nil
}

// fill puts the run's values into a template. Every value comes from the run: an object
// that is not there, or a field that it has not, is an error, never an empty word.
func (w *Walk) fill(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"hop":     w.hopField,
		"object":  w.objectField,
		"pod":     func(path string) (string, error) { return w.theOnly("Pod", path) },
		"ahead":   w.ahead,
		"elapsed": func() string { return w.elapsed().Round(time.Millisecond).String() },
		"hops":    func() int { return w.target - w.began },
		"count":   w.count,
	}).Parse(text)
	if err != nil {
		return text, err
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return text, err
	}
	return b.String(), nil
}

func (w *Walk) present() (trace.Hop, error) {
	hops := w.Run.Hops()
	if w.target == 0 || w.target > len(hops) {
		return trace.Hop{}, fmt.Errorf("there is no hop yet")
	}
	return hops[w.target-1], nil
}

// elapsed is the cluster's time from the first hop of the newest request to the present
// one.
func (w *Walk) elapsed() time.Duration {
	h, err := w.present()
	if err != nil {
		return 0
	}
	return h.At.Sub(w.Run.Hops()[min(w.began, w.target-1)].At)
}

func (w *Walk) hopField(name string) (string, error) {
	h, err := w.present()
	if err != nil {
		return "", err
	}
	v, ok := map[string]string{
		"stage": string(h.Stage), "from": string(h.From), "to": string(h.To), "verb": h.Verb, "reason": h.Reason,
		"message": h.Message, "outcome": string(h.Outcome), "object": h.Object.Name, "revision": fmt.Sprint(h.Revision),
	}[name]
	if !ok || v == "" {
		return "", fmt.Errorf("the hop has no %s", name)
	}
	return v, nil
}

// count returns how many objects of a kind the story's namespace has.
func (w *Walk) count(kind string) (int, error) {
	k, err := kube.Named(kind)
	if err != nil {
		return 0, err
	}
	return len(w.Run.Seek(w.target).List(k.Resource, w.namespace())), nil
}

func (w *Walk) namespace() string {
	if w.Lesson.Scenario.Namespace != "" {
		return w.Lesson.Scenario.Namespace
	}
	return "default"
}

func (w *Walk) objectField(kind, name, path string) (string, error) {
	k, err := kube.Named(kind)
	if err != nil {
		return "", err
	}
	ns := w.namespace()
	if !k.Namespaced {
		ns = ""
	}
	o, ok := w.Run.Seek(w.target).Get(k.Resource, ns, name)
	if !ok {
		return "", fmt.Errorf("there is no %s %s", kind, name)
	}
	return field(o, path)
}

// theOnly is the field of the story's last object of a kind.
func (w *Walk) theOnly(kind, path string) (string, error) {
	k, err := kube.Named(kind)
	if err != nil {
		return "", err
	}
	all := w.Run.Seek(w.target).List(k.Resource, w.namespace())
	if len(all) == 0 {
		return "", fmt.Errorf("there is no %s", kind)
	}
	return field(all[len(all)-1], path)
}

// ahead is a field of the story's last Pod as it will be: the right answer to a
// prediction. The head runs on; the learner's place does not move.
func (w *Walk) ahead(path string) (v string, err error) {
	w.Run.Timeline.Run(200, 10*time.Second)
	err = w.Run.Engine(func(e *engine.Engine) error {
		all := e.List(kube.Pods, w.namespace())
		if len(all) == 0 {
			return fmt.Errorf("there is no Pod")
		}
		v, err = field(all[len(all)-1], path)
		return err
	})
	return v, err
}

func field(o runtime.Object, path string) (string, error) {
	j := jsonpath.New("")
	if err := j.Parse("{." + path + "}"); err != nil {
		return "", err
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := j.Execute(&b, u); err != nil {
		return "", err
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("%s is empty", path)
	}
	return b.String(), nil
}
