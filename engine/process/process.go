// Package process is what a container runs: an image's program as data (ports, answers,
// log lines, memory over time, how it ends) or a command line, among them shell scripts.
//
// A process is a small machine of its own in virtual time. Its tasks are what Linux would
// have as processes: the first one (PID 1 of the container), subshells, the parts of a
// pipeline, jobs in the background. Each task has a clock, file descriptors, and a stack of
// frames that says where in its script it is; the machine lets the task go on whose clock
// is furthest behind. Everything is plain data, so that a process can be copied in the
// middle of a script and both copies go on alike.
//
// The parser is mvdan.cc/sh's; the evaluator is ours, since time inside a script is
// virtual. Left out: job control of a terminal, arrays, most options of most commands,
// permissions of files, regular expressions beyond what Go has.
package process

import (
	"slices"
	"time"

	"podwalk/engine/kernel"
)

// Program is an image's own program.
type Program struct {
	Name string `json:"name"`
	// Ports on which it listens, once Start has passed.
	Ports []int32 `json:"ports,omitempty"`
	// Start is how long it takes until it listens.
	Start Duration `json:"start,omitempty"`
	// Log lines when it starts; "{time}" is the wall clock as the program prints it.
	Log []string `json:"log,omitempty"`
	// Stderr says that it logs to standard error.
	Stderr bool `json:"stderr,omitempty"`
	// Access is the log line of a request, with {from}, {time}, {path}, {code}, {size} and
	// {agent} put in.
	Access string `json:"access,omitempty"`
	// Root is where it takes its files from: a path that exists there is 200, any other 404.
	Root string `json:"root,omitempty"`
	// NoIndex is its answer for a directory without an index.html, 404 where not given.
	NoIndex int `json:"noIndex,omitempty"`
	// PortFlag and RootFlag are the flags of its command line that say otherwise.
	PortFlag string `json:"portFlag,omitempty"`
	RootFlag string `json:"rootFlag,omitempty"`
	// Foreground is the argument without which it goes on in the background and its caller
	// is told that all is well.
	Foreground string `json:"foreground,omitempty"`
	// Bare says that without arguments it reads commands from its input, and ends with it.
	Bare bool `json:"bare,omitempty"`
	// Any answers 200 to every path.
	Any bool `json:"any,omitempty"`
	// After it ends by itself, with Exit; never where zero.
	After Duration `json:"after,omitempty"`
	Exit  int32    `json:"exit,omitempty"`
	// Memory is what it uses when it starts, and Grow what it takes each second; MemoryFlag
	// is the flag that says how much it shall take.
	Memory     int64  `json:"memory,omitempty"`
	Grow       int64  `json:"grow,omitempty"`
	MemoryFlag string `json:"memoryFlag,omitempty"`
	// Stop is how long it takes to end after its stop signal.
	Stop Duration `json:"stop,omitempty"`
	// Quits lists the signals on which it ends in order, with exit code 0.
	Quits []string `json:"quits,omitempty"`
	// Control is the flag that sends a signal to the one that runs: "nginx -s quit".
	Control string `json:"control,omitempty"`
	// Version is what "NAME -v" prints.
	Version string `json:"version,omitempty"`
	// Writes is a directory that it must be able to make; Cannot is what it says, and ends
	// with 1, where the file system is read-only.
	Writes string `json:"writes,omitempty"`
	Cannot string `json:"cannot,omitempty"`
	// InUse is what it says when its port ({port}) is taken, each time it tries.
	InUse []string `json:"inUse,omitempty"`
}

// Spec is what a process is started with.
type Spec struct {
	Argv     []string
	Env      []Var
	Hostname string
	Dir      string
	Image    []Program // the programs in the image, by their command's name
	// Tools says that the image has a shell and the usual small commands.
	Tools  bool
	Mounts []Mount // its file systems, among them the one at "/"
	Limit  int64   // bytes of memory, 0 for none
	IP     string
	User   string   // uid or name, "" for root
	PIDOne bool     // signals without a handler do not reach it
	Init   []string // the command line of the container's first process, for another one
	Stdin  string
	Ports  []int32 // where a program listens of which the image says nothing
}

// Var is an environment variable.
type Var struct{ Name, Value string }

// Mount is a file system, or a part (Sub) of one.
type Mount struct {
	Path, Volume, Sub string
	ReadOnly          bool
}

