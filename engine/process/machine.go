package process

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"podwalk/engine/kernel"
)

// commandTime is what a small command takes.
const commandTime = time.Millisecond

const (
	stepsMax = 200_000 // commands in one run of a script
	depthMax = 200     // nested calls
)

// machine runs a process from its beginning up to an instant. It lives for one Advance.
type machine struct {
	p     *Process
	world World
	now   kernel.Time
	limit kernel.Time

	events  []Event
	asked   int // answers of the world that were used
	signals []Signal

	vars   map[string]string
	export map[string]bool
	funcs  map[string]*syntax.Stmt
	traps  map[string]string
	params []string
	files  map[string]string
	own    map[string]*string // what this run has written to shared directories; nil: removed
	dir    string
	status int
	depth  int
	steps  int
	stdin  string
	// capture collects output of a pipeline's part or a $(…); nil writes events.
	capture *strings.Builder
	errTo   *strings.Builder
	jobs    []job
	server  *Program
	ports   []int32
	loop    int // break/continue levels that are under way
	cont    bool
	ret     bool
	shell   bool // a shell is PID 1: it can have traps
}

type job struct{ end kernel.Time } // 0: still running at the limit

// suspend stops the run: nothing more happens before wake (0: never).
type suspend struct{ wake kernel.Time }

// exited ends the process.
type exited struct {
	code int32
	why  string
}

func newMachine(p *Process, w World, limit kernel.Time) *machine {
	m := &machine{
		p: p, world: w, now: p.Started, limit: limit, signals: slices.Clone(p.Signals),
		vars: map[string]string{}, export: map[string]bool{}, funcs: map[string]*syntax.Stmt{}, traps: map[string]string{},
		own: map[string]*string{}, files: maps.Clone(p.Spec.Files), dir: p.Spec.Dir, stdin: p.Spec.Stdin,
	}
	if m.files == nil {
		m.files = map[string]string{}
	}
	if m.dir == "" {
		m.dir = "/"
	}
	for _, v := range p.Spec.Env {
		m.vars[v.Name], m.export[v.Name] = v.Value, true
	}
	return m
}

// run evaluates the process's command line; it returns when it will go on (0: never).
func (m *machine) run() (wake kernel.Time) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case suspend:
			wake = r.wake
		case exited:
			m.events = append(m.events, Event{At: m.now, Kind: Exit, Code: r.code, Why: r.why})
		default:
			panic(r)
		}
	}()
	m.status = m.command(m.p.Spec.Argv)
	m.exit(m.status)
	return 0
}

// exit runs the EXIT trap and ends the process.
func (m *machine) exit(code int) {
	if t, ok := m.traps["EXIT"]; ok {
		delete(m.traps, "EXIT")
		m.script(t)
	}
	panic(exited{code: int32(code & 255)})
}

// pass lets time pass in the foreground. interruptible waits (the shell's wait) end at a
// signal that has a trap.
func (m *machine) pass(d time.Duration, interruptible bool) {
	end := m.now.Add(d)
	for {
		s, ok := m.nextSignal(end)
		if !ok {
			break
		}
		m.signals = m.signals[1:]
		m.now = max(m.now, s.At)
		if m.deadly(s) {
			panic(exited{code: 128 + number(s.Name)})
		}
		if t, trapped := m.traps[s.Name]; trapped && m.shell {
			if !interruptible && m.now < end { // a shell runs its trap when the foreground command has ended
				if end > m.limit {
					panic(suspend{end})
				}
				m.now = end
			}
			m.script(t)
			if interruptible {
				return
			}
		}
	}
	if end > m.limit {
		panic(suspend{end})
	}
	m.now = end
}

// nextSignal returns the first signal that comes until end and until the limit.
func (m *machine) nextSignal(end kernel.Time) (Signal, bool) {
	if len(m.signals) == 0 || m.signals[0].At > end || m.signals[0].At > m.limit {
		return Signal{}, false
	}
	return m.signals[0], true
}

// deadly reports whether a signal ends the process at once: KILL always; others where
// there is no trap, unless the process is PID 1 of its container, for which the kernel
// drops signals without a handler.
func (m *machine) deadly(s Signal) bool {
	if s.Name == "KILL" {
		return true
	}
	if _, trapped := m.traps[s.Name]; trapped {
		return false
	}
	return !m.p.Spec.PIDOne
}

func number(signal string) int32 {
	return map[string]int32{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15}[signal]
}

// forever waits until a signal ends the process.
func (m *machine) forever() {
	for {
		if len(m.signals) == 0 || m.signals[0].At > m.limit {
			panic(suspend{0})
		}
		m.pass(max(time.Millisecond, m.signals[0].At.Sub(m.now)), true)
	}
}

// withFlags is a program as its command line wants it: with another port or root.
func (pr Program) withFlags(args []string) *Program {
	for i := 0; i+1 < len(args); i++ {
		switch args[i] {
		case "":
		case pr.PortFlag:
			port := args[i+1]
			if j := strings.LastIndexByte(port, ':'); j >= 0 {
				port = port[j+1:]
			}
			if n, err := strconv.Atoi(port); err == nil {
				pr.Ports = []int32{int32(n)}
			}
		case pr.RootFlag:
			pr.Root, pr.Index = args[i+1], nil
		}
	}
	return &pr
}

