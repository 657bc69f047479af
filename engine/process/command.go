package process

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// call is a command while it runs.
type call struct {
	m    *machine
	t    *task
	f    *frame
	args []string
}

// tool is a command. It is called again and again until it is done; what it remembers
// between two calls is in its frame.
type tool func(c *call) (status int, done bool)

// at once makes a tool of a command that takes no time of its own.
func once(f func(c *call) int) tool { return func(c *call) (int, bool) { return f(c), true } }

func (c *call) out(s string) { c.m.write(c.t, 1, s) }
func (c *call) err(s string) { c.m.write(c.t, 2, s) }

// sleep lets time pass until the tool is called again.
func (c *call) sleep(d time.Duration) {
	c.t.At = c.t.At.Add(d)
	if d >= 10*time.Millisecond {
		c.t.Laps = 0
	}
}

// more reads what there is of standard input; ok is false where the tool has to come back
// because there is nothing yet.
func (c *call) more() (text string, eof, ok bool) {
	text, eof = c.m.read(c.t)
	if text == "" && !eof {
		c.t.wait(blockPipe, c.t.Fd[0].Pipe)
		return "", false, false
	}
	return text, eof, true
}

// all reads standard input to its end.
func (c *call) all() (text string, ok bool) {
	for {
		text, eof, ok := c.more()
		if !ok {
			return "", false
		}
		c.f.Text += text
		if eof {
			return c.f.Text, true
		}
	}
}

// file reads a file by its name as it was given.
func (c *call) file(name string) (string, bool) { return c.m.readFile(c.t, name) }

// options splits arguments into flags and the rest. Flags of withValue take the next word.
func (c *call) options(withValue string) (flags string, values map[byte]string, rest []string) {
	values = map[byte]string{}
	for i := 1; i < len(c.args); i++ {
		a := c.args[i]
		if a == "--" {
			return flags, values, append(rest, c.args[i+1:]...)
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			continue
		}
		if strings.HasPrefix(a, "--") {
			continue
		}
		for j := 1; j < len(a); j++ {
			flags += a[j : j+1]
			if strings.IndexByte(withValue, a[j]) < 0 {
				continue
			}
			switch {
			case j+1 < len(a):
				values[a[j]] = a[j+1:]
			case i+1 < len(c.args):
				i++
				values[a[j]] = c.args[i]
			}
			break
		}
	}
	return flags, values, rest
}

// leaf runs a command for one more step.
func (m *machine) leaf(t *task, f *frame) {
	c := &call{m, t, f, f.Args}
	status, done := 0, true
	if f.Code.Program != nil {
		status, done = serve(c, f.Code.Program)
	} else {
		status, done = tools[path.Base(f.Args[0])](c)
	}
	if !done || t.Done {
		return
	}
	broken := t.Broken
	t.Broken = false
	t.Status = status
	if broken {
		t.Status = 141
	}
	t.pop()
}

// program returns an image's own program by its command.
func (m *machine) program(name string) *Program {
	for i := range m.p.Spec.Image {
		if m.p.Spec.Image[i].Name == path.Base(name) {
			return &m.p.Spec.Image[i]
		}
	}
	return nil
}

// wrapper reports whether a command is an image's entrypoint script, which prepares things
// and then becomes the command that follows it.
func wrapper(name string) bool { return strings.HasSuffix(name, "docker-entrypoint.sh") }

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "ash", "dash"}, path.Base(name))
}

// binDirs are where commands are.
var binDirs = []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}

// unrunnable says why a command cannot be run, as runc does; "" where it can.
func (m *machine) unrunnable(t *task, args []string) (why string) {
	if len(args) == 0 {
		return "no command specified"
	}
	name := args[0]
	if m.known(name) {
		return ""
	}
	if !strings.Contains(name, "/") {
		return fmt.Sprintf("exec: %q: executable file not found in $PATH", name)
	}
	p := t.abs(name)
	text, there := m.readAbs(p)
	switch {
	case !there && m.isDir(p):
		return fmt.Sprintf("exec: %q: is a directory", name)
	case !there:
		return fmt.Sprintf("exec: %q: stat %s: no such file or directory", name, name)
	case !strings.HasPrefix(text, "#!"):
		return fmt.Sprintf("exec: %q: permission denied", name)
	}
	return ""
}

// known reports whether a command is one of the image's own.
func (m *machine) known(name string) bool {
	if strings.Contains(name, "/") && !wrapper(name) && !slices.Contains(binDirs, path.Dir(name)) {
		return false
	}
	if wrapper(name) || m.program(name) != nil {
		return true
	}
	_, ok := tools[path.Base(name)]
	return (ok || isShell(name)) && m.p.Spec.Tools && !hidden[path.Base(name)]
}

