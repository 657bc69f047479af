package process_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"podwalk/engine/kernel"
	"podwalk/engine/process"
)

// shared is a World of one shared directory, and nobody to talk to.
type shared map[string]string

func (s shared) ReadFile(_, path string) (string, bool) { c, ok := s[path]; return c, ok }
func (s shared) Fetch(string) (int, string, string)     { return 0, "", "Connection refused" }
func (s shared) Resolve(string) (string, bool)          { return "", false }

func spec(argv ...string) process.Spec {
	return process.Spec{
		Argv: argv, Tools: true, PIDOne: true, Hostname: "web", IP: "10.244.1.2", Ports: []int32{8080},
		Env: []process.Var{{Name: "COLOR", Value: "green"}}, Mounts: []process.Mount{{Path: "/data", Volume: "data"}},
		Image: []process.Program{{Name: "nginx", Ports: []int32{80}, Quits: []string{"QUIT"}, Log: []string{"ready"}, Index: []string{"index.html"}}},
	}
}

// TestScripts tells what command lines do over virtual time: the input is a script, then
// the directives "at 5s" (look at that time), "signal TERM", "file PATH CONTENT" (somebody
// else writes a shared file).
func TestScripts(t *testing.T) {
	datadriven.RunTest(t, "testdata/scripts.txt", func(t *testing.T, d *datadriven.TestData) string {
		script, plan, _ := strings.Cut(d.Input, "\n>>>\n")
		argv := []string{"sh", "-c", script}
		if d.Cmd == "argv" {
			argv = strings.Fields(script)
		}
		p, found := process.Start(spec(argv...), 0)
		if !found {
			return "no such command\n"
		}
		var b strings.Builder
		files := shared{}
		now := kernel.Time(0)
		look := func() {
			p = p.Clone()
			for _, e := range events(p, now, files) {
				fmt.Fprintf(&b, "%s %s\n", time.Duration(e.At).Round(time.Millisecond), describe(e))
			}
		}
		look()
		if plan == "" {
			plan = "at 1s"
		}
		for _, line := range strings.Split(plan, "\n") {
			word, rest, _ := strings.Cut(line, " ")
			switch word {
			case "at":
				dur, err := time.ParseDuration(rest)
				if err != nil {
					t.Fatal(err)
				}
				now = kernel.Time(dur)
				look()
			case "signal":
				p.Signal(rest, now)
				look()
			case "file":
				name, content, _ := strings.Cut(rest, " ")
				files[name] = content
			}
		}
		return b.String()
	})
}

// events follows a process to an instant, waking it whenever it wants.
func events(p *process.Process, to kernel.Time, w process.World) []process.Event {
	var all []process.Event
	at := p.Until
	for range 10_000 {
		ev, next := p.Advance(at, w)
		all = append(all, ev...)
		if next == 0 || next > to {
			break
		}
		at = next
	}
	ev, _ := p.Advance(to, w)
	return append(all, ev...)
}

func describe(e process.Event) string {
	switch e.Kind {
	case process.Exit:
		return strings.TrimSpace(fmt.Sprintf("exit %d %s", e.Code, e.Why))
	case process.Listen:
		return fmt.Sprintf("listen %d", e.Port)
	case process.Write:
		return fmt.Sprintf("write %s/%s %q", e.Vol, e.Path, e.Text)
	case process.Remove:
		return fmt.Sprintf("remove %s/%s", e.Vol, e.Path)
	}
	return fmt.Sprintf("%s %q", e.Kind, e.Text)
}

// FuzzShell: whatever a script says, it ends, waits or goes on within bounds.
func FuzzShell(f *testing.F) {
	for _, s := range []string{
		"echo hi", "while :; do :; done", "trap 'echo bye' TERM; sleep 5", "f() { f; }; f", "echo $((1/0))", "for i in 1 2 3; do echo $i; done | grep 2",
		"cat <<X\nhi\nX", "x=1; until [ $x -gt 3 ]; do x=$((x+1)); done", "sleep 1 & wait", "exec nginx", "case a in a) echo;; esac", "yes | head -n 1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		p, found := process.Start(spec("sh", "-c", script), 0)
		if !found {
			t.Fatal("there is no shell")
		}
		at := kernel.Time(0)
		for range 20 {
			_, next := p.Advance(at, shared{})
			if next == 0 || next > kernel.Time(time.Hour) {
				break
			}
			at = next
		}
		p.Signal("KILL", at)
		if _, next := p.Advance(at.Add(time.Second), shared{}); !p.Ended && next != 0 && next < at {
			t.Errorf("after KILL it goes on at %v", next)
		}
	})
}
