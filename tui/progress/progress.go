// Package progress keeps what the learner has done, in one file: where each lesson
// stands, every result, the settings of the settings screen. It is written at every
// answer, through a temporary file, so that a power cut loses at most the last one; two
// tutors that run at the same time add to each other's. A damaged file is put aside,
// never written over.
package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

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
	Hints    int       `json:"hints,omitempty"` // that were taken
	At       time.Time `json:"at"`
}

// resultsMax bounds the file.
const resultsMax = 5000

// Store is a progress file. It may be used from several goroutines.
type Store struct {
	mu    sync.Mutex
	path  string
	data  Data
	aside string
	lost  error
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
// kept. A file that cannot be understood is renamed and the learner begins anew; Aside
// says where it is. A file of a newer podwalk is an error: it would lose what this one
// does not know.
func Open(path string) (*Store, error) {
	s := &Store{path: path, data: empty()}
	if path == "" {
		return s, nil
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	d, err := Parse(raw)
	var foreign *FormatError
	switch {
	case errors.As(err, &foreign):
		return s, fmt.Errorf("%s: %w; move it away to begin anew", path, err)
	case err != nil:
		return s, s.putAside(err)
	}
	s.data = d
	return s, nil
}

// FormatError is a file in a format that this podwalk does not know.
type FormatError struct{ Version int }

func (e *FormatError) Error() string {
	return fmt.Sprintf("it has format %d, this podwalk knows %d", e.Version, version)
}

// Parse reads a progress file.
func Parse(raw []byte) (Data, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return empty(), err
	}
	if head.Version != version {
		return empty(), &FormatError{head.Version}
	}
	d := empty()
	if err := json.Unmarshal(raw, &d); err != nil {
		return empty(), err
	}
	if d.Lessons == nil {
		d.Lessons = map[string]Lesson{}
	}
	for id, l := range d.Lessons {
		l.Step = max(0, l.Step)
		d.Lessons[id] = l
	}
	for i := range d.Results {
		d.Results[i].Points = min(100, max(0, d.Results[i].Points))
	}
	return d, nil
}

func empty() Data { return Data{Version: version, Lessons: map[string]Lesson{}} }

// putAside renames a file that cannot be understood to the first free name.
func (s *Store) putAside(why error) error {
	for i := 1; ; i++ {
		to := fmt.Sprintf("%s.damaged-%d", s.path, i)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(s.path, to); err != nil {
			return fmt.Errorf("%s is damaged (%w) and cannot be put aside (%w); move it away to begin anew", s.path, why, err)
		}
		s.aside = to
		return nil
	}
}

// Aside returns where a damaged file was put, "" if there was none.
func (s *Store) Aside() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aside
}

// Lost returns why the last change could not be written, nil where it was.
func (s *Store) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
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

// Change changes the data and writes the file. What another podwalk has written
// meanwhile is kept: edit is given the file as it is now. An edit must stand for itself,
// since it is also carried out where the file cannot be written.
func (s *Store) Change(edit func(d *Data)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost = s.change(edit); s.lost != nil {
		s.lost = fmt.Errorf("progress file: %w", s.lost)
	}
	return s.lost
}

func (s *Store) change(edit func(d *Data)) error {
	if s.path == "" {
		s.apply(edit)
		return nil
	}
	unlock, err := s.lock()
	if err != nil {
		s.apply(edit)
		return err
	}
	defer unlock()
	now, err := Open(s.path)
	if err != nil {
		s.apply(edit)
		return err
	}
	if now.aside == "" {
		s.data = now.data
	} else {
		s.aside = now.aside // damaged meanwhile: what was known before is written
	}
	s.apply(edit)
	return s.write()
}

func (s *Store) apply(edit func(d *Data)) {
	edit(&s.data)
	if n := len(s.data.Results); n > resultsMax {
		s.data.Results = s.data.Results[n-resultsMax:]
	}
}

func (s *Store) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return nil, err
	}
	l := flock.New(s.path + ".lock")
	if err := l.Lock(); err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil
}

// write replaces the file as a whole, and only when the new one is on the disk.
func (s *Store) write() error {
	raw, err := json.MarshalIndent(s.data, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".progress-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Reached remembers that a lesson of n steps has come to a step, with the answers so far.
func (s *Store) Reached(lesson string, step, n int, answers map[string]string) error {
	return s.Change(func(d *Data) {
		d.Lessons[lesson] = Lesson{Step: step, Answers: maps.Clone(answers), Done: d.Lessons[lesson].Done || step == n-1}
	})
}

// Answered remembers the result of an exercise.
func (s *Store) Answered(r Result) error {
	return s.Change(func(d *Data) { d.Results = append(d.Results, r) })
}

// Resume returns where a lesson is to be taken up: one that was finished begins anew.
func (d Data) Resume(lesson string) Lesson {
	if l := d.Lessons[lesson]; !l.Done {
		return l
	}
	return Lesson{}
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

// LeastTried returns which of the exercises was answered least often; among those, the
// first.
func (d Data) LeastTried(exercises []string) string {
	return slices.MinFunc(exercises, func(a, b string) int {
		n, _ := d.Tries(a)
		m, _ := d.Tries(b)
		return n - m
	})
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
