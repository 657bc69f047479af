// Package progress keeps what the learner has done, in one file: where each lesson
// stands, every result, the settings of the settings screen. It is written at every
// answer, through a temporary file, so that a power cut loses at most the last one.
package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"podwalk/engine/stage"
)

// version of the file's format.
const version = 1

// Data is the file.
type Data struct {
	Version  int               `json:"version"`
	Settings *Settings         `json:"settings,omitempty"`
	Lessons  map[string]Lesson `json:"lessons,omitempty"`
	Results  []Result          `json:"results,omitempty"`
	Last     string            `json:"last,omitempty"` // what was opened last: "lesson/first-pod"
}

// Settings are those of the settings screen.
type Settings struct {
	Lang          string  `json:"lang,omitempty"`
	Theme         string  `json:"theme,omitempty"`
	ASCII         bool    `json:"ascii,omitempty"`
	Speed         float64 `json:"speed,omitempty"`
	ReducedMotion bool    `json:"reducedMotion,omitempty"`
}

// Lesson is how far a lesson has come.
type Lesson struct {
	Step    int               `json:"step"`
	Done    bool              `json:"done,omitempty"`
	Answers map[string]string `json:"answers,omitempty"`
}

// Result is one exercise that was answered.
type Result struct {
	Exercise string    `json:"exercise"`
	Seed     uint64    `json:"seed"`
	Stage    stage.ID  `json:"stage"`
	Points   int       `json:"points"`
	At       time.Time `json:"at"`
}

// resultsMax bounds the file.
const resultsMax = 5000

// Store is a progress file. It may be used from several goroutines.
type Store struct {
	mu   sync.Mutex
	path string
	data Data
}

// Path returns where the file is: $XDG_STATE_HOME/podwalk, else ~/.local/state/podwalk.
func Path(getenv func(string) string) string {
	if d := getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "podwalk", "progress.json")
	}
	if h := getenv("HOME"); h != "" {
		return filepath.Join(h, ".local", "state", "podwalk", "progress.json")
	}
	return ""
}

// Open reads the file; a missing one is an empty one. With an empty path nothing is
// kept.
func Open(path string) (*Store, error) {
	s := &Store{path: path, data: Data{Version: version, Lessons: map[string]Lesson{}}}
	if path == "" {
		return s, nil
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("progress file: %w", err)
	}
	if err := json.Unmarshal(raw, &s.data); err != nil {
		return s, fmt.Errorf("progress file %s is damaged: %w; move it away to begin anew", path, err)
	}
	if s.data.Version != version {
		return s, fmt.Errorf("progress file %s has format %d, this podwalk knows %d", path, s.data.Version, version)
	}
	if s.data.Lessons == nil {
		s.data.Lessons = map[string]Lesson{}
	}
	return s, nil
}

// Get returns a copy of everything.
func (s *Store) Get() Data {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.data
	d.Lessons = make(map[string]Lesson, len(s.data.Lessons))
	for k, v := range s.data.Lessons {
		d.Lessons[k] = v
	}
	d.Results = append([]Result(nil), s.data.Results...)
	return d
}

// Change changes the data and writes the file.
func (s *Store) Change(edit func(d *Data)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	edit(&s.data)
	if n := len(s.data.Results); n > resultsMax {
		s.data.Results = s.data.Results[n-resultsMax:]
	}
	if s.path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(s.data, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("progress file: %w", err)
	}
	f, err := os.CreateTemp(dir, ".progress-*")
	if err != nil {
		return fmt.Errorf("progress file: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("progress file: %w", err)
	}
	return nil
}

// recent is how many of the newest results at a step count.
const recent = 5

// Mastery returns, for each step at which something was answered, the mean of the newest
// results, 0 to 1; few results count less.
func (d Data) Mastery() map[stage.Step]float64 {
	sum, n := map[stage.Step]float64{}, map[stage.Step]int{}
	for i := len(d.Results) - 1; i >= 0; i-- {
		st := stage.StepOf(d.Results[i].Stage)
		if n[st] < recent {
			sum[st] += float64(d.Results[i].Points) / 100
			n[st]++
		}
	}
	out := map[stage.Step]float64{}
	for st := range sum {
		out[st] = sum[st] / float64(max(n[st], 3))
	}
	return out
}

// Tries returns how often an exercise was answered and its best points.
func (d Data) Tries(exercise string) (n, best int) {
	for _, r := range d.Results {
		if r.Exercise == exercise {
			n++
			best = max(best, r.Points)
		}
	}
	return n, best
}
