package process_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"podwalk/engine/kernel"
	"podwalk/engine/process"
)

// world is volumes of files, taken ports, and one server at http://web/.
type world struct {
	files map[string]string // volume:path
	ports map[int32]bool
}

func newWorld() *world {
	return &world{files: map[string]string{
		"root:etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "root:run.sh": "#!/bin/sh\necho \"run $1\"\n",
		"root:usr/share/nginx/html/index.html": "welcome\n", "conf:nginx.conf": "server {}\n", "conf:other": "x\n",
	}, ports: map[int32]bool{}}
}

func (w *world) ReadFile(v, path string) (string, bool) { c, ok := w.files[v+":"+path]; return c, ok }
func (w *world) WriteFile(v, path, content string)      { w.files[v+":"+path] = content }
func (w *world) RemoveFile(v, path string)              { delete(w.files, v+":"+path) }
func (w *world) Bind(port int32) bool                   { return !w.ports[port] }

func (w *world) ListFiles(v string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(w.files)) {
		if f, ok := strings.CutPrefix(k, v+":"); ok {
			out = append(out, f)
		}
	}
	return out
}

func (w *world) AnyFile(v, prefix string) bool {
	prefix = v + ":" + prefix
	for f := range w.files {
		if strings.HasPrefix(f, prefix) {
			return true
		}
	}
	return false
}

func (w *world) CountFiles(string) int { return len(w.files) }

func (w *world) Fetch(url string) (int, string, string) {
	switch url {
	case "http://web/":
		return 200, "hello\n", ""
	case "http://web/nothing":
		return 404, "", ""
	case "http://10.0.0.9/":
		return 0, "", "Operation timed out"
	case "http://nowhere/":
		return 0, "", "bad address 'nowhere'"
	}
	return 0, "", "Connection refused"
}

func (w *world) Resolve(name string) (string, bool) { return "10.96.0.20", name == "web" }

func (w *world) clone() *world {
	return &world{files: maps.Clone(w.files), ports: maps.Clone(w.ports)}
}

func spec(argv ...string) process.Spec {
	return process.Spec{
		Argv: argv, Tools: true, PIDOne: true, Hostname: "web", IP: "10.244.1.2", Ports: []int32{8080},
		Env: []process.Var{{Name: "COLOR", Value: "green"}, {Name: "HOME", Value: "/root"}},
		Mounts: []process.Mount{
			{Path: "/", Volume: "root"}, {Path: "/data", Volume: "data"}, {Path: "/conf", Volume: "conf", ReadOnly: true},
			{Path: "/etc/nginx.conf", Volume: "conf", Sub: "nginx.conf", ReadOnly: true},
		},
		Image: []process.Program{
			{
				Name: "nginx", Ports: []int32{80}, Quits: []string{"QUIT"}, Log: []string{"ready"}, Root: "/usr/share/nginx/html", Foreground: "daemon off;",
				Control: "-s", Memory: 9 << 20, InUse: []string{"bind() to 0.0.0.0:{port} failed (98: Address already in use)", "still could not bind()"},
			},
			{Name: "app", Any: true},
			{Name: "leaky", Memory: 10 << 20, Grow: 1 << 20},
			{Name: "once", After: process.Duration(3 * time.Second), Exit: 4},
			{Name: "httpd", Ports: []int32{80}, PortFlag: "-p", RootFlag: "-h", Root: "/www", Foreground: "-f"},
		},
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
			for i, a := range argv { // a word in quotes that has one space
				if strings.HasPrefix(a, `"`) {
					argv = append(argv[:i], strings.Trim(a+" "+argv[i+1], `"`))
					break
				}
			}
		}
		files := newWorld()
		sp := spec(argv...)
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "limit":
				sp.Limit = 32 << 20
			case "exec":
				sp.PIDOne = false
			case "taken":
				files.ports[80] = true
			case "dir":
				sp.Dir = a.Vals[0]
			case "readonly":
				sp.Mounts[0].ReadOnly = true
			}
		}
		p, why := process.Start(sp, 0, files)
		if why != "" {
			return why + "\n"
		}
		var b strings.Builder
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
				files.WriteFile("data", name, content)
			case "get":
				port, path, _ := strings.Cut(rest, " ")
				n, err := strconv.Atoi(port)
				if err != nil {
					t.Fatal(err)
				}
				code, body, _, http := p.Answer(int32(n), path, func(f string) (string, bool) {
					mt, rel := sp.Find(f)
					return files.ReadFile(mt.Volume, rel)
				})
				fmt.Fprintf(&b, "get %v %d %q\n", http, code, body)
			}
		}
		return b.String()
	})
}