// serve is an image's own program in the foreground.
func (m *machine) serve(pr *Program) int {
	if m.p.Spec.Limit > 0 && pr.Memory > m.p.Spec.Limit {
		m.pass(200*time.Millisecond, false)
		panic(exited{code: 137, why: "OOMKilled"})
	}
	m.pass(time.Duration(pr.Start), false)
	for _, line := range pr.Log {
		line = strings.ReplaceAll(line, "{time}", m.now.Wall().UTC().Format("2006/01/02 15:04:05"))
		if pr.Stderr {
			m.stderr(line + "\n")
		} else {
			m.stdout(line + "\n")
		}
	}
	m.server = pr
	ports := pr.Ports
	if len(ports) == 0 {
		ports = m.p.Spec.Ports
	}
	if len(ports) == 0 && pr.Any {
		ports = []int32{8080}
	}
	for _, port := range ports {
		m.ports = append(m.ports, port)
		m.emit(Event{At: m.now, Kind: Listen, Port: port})
	}
	end := kernel.Time(0)
	if pr.After > 0 {
		end = m.now.Add(time.Duration(pr.After))
	}
	for {
		if len(m.signals) == 0 || m.signals[0].At > m.limit || end != 0 && m.signals[0].At > end {
			if end != 0 && end <= m.limit {
				m.now = end
				m.server, m.ports = nil, nil
				return int(pr.Exit)
			}
			panic(suspend{end})
		}
		s := m.signals[0]
		m.signals = m.signals[1:]
		m.now = max(m.now, s.At)
		switch {
		case s.Name == "KILL":
			panic(exited{code: 137})
		case slices.Contains(pr.Quits, s.Name) && pr.Stop >= 0:
			m.server, m.ports = nil, nil
			m.pass(time.Duration(pr.Stop), false)
			return 0
		case !m.p.Spec.PIDOne:
			panic(exited{code: 128 + number(s.Name)})
		}
	}
}

func (m *machine) emit(e Event) {
	if len(m.events) < eventsMax {
		m.events = append(m.events, e)
	}
}

func (m *machine) stdout(s string) {
	if m.capture != nil {
		m.capture.WriteString(s)
		return
	}
	m.emit(Event{At: m.now, Kind: Out, Text: s})
}

func (m *machine) stderr(s string) {
	if m.errTo != nil {
		m.errTo.WriteString(s)
		return
	}
	m.emit(Event{At: m.now, Kind: Err, Text: s})
}

// ask gets an answer of the world: the one that it gave before, where the run has been
// here already.
func (m *machine) ask(f func() string) string {
	if m.asked == len(m.p.Seen) {
		answer := ""
		if m.world != nil {
			answer = f()
		}
		m.p.Seen = append(m.p.Seen, answer)
	}
	m.asked++
	return m.p.Seen[m.asked-1]
}

// abs makes a path absolute.
func (m *machine) abs(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = m.dir + "/" + p
	}
	return path.Clean(p)
}

// mount returns the shared directory that a path lies in.
func (m *machine) mount(p string) (Mount, string, bool) {
	best, rel, found := Mount{}, "", false
	for _, mt := range m.p.Spec.Mounts {
		if p == mt.Path || strings.HasPrefix(p, strings.TrimSuffix(mt.Path, "/")+"/") {
			if !found || len(mt.Path) > len(best.Path) {
				best, rel, found = mt, strings.Trim(strings.TrimPrefix(p, mt.Path), "/"), true
			}
		}
	}
	return best, rel, found && best.Volume != ""
}

// read returns a file's content.
func (m *machine) read(p string) (string, bool) {
	p = m.abs(p)
	if mt, rel, shared := m.mount(p); shared {
		if c, mine := m.own[p]; mine {
			if c == nil {
				return "", false
			}
			return *c, true
		}
		answer := m.ask(func() string {
			if c, ok := m.world.ReadFile(mt.Volume, rel); ok {
				return "+" + c
			}
			return "-"
		})
		if strings.HasPrefix(answer, "+") {
			return answer[1:], true
		}
		return "", false
	}
	c, ok := m.files[p]
	return c, ok
}

// write puts a file down; the error is the system's.
func (m *machine) write(p, content string) error {
	p = m.abs(p)
	if mt, rel, shared := m.mount(p); shared {
		if mt.ReadOnly {
			return fmt.Errorf("Read-only file system")
		}
		m.own[p] = &content
		m.emit(Event{At: m.now, Kind: Write, Vol: mt.Volume, Path: rel, Text: content})
		return nil
	}
	m.files[p] = content
	return nil
}

func (m *machine) remove(p string) bool {
	p = m.abs(p)
	if mt, rel, shared := m.mount(p); shared {
		_, ok := m.read(p)
		m.own[p] = nil
		m.emit(Event{At: m.now, Kind: Remove, Vol: mt.Volume, Path: rel})
		return ok
	}
	found := false
	for f := range m.files {
		if f == p || strings.HasPrefix(f, p+"/") {
			delete(m.files, f)
			found = true
		}
	}
	return found
}

// isDir reports whether something lies below a path.
func (m *machine) isDir(p string) bool {
	p = m.abs(p)
	if p == "/" || slices.Contains([]string{"/tmp", "/etc", "/usr", "/var", "/bin", "/root", "/proc", "/dev"}, p) {
		return true
	}
	for f := range m.files {
		if strings.HasPrefix(f, p+"/") {
			return true
		}
	}
	for _, mt := range m.p.Spec.Mounts {
		if p == path.Clean(mt.Path) {
			return true
		}
	}
	return false
}
