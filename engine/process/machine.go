package process

import (
	"maps"
	"slices"
	"time"

	"podwalk/engine/kernel"
)

const (
	commandTime = time.Millisecond      // what it takes to start a command
	lapTime     = 10 * time.Microsecond // and to go round a loop

	lapsFast = 1_000                 // rounds of a loop until it is looked at less closely
	spinLook = 50 * time.Millisecond // how often then

	stepsMax   = 100_000 // in one Advance
	framesMax  = 1_000   // of one task
	tasksMax   = 64
	eventsMax  = 20_000  // in one Advance
	textMax    = 1 << 20 // of a variable, a pipe, a file that a script writes
	wordsMax   = 8 << 20 // what the words of one command may grow to
	filesMax   = 2_000   // of one file system
	nestMax    = 100     // parentheses of a script within each other
	pathMax    = 4096    // Linux's PATH_MAX
	nameMax    = 255     // NAME_MAX
	stringMax  = 128 << 10
	stringsMax = 2 << 20 // of arguments and environment together: a quarter of the stack
)

// machine is a process while it runs up to an instant: it lives for one Advance.
type machine struct {
	p      *Process
	w      World
	now    kernel.Time // the clock of the task that runs
	limit  kernel.Time
	events []Event
	steps  int
}

// block is what a task waits for, other than its clock.
type block string

const (
	blockNot     block = ""
	blockChild   block = "child" // until task On has ended
	blockPipe    block = "pipe"  // until pipe On has something to read, or nobody who writes
	blockJobs    block = "jobs"  // the shell's wait: until a child ends or a trapped signal comes
	blockForever block = "forever"
)

// task is one of Linux's processes.
type task struct {
	PID, Parent int
	Argv        []string
	At          kernel.Time // when it goes on
	Block       block
	On          int
	Alarm       kernel.Time // when it goes on in spite of Block; 0 for never
	Frames      []frame     // the last one runs
	Shell       bool        // it reads a script: it can have traps
	Simple      bool        // it was forked for one command alone, which gets its signals
	Sh          shell
	Fd          [3]fd
	Status      int      // $?
	Pending     []string // signals whose traps have not run yet
	Ports       []int32
	Laps        int // rounds of loops since it last slept
	Broken      bool
	Full        bool // it wants more memory than there is
	Done        bool
	Code        int
	Why         string
}

// shell is what a task's shell remembers.
type shell struct {
	Vars   map[string]string
	Export map[string]bool
	Funcs  map[string]Code
	Traps  map[string]string
	Params []string
	Name   string // $0
	Dir    string
	PID    int // $$
	Jobs   []int
	LastBG int
	// ErrExit and Trace are set -e and set -x.
	ErrExit, Trace, NoUnset bool
}

// op is what a frame does.
type op string

const (
	opStart  op = "start"  // the process's own command line
	opList   op = "list"   // statements one after the other
	opStmt   op = "stmt"   // one statement: redirections, negation
	opNode   op = "node"   // a command by its kind
	opFunc   op = "func"   // gives a caller its parameters back
	opSource op = "source" // ends what "return" leaves
	opTrap   op = "trap"   // gives $? back
	opLeaf   op = "leaf"   // a command that is no shell's
	opChild  op = "child"  // waits for a task and takes its status
	opExit   op = "exit"   // ends the task
)

// frame is one level of what a task is doing. Its slices are never changed in place.
type frame struct {
	Op     op
	Code   Code
	Step   int
	N      int
	Status int
	Args   []string
	Subst  []string // what the $(…) of its words gave so far
	Child  int      // task that it waits for
	Pipe   int
	Until  kernel.Time
	Text   string
	Redir  bool // Fds are to be put back
	Fds    [3]fd
	Saved  []saved // variables to be put back
	Params []string
}

type saved struct {
	Name, Value string
	Set, Export bool
}

func newShell(spec Spec, pid int) shell {
	s := shell{
		Vars: map[string]string{}, Export: map[string]bool{}, Funcs: map[string]Code{}, Traps: map[string]string{},
		Dir: spec.Dir, PID: pid, Name: "sh",
	}
	if s.Dir == "" {
		s.Dir = "/"
	}
	for _, v := range spec.Env {
		s.Vars[v.Name], s.Export[v.Name] = v.Value, true
	}
	return s
}

func (s shell) clone() shell {
	s.Vars, s.Export, s.Funcs, s.Traps = maps.Clone(s.Vars), maps.Clone(s.Export), maps.Clone(s.Funcs), maps.Clone(s.Traps)
	s.Jobs = slices.Clone(s.Jobs)
	return s
}