// events follows a process to an instant, waking it whenever it wants.
func events(p *process.Process, to kernel.Time, w process.World) []process.Event {
	var all []process.Event
	at := kernel.Time(0)
	for range 1_000_000 {
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
	case process.Close:
		return fmt.Sprintf("close %d", e.Port)
	}
	return fmt.Sprintf("%s %q", e.Kind, e.Text)
}

// A copy that is made in the middle of a script goes on as the first one does, whatever
// the first one did meanwhile.
func TestCopies(t *testing.T) {
	const script = `trap 'echo bye; exit 3' TERM
	work() { local n=$1; while [ $n -gt 0 ]; do echo "$(hostname) $n" | tee -a /data/log; n=$((n - 1)); sleep 1; done; }
	(sleep 4; echo beside) & for x in a b; do work 3; done; nginx -g 'daemon off;' & wait`
	for cut := 200 * time.Millisecond; cut < 9*time.Second; cut += 700 * time.Millisecond {
		w := newWorld()
		p, _ := process.Start(spec("sh", "-c", script), 0, w)
		events(p, kernel.Time(cut), w)
		copied, files := p.Clone(), w.clone()
		before := kernel.Hash(copied)
		finish := func(p *process.Process, w *world) string {
			all := events(p, kernel.Time(10*time.Second), w)
			p.Signal("TERM", kernel.Time(10*time.Second))
			return fmt.Sprint(append(all, events(p, kernel.Time(11*time.Second), w)...))
		}
		first := finish(p, w)
		if kernel.Hash(copied) != before {
			t.Fatalf("cut at %v: the copy has changed", cut)
		}
		if second := finish(copied, files); first != second {
			t.Fatalf("cut at %v:\n%s\n%s", cut, first, second)
		}
		if !strings.Contains(first, "bye") || !p.Ended {
			t.Fatalf("cut at %v: %s", cut, first)
		}
	}
}

// A script that loops for a day does not cost more and more.
func TestLongRun(t *testing.T) {
	w := newWorld()
	p, _ := process.Start(spec("sh", "-c", "while true; do date > /data/now; sleep 5; done"), 0, w)
	at, wakes := kernel.Time(0), 0
	for at < kernel.Time(24*time.Hour) {
		_, next := p.Advance(at, w)
		if next <= at {
			t.Fatalf("at %v it goes on at %v", at, next)
		}
		p = p.Clone()
		at = next
		wakes++
	}
	if perRound := wakes / (24 * 720); perRound > 4 {
		t.Errorf("%d wakes a round", perRound)
	}
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
		w := newWorld()
		p, why := process.Start(spec("sh", "-c", script), 0, w)
		if why != "" {
			t.Fatal(why)
		}
		began := time.Now()
		at := kernel.Time(0)
		for range 20 {
			_, next := p.Advance(at, w)
			if time.Since(began) > 5*time.Second {
				t.Fatal("it takes too long")
			}
			if next == 0 || next > kernel.Time(time.Hour) {
				break
			}
			if next <= at {
				t.Fatalf("at %v it wants to go on at %v", at, next)
			}
			at = next
		}
		kernel.Hash(p)
		p.Signal("KILL", at)
		if p.Advance(at.Add(time.Second), w); !p.Ended {
			t.Error("it survives KILL")
		}
	})
}
