package progress

import (
	"os"
	"path/filepath"
	"strings"
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

func TestDamagedFileSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("got %v", err)
	}
}