func (t *task) clone() *task {
	c := *t
	c.Frames, c.Pending, c.Ports = slices.Clone(t.Frames), slices.Clone(t.Pending), slices.Clone(t.Ports)
	c.Sh = t.Sh.clone()
	return &c
}

// due is when a task goes on by itself.
func (t *task) due() (at kernel.Time, ok bool) {
	switch {
	case t.ready():
		return t.At, true
	case !t.Done && t.Alarm != 0:
		return t.Alarm, true
	}
	return 0, false
}

func (t *task) ready() bool          { return !t.Done && t.Block == blockNot }
func (t *task) top() *frame          { return &t.Frames[len(t.Frames)-1] }
func (t *task) push(f frame)         { t.Frames = append(t.Frames, f) }
func (t *task) wait(b block, on int) { t.Block, t.On = b, on }

// pop ends the frame on top and puts back what it has put aside.
func (t *task) pop() {
	f := t.top()
	if f.Redir {
		t.Fd = f.Fds
	}
	for _, s := range slices.Backward(f.Saved) {
		if s.Set {
			t.Sh.Vars[s.Name] = s.Value
		} else {
			delete(t.Sh.Vars, s.Name)
		}
		if s.Export {
			t.Sh.Export[s.Name] = true
		} else {
			delete(t.Sh.Export, s.Name)
		}
	}
	if f.Op == opFunc {
		t.Sh.Params = f.Params
	}
	t.Frames[len(t.Frames)-1] = frame{}
	t.Frames = t.Frames[:len(t.Frames)-1]
}

// keep remembers a variable as it is.
func (t *task) keep(name string) saved {
	v, set := t.Sh.Vars[name]
	return saved{name, v, set, t.Sh.Export[name]}
}

func (m *machine) newTask(parent *task) *task {
	t := &task{PID: m.p.NextPID}
	m.p.NextPID++
	if parent != nil {
		t.Parent, t.At, t.Fd, t.Argv = parent.PID, parent.At, parent.Fd, parent.Argv
	}
	m.p.Tasks = append(m.p.Tasks, t)
	return t
}

// fork makes a subshell of a task.
func (m *machine) fork(parent *task) (*task, bool) {
	if len(m.p.Tasks) >= tasksMax && !m.sweep() {
		m.write(parent, 2, "sh: can't fork: Resource temporarily unavailable\n")
		parent.Status = 2
		return nil, false
	}
	t := m.newTask(parent)
	t.Shell, t.Sh, t.Status = true, parent.Sh.clone(), parent.Status
	t.Sh.Jobs = nil
	for name, action := range t.Sh.Traps { // a subshell ignores what its parent ignores; it has no traps
		if action != "" {
			delete(t.Sh.Traps, name)
		}
	}
	return t, true
}

// sweep forgets ended jobs that nobody has waited for.
func (m *machine) sweep() bool {
	n := len(m.p.Tasks)
	m.p.Tasks = slices.DeleteFunc(m.p.Tasks, func(t *task) bool {
		parent := m.task(t.Parent)
		return t.Done && (parent == nil || slices.Contains(parent.Sh.Jobs, t.PID))
	})
	return len(m.p.Tasks) < n
}

func (m *machine) task(pid int) *task {
	for _, t := range m.p.Tasks {
		if t.PID == pid {
			return t
		}
	}
	return nil
}

// first is the task with which everything began and ends.
func (m *machine) first() *task { return m.p.Tasks[0] }

// reap takes an ended task's status and forgets it; ok is false while it runs.
func (m *machine) reap(pid int) (status int, ok bool) {
	t := m.task(pid)
	if t == nil {
		return 127, true
	}
	if !t.Done {
		return 0, false
	}
	m.p.Tasks = slices.DeleteFunc(m.p.Tasks, func(x *task) bool { return x == t })
	return t.Code, true
}

// run lets the task go on whose clock is furthest behind, until all are at the limit.
func (m *machine) run() {
	for !m.p.Ended {
		t, at := m.next()
		if len(m.p.Signals) > 0 {
			if s := m.p.Signals[0]; s.At <= m.limit && (t == nil || s.At <= at) {
				m.p.Signals = m.p.Signals[1:]
				m.now = s.At
				m.signal(m.first(), s.Name)
				continue
			}
		}
		if t == nil || at > m.limit {
			return
		}
		if m.steps++; m.steps > stepsMax { // they do nothing but run: look at them less closely
			for _, t := range m.p.Tasks {
				if t.ready() {
					t.At = max(t.At, m.limit.Add(100*time.Millisecond))
				}
			}
			return
		}
		m.now = at
		if !t.ready() {
			m.wake(t)
		}
		t.Alarm = 0
		m.step(t)
		if t.Broken {
			t.Broken = false
			m.end(t, 141, "")
		}
		if t.Full { // the kernel kills all of the container
			m.end(m.first(), 137, "OOMKilled")
		}
	}
}

