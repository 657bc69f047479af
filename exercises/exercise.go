package exercises

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"podwalk/engine/scenario"
	"podwalk/engine/stage"
)

//go:embed */exercise.yaml
var exerciseFiles embed.FS

// The kinds of exercise.
const (
	// Identify: look around, then say at which stage it stopped.
	Identify = "identify"
	// Inject: make a healthy run fail at a given stage, with a given symptom.
	Inject = "inject"
)

// Exercise is a seed of which variants are generated: each has its own names, images and
// sizes and, where several faults look alike, one of them.
type Exercise struct {
	ID         string   `json:"id"`
	Kind       string   `json:"kind"`
	Difficulty int      `json:"difficulty"` // 1 to 3
	Domains    []string `json:"domains"`    // "cka/troubleshooting", …

	// Faults are those that an identify variant draws from. They must run in Workload.
	Faults []string `json:"faults,omitempty"`
	// Workload is the story: manifests or commands in which $NAME, $IMAGE, $REPLICAS and $NS
	// stand for what the variant draws. Where empty, the drawn fault's own scenario is used.
	Workload *scenario.Scenario `json:"workload,omitempty"`
	// Workloads is instead of Workload where the faults need different stories.
	Workloads []Workload `json:"workloads,omitempty"`
	// Names, Images and Replicas are drawn from; empty ones keep the defaults.
	Names    []string `json:"names,omitempty"`
	Images   []string `json:"images,omitempty"`
	Replicas []int    `json:"replicas,omitempty"`
	// Show are the kubectl commands whose output the learner sees first.
	Show []string `json:"show,omitempty"`
	// Wait is how much virtual time passes before the learner looks; 2m where zero.
	Wait scenario.Duration `json:"wait,omitempty"`

	// Target is what an inject exercise asks for.
	Target *Target `json:"target,omitempty"`
	// Solution are faults each of which solves an inject exercise, Ways kubectl commands that
	// do: proof that it can be done, and in more than one way. Near are faults that do
	// something like it, and must score less.
	Solution []string   `json:"solution,omitempty"`
	Ways     [][]string `json:"ways,omitempty"`
	Near     []string   `json:"near,omitempty"`

	Title  scenario.Text   `json:"title"`
	Prompt scenario.Text   `json:"prompt"`
	Hints  []scenario.Text `json:"hints"` // three, from vague to nearly there
}

// Workload is the story for some of an exercise's faults.
type Workload struct {
	Faults []string          `json:"faults"`
	Story  scenario.Scenario `json:"story"`
}

// workload is the story for a fault, nil where the exercise has none for it.
func (x Exercise) workload(fault string) *scenario.Scenario {
	for i, w := range x.Workloads {
		if slices.Contains(w.Faults, fault) {
			return &x.Workloads[i].Story
		}
	}
	return x.Workload
}

// Target is a verdict that shall come about.
type Target struct {
	Stage stage.ID `json:"stage"`
	// Status is what kubectl prints in the STATUS column, "" for any; None says that the
	// Pod must not exist.
	Status string `json:"status,omitempty"`
	None   bool   `json:"none,omitempty"`
	// Restarts says whether a container must have been restarted; nil for either.
	Restarts *bool `json:"restarts,omitempty"`
	// Ended are the reasons with which a container may have ended last ("Error",
	// "Completed"); empty for any, or none.
	Ended []string `json:"ended,omitempty"`
}

// Stage is where an exercise belongs: its target, or the stage of the first fault that it
// draws from.
func (x Exercise) Stage() (stage.ID, error) {
	if x.Target != nil {
		return x.Target.Stage, nil
	}
	f, err := FaultByID(x.Faults[0])
	return f.Stage, err
}

// Exercises returns every exercise in order.
func Exercises() ([]Exercise, error) {
	all, err := loaded()
	return slices.Clone(all), err
}

var loaded = sync.OnceValues(func() ([]Exercise, error) { return LoadExercises(exerciseFiles) })

// IDs returns the exercises' ids, in their order.
func IDs(all []Exercise) []string {
	var ids []string
	for _, x := range all {
		ids = append(ids, x.ID)
	}
	return ids
}

// ExerciseByID returns one exercise.
func ExerciseByID(id string) (Exercise, error) {
	all, err := Exercises()
	if err != nil {
		return Exercise{}, err
	}
	for _, x := range all {
		if x.ID == id {
			return x, nil
		}
	}
	return Exercise{}, fmt.Errorf("there is no exercise %q; there are: %s", id, strings.Join(IDs(all), ", "))
}

// LoadExercises reads every NN-name/exercise.yaml, strictly.
func LoadExercises(fsys fs.FS) ([]Exercise, error) {
	return load(fsys, "*/exercise.yaml", func(name string, x Exercise) error { return x.check(path.Dir(name)) })
}

func (x Exercise) check(dir string) error {
	if _, name, ok := strings.Cut(dir, "-"); !ok || name != x.ID {
		return fmt.Errorf("its id is %q; the folder must be called NN-%s", x.ID, x.ID)
	}
	if x.Difficulty < 1 || x.Difficulty > 3 {
		return fmt.Errorf("difficulty is %d; it must be 1, 2 or 3", x.Difficulty)
	}
	switch x.Kind {
	case Identify:
		if len(x.Faults) == 0 || len(x.Show) == 0 {
			return fmt.Errorf("an identify exercise needs faults and show")
		}
		for _, w := range x.Workloads {
			for _, id := range w.Faults {
				if !slices.Contains(x.Faults, id) {
					return fmt.Errorf("workloads: %q is none of its faults", id)
				}
			}
		}
	case Inject:
		if x.Target == nil || len(x.Solution) == 0 || len(x.Ways) == 0 || len(x.Near) == 0 || x.Workload == nil {
			return fmt.Errorf("an inject exercise needs a workload, a target, a solution, ways and near")
		}
		if _, ok := stage.Get(x.Target.Stage); !ok {
			return fmt.Errorf("there is no stage %q", x.Target.Stage)
		}
	default:
		return fmt.Errorf("kind is %q; it must be %s or %s", x.Kind, Identify, Inject)
	}
	if len(x.Hints) != 3 {
		return fmt.Errorf("there are %d hints; three are needed", len(x.Hints))
	}
	if err := x.Title.Check("title"); err != nil {
		return err
	}
	if err := x.Prompt.Check("prompt"); err != nil {
		return err
	}
	for i, h := range x.Hints {
		if err := h.Check(fmt.Sprintf("hints[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}
