// Package process is what a container runs: an image's program as data (ports, answers,
// log lines, memory over time, how it ends) or a command line, among them shell scripts.
//
// A process is plain data: what it was started with, the signals that it got, and what it
// has read from outside. Looking further means running its command line again from its
// beginning to the new instant, in virtual time: the same inputs give the same events, so
// a process can be copied, hashed and taken back without any state of an interpreter.
//
// The parser is mvdan.cc/sh's; the evaluator is ours, since time inside a script is
// virtual. Left out: job control, here-strings into background jobs, arrays, most options
// of most commands.
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
	// Access is the log line of a request.
	Access string `json:"access,omitempty"`
	// Root is where it takes its files from: a path that exists there is 200, any other 404.
	Root string `json:"root,omitempty"`
	// Index are files that the image has below Root.
	Index []string `json:"index,omitempty"`
	// PortFlag and RootFlag are the flags of its command line that say otherwise.
	PortFlag string `json:"portFlag,omitempty"`
	RootFlag string `json:"rootFlag,omitempty"`
	// Any answers 200 to every path.
	Any bool `json:"any,omitempty"`
	// After it ends by itself, with Exit; never where zero.
	After Duration `json:"after,omitempty"`
	Exit  int32    `json:"exit,omitempty"`
	// Memory is what it uses.
	Memory int64 `json:"memory,omitempty"`
	// Stop is how long it takes to end after its stop signal; negative: it ignores it.
	Stop Duration `json:"stop,omitempty"`
	// Quits lists the signals on which it ends in order, with exit code 0.
	Quits []string `json:"quits,omitempty"`
	// Version is what "NAME -v" prints.
	Version string `json:"version,omitempty"`
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
	Files  map[string]string // path → content
	Mounts []Mount
	Limit  int64 // bytes of memory, 0 for none
	IP     string
	PIDOne bool // signals without a handler do not reach it
	Stdin  string
	Ports  []int32 // containerPorts of the Pod: where an unknown program listens
}

// Var is an environment variable.
type Var struct{ Name, Value string }

// Mount is a directory that is shared with others.
type Mount struct {
	Path, Volume string
	ReadOnly     bool
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
	Text string // of Out, Err, Write
	Port int32  // of Listen
	Path string // of Write and Remove: in a shared directory
	Vol  string
	Code int32  // of Exit
	Why  string // of Exit: "OOMKilled" or ""
}

// Kind is what happened.
type Kind string

// The kinds of event.
const (
	Out    Kind = "stdout"
	Err    Kind = "stderr"
	Listen Kind = "listen"
	Write  Kind = "write"
	Remove Kind = "remove"
	Exit   Kind = "exit"
)

// World is what a process asks of its surroundings.
type World interface {
	// ReadFile reads from a shared directory.
	ReadFile(volume, path string) (content string, ok bool)
	// Fetch makes an HTTP request; err is what the system's libraries say.
	Fetch(url string) (code int, body, err string)
	// Resolve looks a name up.
	Resolve(name string) (ip string, ok bool)
}

// Process is one process and its children.
type Process struct {
	Spec    Spec
	Started kernel.Time
	Signals []Signal
	Seen    []string // answers of the world, in the order in which they were asked for
	Told    int      // events that have been handed out
	Until   kernel.Time
	Ended   bool
	Server  *Program // the program that serves now, nil for none
	Ports   []int32  // on which it listens
	Root    map[string]string
}

// Start begins a process. found is false where its command does not exist.
func Start(spec Spec, now kernel.Time) (p *Process, found bool) {
	p = &Process{Spec: spec, Started: now, Until: now}
	if len(spec.Argv) == 0 {
		return p, false
	}
	m := &machine{p: p}
	return p, m.exists(spec.Argv[0])
}

// Clone returns a copy that shares nothing mutable.
func (p *Process) Clone() *Process {
	c := *p
	c.Signals = slices.Clone(p.Signals)
	c.Seen = slices.Clone(p.Seen)
	c.Ports = slices.Clone(p.Ports)
	return &c
}

// Signal sends a signal; Advance tells what it does.
func (p *Process) Signal(name string, now kernel.Time) {
	p.Signals = append(p.Signals, Signal{now, name})
}

// eventsMax bounds what one process may do altogether.
const eventsMax = 20_000

// Advance lets the process run up to now. It returns what it did since the last call and
// when it will next do something by itself (0: never, until a signal comes).
func (p *Process) Advance(now kernel.Time, w World) (events []Event, next kernel.Time) {
	if p.Ended {
		return nil, 0
	}
	m := newMachine(p, w, now)
	wake := m.run()
	slices.SortStableFunc(m.events, func(a, b Event) int { return int(a.At - b.At) })
	p.Until = now
	p.Server, p.Ports = m.server, m.ports
	if p.Told < len(m.events) {
		events = slices.Clone(m.events[p.Told:])
		p.Told = len(m.events)
	}
	for _, e := range events {
		if e.Kind == Exit {
			p.Ended, p.Server, p.Ports = true, nil, nil
			return events, 0
		}
	}
	if wake != 0 && wake <= now {
		wake = now.Add(time.Millisecond)
	}
	return events, wake
}

// Duration reads "90s" in data files.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	v, err := time.ParseDuration(string(b[1 : len(b)-1]))
	*d = Duration(v)
	return err
}
