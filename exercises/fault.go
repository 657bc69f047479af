// Package exercises holds the faults that can be injected and the exercises that are made
// of them: their loaders, what injecting does, and how answers are graded. Faults and
// exercises themselves are data; a new one needs no Go.
package exercises

import (
	"embed"
	"errors"
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
)

//go:embed faults/*.yaml
var faultFiles embed.FS

// Fault is one way in which a run can go wrong.
type Fault struct {
	ID    string   `json:"id"`
	Stage stage.ID `json:"stage"`
	// Verdict is "failed", or "ready" for a fault that does no harm (a policy backend that
	// is down with defaultAllow true).
	Verdict string `json:"verdict"`
	// Needs names a kind that the run must have for the fault to matter: "Deployment" or
	// "Service"; empty where a Pod is enough.
	Needs string `json:"needs,omitempty"`

	// Scenario is where the fault is proved: healthy without it, failing at Stage with it.
	Scenario scenario.Scenario `json:"scenario"`

	// Change is what it does to the cluster.
	Change []scenario.Step `json:"change,omitempty"`
	// Pod is a patch of the workload's Pod spec, and Container one of its first container:
	// a mistake in the manifest. The workload is written again with it.
	Pod       map[string]any `json:"pod,omitempty"`
	Container map[string]any `json:"container,omitempty"`
	// After says that Change is made after the story's steps: it changes what they create.
	After bool `json:"after,omitempty"`
	// Recreate writes the workload again as it was, for faults that only a new request or a
	// new Pod meets.
	Recreate bool `json:"recreate,omitempty"`

	// Fix undoes Change. The workload is written again, without the mistake, where the
	// fault wrote it.
	Fix []scenario.Step `json:"fix,omitempty"`

	Title   scenario.Text `json:"title"`
	Symptom scenario.Text `json:"symptom"`
	// Look says where an administrator looks first, Remedy what helps.
	Look   scenario.Text `json:"look"`
	Remedy scenario.Text `json:"remedy"`
	// Wrong are the guesses that come to mind, each with what refutes it.
	Wrong []WrongGuess `json:"wrong"`
}

// WrongGuess is a stage that is easily taken for the one that failed.
type WrongGuess struct {
	Stage   stage.ID      `json:"stage"`
	Refuted scenario.Text `json:"refuted"`
}

// Rewrites reports whether injecting writes the workload again.
func (f Fault) Rewrites() bool { return f.Recreate || len(f.Pod) > 0 || len(f.Container) > 0 }

// Faults returns every fault, ordered by stage and then by id.
func Faults() ([]Fault, error) {
	all, err := faults()
	return slices.Clone(all), err
}

var faults = sync.OnceValues(func() ([]Fault, error) { return LoadFaults(faultFiles, "faults") })

// FaultByID returns one fault. The error of an unknown id names those that are near.
func FaultByID(id string) (Fault, error) {
	all, err := Faults()
	if err != nil {
		return Fault{}, err
	}
	var ids []string
	for _, f := range all {
		if f.ID == id {
			return f, nil
		}
		ids = append(ids, f.ID)
	}
	return Fault{}, fmt.Errorf("there is no fault %q; there are: %s", id, strings.Join(ids, ", "))
}

// LoadFaults reads every *.yaml of a folder, strictly.
func LoadFaults(fsys fs.FS, dir string) ([]Fault, error) {
	out, err := load(fsys, path.Join(dir, "*.yaml"), func(name string, f Fault) error {
		return f.check(strings.TrimSuffix(path.Base(name), ".yaml"))
	})
	sort.SliceStable(out, func(i, j int) bool {
		a, b := stage.Order(out[i].Stage), stage.Order(out[j].Stage)
		if a != b {
			return a < b
		}
		return out[i].ID < out[j].ID
	})
	return out, err
}

// load decodes every file that a pattern matches, in the order of their names; an unknown
// field is an error, and so is what check finds.
func load[T any](fsys fs.FS, pattern string, check func(name string, t T) error) ([]T, error) {
	names, err := fs.Glob(fsys, pattern)
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out []T
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		var t T
		if err = yaml.UnmarshalStrict(data, &t); err == nil {
			err = check(name, t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func (f Fault) check(file string) error {
	if f.ID != file {
		return fmt.Errorf("its id is %q; it must be the file's name", f.ID)
	}
	st, ok := stage.Get(f.Stage)
	if !ok {
		return fmt.Errorf("there is no stage %q", f.Stage)
	}
	if !st.Visible {
		return fmt.Errorf("nothing can visibly fail at stage %q", f.Stage)
	}
	if f.Verdict != "failed" && f.Verdict != "ready" {
		return fmt.Errorf("verdict is %q; it must be failed or ready", f.Verdict)
	}
	if len(f.Change) == 0 && len(f.Pod) == 0 && len(f.Container) == 0 {
		return fmt.Errorf("it changes nothing")
	}
	if err := f.Scenario.Validate(); err != nil {
		return err
	}
	if err := errors.Join(f.Title.Check("title"), f.Symptom.Check("symptom"), f.Look.Check("look"), f.Remedy.Check("remedy")); err != nil {
		return err
	}
	for _, w := range f.Wrong {
		if _, ok := stage.Get(w.Stage); !ok {
			return fmt.Errorf("wrong: there is no stage %q", w.Stage)
		}
		if err := w.Refuted.Check("wrong " + string(w.Stage)); err != nil {
			return err
		}
	}
	return nil
}
