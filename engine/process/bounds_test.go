package process_test

import (
	"strings"
	"testing"
	"time"

	"podwalk/engine/kernel"
	"podwalk/engine/process"
)

// TestBounds: what a script or a manifest asks without end comes to the end that a node
// gives it, and soon.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 130<<10)
	for _, c := range []struct {
		name, script string
		env          []process.Var
		code         int32 // -1: it goes on
		why, says    string
	}{
		{"a variable that doubles", "a=x; while true; do a=$a$a; done", nil, 137, "OOMKilled", ""},
		{"words that explode", "a=$(seq 1 100000); b=$a$a; c=" + strings.Repeat("$b", 100), nil, 137, "OOMKilled", ""},
		{"directories without end", "while true; do mkdir a; cd a; done", nil, -1, "", "No space left on device"},
		{"files without end", "i=0; while true; do i=$((i+1)); touch f$i; done", nil, -1, "", "No space left on device"},
		{"parentheses", strings.Repeat("(", 2000) + ":" + strings.Repeat(")", 2000), nil, 2, "", "too deeply nested"},
		{"an environment string", "true", []process.Var{{Name: "A", Value: long}}, 255, "", "exec /bin/sh: argument list too long"},
		{"an environment", "true", func() (v []process.Var) {
			for _, n := range strings.Split("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "") {
				v = append(v, process.Var{Name: n, Value: long[:100<<10]})
			}
			return v
		}(), 255, "", "exec /bin/sh: argument list too long"},
		{"a long name", "mkdir " + long[:300], nil, 1, "", "File name too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			began := time.Now()
			p, why := process.Start(process.Spec{Argv: []string{"/bin/sh", "-c", c.script}, Tools: true, Env: c.env}, 0, w)
			if why != "" {
				t.Fatal(why)
			}
			end, says := process.Event{Code: -1}, ""
			for now := kernel.Time(0); now < kernel.Time(20*time.Second); {
				events, next := p.Advance(now, w)
				for _, e := range events {
					switch e.Kind {
					case process.Exit:
						end = e
					case process.Err:
						says += e.Text
					}
				}
				if next == 0 {
					break
				}
				now = next
			}
			if end.Code != c.code || end.Why != c.why || !strings.Contains(says, c.says) {
				t.Errorf("exit %d %q, it says %.300q", end.Code, end.Why, says)
			}
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("it takes %s", d)
			}
		})
	}
}
