package progress

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"podwalk/engine/stage"
)

func TestKeepsAndReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "progress.json")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Change(func(d *Data) {
		d.Lessons["first-pod"] = Lesson{Step: 4, Answers: map[string]string{"predict": "object"}}
		for range 3 {
			d.Results = append(d.Results, Result{Exercise: "pending", Stage: stage.Filter, Points: 100})
		}
		d.Results = append(d.Results, Result{Exercise: "pending", Stage: stage.Image, Points: 50})
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	d := again.Get()
	if d.Lessons["first-pod"].Step != 4 || d.Lessons["first-pod"].Answers["predict"] != "object" {
		t.Errorf("lesson lost: %+v", d.Lessons)
	}
	m := d.Mastery()
	if m["5"] != 1 || m["8"] >= 0.5 || m["8"] == 0 {
		t.Errorf("mastery %v", m)
	}
	if n, best := d.Tries("pending"); n != 4 || best != 100 {
		t.Errorf("tries %d, best %d", n, best)
	}
}

// TestDamagedFileIsPutAside: whatever is in the file stays on the disk under another name.
func TestDamagedFileIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.json")
	for i, raw := range []string{"{", "\x00\x01", `{"version":1,"lessons":[]}`, "null]"} {
		if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s.damaged-%d", path, i+1); s.Aside() != want {
			t.Errorf("%q was put aside as %q, want %q", raw, s.Aside(), want)
		}
		if kept, err := os.ReadFile(s.Aside()); err != nil || string(kept) != raw {
			t.Errorf("%q is lost: %q %v", raw, kept, err)
		}
		if err := s.Reached("first-pod", 2, 9, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestNewerFileStays: a file of a newer podwalk is neither read, renamed nor written.
func TestNewerFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.json")
	raw := `{"version": 2, "lessons": [1]}`
	if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("got %v", err)
	}
	if err := s.Reached("first-pod", 2, 9, nil); err == nil || s.Lost() == nil {
		t.Error("it was written over")
	}
	if now, _ := os.ReadFile(path); string(now) != raw {
		t.Errorf("it has changed: %s", now)
	}
}

// TestTwoTutors: what two of them write at the same time is all kept.
func TestTwoTutors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.json")
	var g sync.WaitGroup
	for range 4 {
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		g.Go(func() {
			for range 10 {
				if err := s.Answered(Result{Exercise: "pending", Points: 100}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := s.Get().Tries("pending"); n != 40 {
		t.Errorf("%d of 40 results are there", n)
	}
}

// TestUnwritable: where nothing can be written the tutor goes on and knows why.
func TestUnwritable(t *testing.T) {
	in := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(in, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := Open(filepath.Join(in, "progress.json"))
	if err := s.Reached("first-pod", 2, 9, nil); err == nil || s.Lost() == nil {
		t.Error("nobody knows")
	}
	if s.Get().Resume("first-pod").Step != 2 {
		t.Error("it is forgotten in memory too")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"lessons":{"first-pod":{"step":-3,"answers":{"a":"b"}}},"results":[{"points":900}]}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := Parse(raw)
		if err != nil {
			return
		}
		for _, l := range d.Lessons {
			if l.Step < 0 {
				t.Error("a step before the first")
			}
		}
		for _, m := range d.Mastery() {
			if m < 0 || m > 1 {
				t.Errorf("mastery %v", m)
			}
		}
	})
}