// next is the task whose turn it is, and when.
func (m *machine) next() (best *task, at kernel.Time) {
	for _, t := range m.p.Tasks {
		if due, ok := t.due(); ok && (best == nil || due < at) {
			best, at = t, due
		}
	}
	return best, at
}

// lap is a round of a loop. A loop that does nothing but go round is looked at less and
// less often.
func (m *machine) lap(t *task) {
	d := lapTime
	switch t.Laps++; {
	case t.Laps > 20_000:
		d = time.Second
	case t.Laps > 5_000:
		d = 20 * time.Millisecond
	case t.Laps > lapsFast:
		d = time.Millisecond
	}
	t.At = t.At.Add(d)
}

func (m *machine) wake(t *task) {
	t.Block, t.On = blockNot, 0
	t.At = max(t.At, m.now)
}

// wakePipes lets all go on that wait at a pipe: something about pipes has changed.
func (m *machine) wakePipes() {
	for _, t := range m.p.Tasks {
		if !t.Done && t.Block == blockPipe {
			m.wake(t)
		}
	}
}

// finish ends a task in order: its EXIT trap runs first.
func (m *machine) finish(t *task, code int) {
	for len(t.Frames) > 0 {
		t.pop()
	}
	action, ok := t.Sh.Traps["EXIT"]
	if t.Shell && ok && action != "" {
		delete(t.Sh.Traps, "EXIT")
		t.Status = code
		t.push(frame{Op: opExit, Status: code})
		m.script(t, action)
		return
	}
	m.end(t, code, "")
}

// end ends a task at once.
func (m *machine) end(t *task, code int, why string) {
	if t.Done {
		return
	}
	m.closePorts(t)
	t.Done, t.Code, t.Why, t.Frames, t.Fd = true, code&255, why, nil, [3]fd{}
	if t == m.first() {
		m.p.Ended = true
		for _, other := range m.p.Tasks {
			m.closePorts(other)
		}
		m.emit(Event{At: m.now, Kind: Exit, Code: int32(t.Code), Why: why})
		return
	}
	for _, p := range m.p.Tasks {
		if p.PID == t.Parent && !p.Done && (p.Block == blockChild && p.On == t.PID || p.Block == blockJobs) {
			m.wake(p)
		}
	}
	m.wakePipes()
	m.dropPipes()
	if parent := m.task(t.Parent); parent == nil || parent.Done {
		m.reap(t.PID)
	}
}

func (m *machine) closePorts(t *task) {
	for _, port := range t.Ports {
		m.emit(Event{At: m.now, Kind: Close, Port: port})
	}
	t.Ports = nil
}

func (m *machine) emit(e Event) {
	if len(m.events) < eventsMax || e.Kind == Exit || e.Kind == Close {
		m.events = append(m.events, e)
	}
}

var signalNumbers = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "CHLD": 17,
	"CONT": 18, "STOP": 19, "WINCH": 28,
}

// signal delivers a signal to a task.
func (m *machine) signal(t *task, name string) {
	if t.Done {
		return
	}
	number := signalNumbers[name]
	if name == "KILL" {
		m.end(t, 137, "")
		return
	}
	if pr, f := t.serving(); pr != nil {
		if slices.Contains(pr.Quits, name) {
			m.closePorts(t)
			f.Step, t.Block = serveStops, blockNot
			t.At = m.now.Add(time.Duration(pr.Stop))
			return
		}
	} else if action, trapped := t.Sh.Traps[name]; trapped && t.Shell {
		if action == "" {
			return
		}
		t.Pending = append(t.Pending, name)
		if t.Block == blockJobs {
			t.Status = 128 + number
			m.wake(t)
		}
		return
	}
	if name == "CHLD" || name == "CONT" || name == "WINCH" || name == "STOP" {
		return
	}
	if t == m.first() && m.p.Spec.PIDOne {
		return // the kernel keeps signals without a handler from PID 1
	}
	m.end(t, 128+number, "")
}

// serving is the image's program that gets a task's signals.
func (t *task) serving() (*Program, *frame) {
	if len(t.Frames) == 0 || t.Shell && !t.Simple {
		return nil, nil
	}
	if f := t.top(); f.Op == opLeaf && f.Code.Program != nil {
		return f.Code.Program, f
	}
	return nil, nil
}