// Signal is a signal at a time.
type Signal struct {
	At   kernel.Time
	Name string // TERM, QUIT, KILL …
}

// Event is one thing that a process did.
type Event struct {
	At   kernel.Time
	Kind Kind
	Text string // of Out, Err and Log; of Kill the signal
	Port int32  // of Listen and Close
	Code int32  // of Exit
	Why  string // of Exit: "OOMKilled" or ""
}

// Kind is what happened.
type Kind string

// The kinds of event.
const (
	Out    Kind = "stdout"
	Err    Kind = "stderr"
	Log    Kind = "log" // written to the first process's own output by another one
	Listen Kind = "listen"
	Close  Kind = "close" // no longer listens
	Kill   Kind = "kill"  // a signal for the container's first process, from another one
	Exit   Kind = "exit"
)

// World is what a process asks of its surroundings.
type World interface {
	// ReadFile, WriteFile, RemoveFile and ListFiles are a volume's files, by their path in it.
	// A directory that was made is a path with a slash at its end.
	ReadFile(volume, path string) (content string, ok bool)
	WriteFile(volume, path, content string)
	RemoveFile(volume, path string)
	ListFiles(volume string) []string // sorted
	// AnyFile reports whether a path begins with the prefix, CountFiles how many files there are.
	AnyFile(volume, prefix string) bool
	CountFiles(volume string) int
	// Bind takes a port of the network namespace; false: somebody has it.
	Bind(port int32) bool
	// Fetch makes an HTTP request; err is what the system's libraries say.
	Fetch(url string) (code int, body, err string)
	// Resolve looks a name up.
	Resolve(name string) (ip string, ok bool)
}

// Process is a first process and its children.
type Process struct {
	Spec     Spec
	Tasks    []*task // by PID
	Pipes    []pipe
	Signals  []Signal // not yet delivered
	NextPID  int
	NextPipe int
	Ended    bool
}

// firstExecPID is where the numbers begin of a process that is not the container's first.
const firstExecPID = 40

// Start prepares a process. why is what runc says where its command cannot be run.
func Start(spec Spec, now kernel.Time, w World) (p *Process, why string) {
	p = &Process{Spec: spec, NextPID: firstExecPID, NextPipe: 1}
	if spec.PIDOne {
		p.NextPID = 1
	}
	m := &machine{p: p, w: w, now: now}
	t := m.newTask(nil)
	t.At = now
	t.Sh = newShell(spec, t.PID)
	t.Fd = [3]fd{{Kind: fdText, Text: spec.Stdin}, {Kind: fdOut}, {Kind: fdErr}}
	t.push(frame{Op: opStart, Args: spec.Argv})
	return p, m.unrunnable(t, spec.Argv)
}

// Clone returns a copy that shares nothing mutable.
func (p *Process) Clone() *Process {
	c := *p
	c.Signals = slices.Clone(p.Signals)
	c.Pipes = slices.Clone(p.Pipes)
	c.Tasks = make([]*task, len(p.Tasks))
	for i, t := range p.Tasks {
		c.Tasks[i] = t.clone()
	}
	return &c
}

// Signal sends a signal to the first process; Advance tells what it does.
func (p *Process) Signal(name string, now kernel.Time) {
	p.Signals = append(p.Signals, Signal{now, name})
}

// Advance lets the process run up to now. It returns what it did since the last call, in
// order, and when it will next do something by itself (0: never, until a signal comes).
func (p *Process) Advance(now kernel.Time, w World) (events []Event, next kernel.Time) {
	if p.Ended {
		return nil, 0
	}
	m := &machine{p: p, w: w, limit: now}
	m.run()
	if p.Ended {
		p.Tasks, p.Pipes, p.Signals = nil, nil, nil
		return m.events, 0
	}
	for _, t := range p.Tasks {
		at, ok := t.due()
		switch { // what only goes round is looked at now and then
		case ok && t.Laps > lapsFast:
			at = max(at, now.Add(spinLook))
		case ok && t.Laps > lapsFast/20:
			at = max(at, now.Add(time.Millisecond))
		}
		if ok && (next == 0 || at < next) {
			next = at
		}
	}
	if next != 0 && next <= now {
		next = now.Add(time.Millisecond)
	}
	return m.events, next
}

// Duration reads "90s" in data files.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	v, err := time.ParseDuration(string(b[1 : len(b)-1]))
	*d = Duration(v)
	return err
}
