// Package lessons loads the lessons and walks through them. A lesson is a folder of data:
// lesson.yaml (a scenario, and steps that say what happens and what each one waits for)
// and lesson.LANG.md (the words for each step, in every language). A new lesson needs no
// Go.
package lessons

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

//go:embed */lesson.yaml */lesson.*.md
var files embed.FS

// Lesson is one lesson.
type Lesson struct {
	ID       string            `json:"id"`
	Minutes  int               `json:"minutes"`
	Scenario scenario.Scenario `json:"scenario"`
	Steps    []Step            `json:"steps"`

	prose map[string]prose // by language
}

// Step is one stop of a lesson. What it does happens first; then the story runs on until
// what it waits for; then its words are shown; a question holds back what follows until
// it has been answered.
type Step struct {
	// At is the anchor of its words.
	At string `json:"at"`
	// Do is carried out when the learner comes here.
	Do []scenario.Step `json:"do,omitempty"`
	// Fault is injected, Repair taken away again.
	Fault  string `json:"fault,omitempty"`
	Repair string `json:"repair,omitempty"`
	// Try is a command line that the learner is asked to type. Any command that brings
	// about what Until waits for will do.
	Try string `json:"try,omitempty"`
	// Until is what the story runs on to.
	Until *Until `json:"until,omitempty"`
	// Ask holds the learner here until he has committed to an answer.
	Ask *Question `json:"ask,omitempty"`
	// Zoom and Panel choose a diagram and a panel; empty leaves them to the hop.
	Zoom  string `json:"zoom,omitempty"`
	Panel string `json:"panel,omitempty"`
}

// Until names a hop, by whatever is set, or waits for the run to settle.
type Until struct {
	Stage   stage.ID      `json:"stage,omitempty"`
	Outcome trace.Outcome `json:"outcome,omitempty"`
	Kind    string        `json:"kind,omitempty"`
	Name    string        `json:"name,omitempty"`
	Verb    string        `json:"verb,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"` // a part of it
	// Settled waits until everything is Ready, or for the deadline.
	Settled bool `json:"settled,omitempty"`
	// Within bounds the wait in virtual time; 10m where zero.
	Within scenario.Duration `json:"within,omitempty"`
}

// Question asks before it reveals. The words of the choices are in the prose.
type Question struct {
	Choices []string `json:"choices"`
	// Answer is the right choice, or a template that the run fills in, such as
	// {{pod "spec.nodeName"}}: the simulation decides what is right.
	Answer string `json:"answer"`
}

// All returns every lesson in order.
func All() ([]Lesson, error) {
	all, err := loaded()
	return slices.Clone(all), err
}

var loaded = sync.OnceValues(func() ([]Lesson, error) { return Load(files) })

// ByID returns one lesson, by its id or its folder's number.
func ByID(id string) (Lesson, error) {
	all, err := All()
	if err != nil {
		return Lesson{}, err
	}
	var ids []string
	for i, l := range all {
		if l.ID == id || fmt.Sprint(i+1) == id {
			return l, nil
		}
		ids = append(ids, l.ID)
	}
	return Lesson{}, fmt.Errorf("there is no lesson %q; there are: %s", id, strings.Join(ids, ", "))
}

// Load reads every lesson folder of fsys, strictly.
func Load(fsys fs.FS) ([]Lesson, error) {
	names, err := fs.Glob(fsys, "*/lesson.yaml")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out []Lesson
	for _, name := range names {
		l, err := load(fsys, path.Dir(name))
		if err != nil {
			return nil, fmt.Errorf("lesson %s: %w", path.Dir(name), err)
		}
		out = append(out, l)
	}
	return out, nil
}

func load(fsys fs.FS, dir string) (Lesson, error) {
	var l Lesson
	data, err := fs.ReadFile(fsys, path.Join(dir, "lesson.yaml"))
	if err != nil {
		return l, err
	}
	if err := yaml.UnmarshalStrict(data, &l); err != nil {
		return l, err
	}
	l.prose = map[string]prose{}
	for _, lang := range scenario.Languages {
		text, err := fs.ReadFile(fsys, path.Join(dir, "lesson."+lang+".md"))
		if err != nil {
			return l, err
		}
		p, err := parseProse(string(text))
		if err != nil {
			return l, fmt.Errorf("lesson.%s.md: %w", lang, err)
		}
		l.prose[lang] = p
	}
	return l, l.check(dir)
}

func (l Lesson) check(dir string) error {
	if _, name, ok := strings.Cut(dir, "-"); !ok || name != l.ID {
		return fmt.Errorf("its id is %q; the folder must be called NN-%s", l.ID, l.ID)
	}
	if l.Minutes < 1 {
		return fmt.Errorf("minutes is missing")
	}
	if err := l.Scenario.Validate(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, s := range l.Steps {
		if s.At == "" || seen[s.At] {
			return fmt.Errorf("steps[%d]: at is empty or used twice: %q", i, s.At)
		}
		seen[s.At] = true
		if err := s.check(); err != nil {
			return fmt.Errorf("step %s: %w", s.At, err)
		}
		for _, lang := range scenario.Languages {
			if err := l.prose[lang].covers(s); err != nil {
				return fmt.Errorf("step %s: lesson.%s.md: %w", s.At, lang, err)
			}
		}
	}
	for _, lang := range scenario.Languages {
		for _, sec := range l.prose[lang].order {
			if !seen[sec] {
				return fmt.Errorf("lesson.%s.md has a section %q that no step has", lang, sec)
			}
		}
	}
	return nil
}

func (s Step) check() error {
	if s.Until != nil && s.Until.Stage != "" {
		if _, ok := stage.Get(s.Until.Stage); !ok {
			return fmt.Errorf("there is no stage %q", s.Until.Stage)
		}
	}
	if s.Try != "" && s.Until == nil {
		return fmt.Errorf("try needs an until, to see that it was done")
	}
	if q := s.Ask; q != nil {
		if len(q.Choices) < 2 {
			return fmt.Errorf("a question needs two choices at least")
		}
		if !strings.Contains(q.Answer, "{{") && !contains(q.Choices, q.Answer) {
			return fmt.Errorf("the answer %q is not among the choices", q.Answer)
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Title returns the lesson's title.
func (l Lesson) Title(lang string) string { return l.prose[lang].title }

// Matches reports whether a hop is what Until names.
func (u Until) Matches(h trace.Hop) bool {
	return (u.Stage == "" || u.Stage == h.Stage) &&
		(u.Outcome == "" || u.Outcome == h.Outcome) &&
		(u.Kind == "" || u.Kind == h.Object.Kind) &&
		(u.Name == "" || u.Name == h.Object.Name) &&
		(u.Verb == "" || u.Verb == h.Verb) &&
		(u.Reason == "" || u.Reason == h.Reason) &&
		strings.Contains(h.Message, u.Message)
}