// tooLong reports whether the kernel refuses what a program is to be started with: E2BIG.
func (m *machine) tooLong(args []string, env []Var) bool {
	total, long := 0, false
	add := func(n int) {
		total += n + 1 + 8 // its end and a pointer to it
		long = long || n+1 > stringMax
	}
	for _, a := range args {
		add(len(a))
	}
	for _, v := range env {
		add(len(v.Name) + 1 + len(v.Value))
	}
	return long || total > stringsMax
}

// external runs a program in a task: as the last thing that it does, or between two
// statements of its script.
func (m *machine) external(t *task, args []string) {
	t.At = t.At.Add(commandTime)
	name := args[0]
	if m.tooLong(args, nil) {
		m.write(t, 2, t.Sh.Name+": "+name+": Argument list too long\n")
		t.Status = 126
		return
	}
	if why := m.unrunnable(t, args); why != "" {
		status, text := 127, "not found"
		if strings.HasSuffix(why, "permission denied") || strings.HasSuffix(why, "is a directory") {
			status, text = 126, "Permission denied"
		}
		m.write(t, 2, t.Sh.Name+": "+name+": "+text+"\n")
		t.Status = status
		return
	}
	switch pr := m.program(name); {
	case wrapper(name) && len(args) > 1:
		m.external(t, args[1:])
		return
	case wrapper(name):
		t.Status = 0
		return
	case pr != nil && m.known(name):
		m.runProgram(t, pr, args)
		return
	case !m.known(name): // a script that names its interpreter
		m.shell(t, append([]string{"sh", name}, args[1:]...))
		return
	case isShell(name):
		m.shell(t, args)
		return
	}
	switch path.Base(name) {
	case "env":
		if rest, ok := m.environment(t, args); ok {
			m.external(t, rest)
			return
		}
	case "nohup", "exec", "nice", "setsid":
		if len(args) > 1 {
			m.external(t, args[1:])
			return
		}
	}
	t.push(frame{Op: opLeaf, Args: args})
}

// environment is "env NAME=VALUE … COMMAND": the frame on top puts the variables back.
func (m *machine) environment(t *task, args []string) (rest []string, ok bool) {
	i := 1
	for ; i < len(args) && (strings.Contains(args[i], "=") || strings.HasPrefix(args[i], "-")); i++ {
	}
	if i == len(args) {
		return nil, false
	}
	f := frame{Op: opSource}
	for _, a := range args[1:i] {
		if name, value, is := strings.Cut(a, "="); is {
			f.Saved = append(f.Saved, t.keep(name))
			t.set(name, value)
			t.Sh.Export[name] = true
		}
	}
	t.push(f)
	return args[i:], true
}

// shell runs "sh …": in the task itself where it has nothing else to do, or else in one of
// its own.
func (m *machine) shell(t *task, args []string) {
	sh := newShell(m.p.Spec, t.PID)
	sh.Vars, sh.Export, sh.Dir = map[string]string{}, map[string]bool{}, t.Sh.Dir
	for name := range t.Sh.Export {
		sh.Vars[name], sh.Export[name] = t.Sh.Vars[name], true
	}
	for name, action := range t.Sh.Traps {
		if action == "" {
			sh.Traps[name] = ""
		}
	}
	text, ok := "", true
	i := 1
	for ; i < len(args) && strings.HasPrefix(args[i], "-") && len(args[i]) > 1; i++ {
		flags := args[i][1:]
		sh.ErrExit = sh.ErrExit || strings.Contains(flags, "e")
		sh.Trace = sh.Trace || strings.Contains(flags, "x")
		sh.NoUnset = sh.NoUnset || strings.Contains(flags, "u")
		if flags == "o" {
			i++
		}
		if strings.Contains(flags, "c") {
			i++
			if text = arg(args, i); i+1 < len(args) {
				sh.Name, sh.Params = args[i+1], args[i+2:]
			}
			m.newShellTask(t, sh, text, true, args)
			return
		}
	}
	if i < len(args) {
		if text, ok = m.readFile(t, args[i]); !ok {
			m.write(t, 2, "sh: can't open '"+args[i]+"': "+notThere+"\n")
			t.Status = 2
			return
		}
		sh.Name, sh.Params = args[i], args[i+1:]
		m.newShellTask(t, sh, text, true, args)
		return
	}
	m.newShellTask(t, sh, "", false, args) // it reads its input
}

func (m *machine) newShellTask(t *task, sh shell, text string, given bool, args []string) {
	inner := t
	if t.Shell {
		child, ok := m.fork(t)
		if !ok {
			return
		}
		inner = child
		m.await(t, child.PID)
	}
	inner.Shell, inner.Simple, inner.Argv = true, false, args
	sh.PID = inner.PID
	inner.Sh = sh
	inner.Status = 0
	if given {
		m.script(inner, text)
		return
	}
	inner.push(frame{Op: opLeaf, Args: []string{"sh"}})
}
