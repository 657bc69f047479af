package process

import (
	"slices"
	"strings"
)

// builtins are part of the shell itself. Those that take time are commands (tools).
var builtins map[string]func(m *machine, t *task, args []string)

func init() { builtins = shellBuiltins() }

func shellBuiltins() map[string]func(m *machine, t *task, args []string) {
	ok := func(_ *machine, t *task, _ []string) { t.Status = 0 }
	return map[string]func(m *machine, t *task, args []string){
		":": ok, "umask": ok, "ulimit": ok, "hash": ok, "alias": ok, "jobs": ok,
		"exit":     func(m *machine, t *task, a []string) { m.finish(t, number(arg(a, 1), t.Status)) },
		"cd":       cd,
		"set":      set,
		"shift":    shift,
		"eval":     func(m *machine, t *task, a []string) { t.Status = 0; m.script(t, strings.Join(a[1:], " ")) },
		"trap":     trap,
		"break":    leave,
		"continue": leave,
		"return":   ret,
		"unset":    unset,
		"export":   export, "readonly": export, "declare": export, "local": local,
		".": source, "source": source,
		"command": command,
		"exec":    execute,
		"wait":    func(m *machine, t *task, a []string) { t.push(frame{Op: opLeaf, Args: a}) },
		"read":    func(m *machine, t *task, a []string) { t.push(frame{Op: opLeaf, Args: a}) },
		"type":    func(m *machine, t *task, a []string) { command(m, t, []string{"command", "-v", arg(a, 1)}) },
	}
}

func arg(args []string, i int) string {
	if i >= 0 && i < len(args) {
		return args[i]
	}
	return ""
}

func cd(m *machine, t *task, a []string) {
	to := arg(a, 1)
	switch to {
	case "":
		to = t.Sh.Vars["HOME"]
	case "-":
		to = t.Sh.Vars["OLDPWD"]
	}
	if to = t.abs(to); !nameFits(to) {
		m.write(t, 2, "sh: cd: can't cd to "+arg(a, 1)+": File name too long\n")
		t.Status = 2
		return
	}
	if !m.isDir(to) {
		m.write(t, 2, "sh: cd: can't cd to "+arg(a, 1)+": No such file or directory\n")
		t.Status = 2
		return
	}
	t.Sh.Vars["OLDPWD"], t.Sh.Dir, t.Status = t.Sh.Dir, to, 0
}

func set(_ *machine, t *task, a []string) {
	t.Status = 0
	for i, o := range a[1:] {
		on := strings.HasPrefix(o, "-")
		if o == "--" || !on && !strings.HasPrefix(o, "+") {
			rest := a[1+i:]
			if o == "--" {
				rest = rest[1:]
			}
			t.Sh.Params = slices.Clone(rest)
			return
		}
		for _, c := range o[1:] {
			switch c {
			case 'e':
				t.Sh.ErrExit = on
			case 'x':
				t.Sh.Trace = on
			case 'u':
				t.Sh.NoUnset = on
			case 'o': // -o pipefail, errexit …: its name is the next word
				if arg(a, i+2) == "errexit" {
					t.Sh.ErrExit = on
				}
				return
			}
		}
	}
}

func shift(_ *machine, t *task, a []string) {
	n := number(arg(a, 1), 1)
	t.Status = 0
	if n < 0 || n > len(t.Sh.Params) {
		t.Status = 1
		return
	}
	t.Sh.Params = t.Sh.Params[n:]
}

func trap(_ *machine, t *task, a []string) {
	t.Status = 0
	if len(a) < 3 {
		return
	}
	for _, s := range a[2:] {
		s = signalName(s)
		if a[1] == "-" {
			delete(t.Sh.Traps, s)
		} else {
			t.Sh.Traps[s] = a[1]
		}
	}
}

// signalName spells a signal as the machine does: TERM for SIGTERM and 15.
func signalName(s string) string {
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if s == "0" {
		return "EXIT"
	}
	n := number(s, 0)
	for name, i := range signalNumbers {
		if i == n {
			return name
		}
	}
	return s
}

// leave is break and continue.
func leave(_ *machine, t *task, a []string) {
	t.Status = 0
	var f *frame
	for range max(1, number(arg(a, 1), 1)) {
		inner := f
		g, ok := t.unwind(func(x *frame) bool { return isLoop(x) && x != inner })
		if !ok {
			break
		}
		if inner != nil && g == inner {
			break
		}
		f = g
	}
	if f != nil && a[0] == "break" {
		t.pop()
	}
}

// ret is return: it leaves a function, or a script that was sourced.
func ret(m *machine, t *task, a []string) {
	status := number(arg(a, 1), t.Status)
	if _, ok := t.unwind(func(f *frame) bool { return f.Op == opFunc || f.Op == opSource }); !ok {
		m.finish(t, status)
		return
	}
	t.pop()
	t.Status = status
}

func unset(_ *machine, t *task, a []string) {
	t.Status = 0
	for _, n := range a[1:] {
		delete(t.Sh.Vars, n)
		delete(t.Sh.Export, n)
		delete(t.Sh.Funcs, n)
	}
}

// export comes here only where the parser has not taken it for a declaration.
func export(_ *machine, t *task, a []string) {
	t.Status = 0
	for _, w := range a[1:] {
		if name, value, ok := strings.Cut(w, "="); ok {
			t.set(name, value)
			t.Sh.Export[name] = true
		}
	}
}

// local gives a function variables of its own.
func local(_ *machine, t *task, a []string) {
	t.Status = 0
	for _, w := range a[1:] {
		name, value, given := strings.Cut(w, "=")
		t.keepInFunction(name)
		if given {
			t.set(name, value)
		}
	}
}

// keepInFunction lets the function that runs put a variable back at its end.
func (t *task) keepInFunction(name string) {
	for i := len(t.Frames) - 1; i >= 0; i-- {
		if f := &t.Frames[i]; f.Op == opFunc {
			f.Saved = append(slices.Clip(f.Saved), t.keep(name))
			return
		}
	}
}

func source(m *machine, t *task, a []string) {
	text, ok := m.readFile(t, arg(a, 1))
	if !ok {
		m.write(t, 2, "sh: .: can't open '"+arg(a, 1)+"': No such file or directory\n")
		m.finish(t, 2)
		return
	}
	t.Status = 0
	t.push(frame{Op: opSource})
	m.script(t, text)
}

func command(m *machine, t *task, a []string) {
	switch {
	case len(a) > 2 && (a[1] == "-v" || a[1] == "-V"):
		_, builtin := builtins[a[2]]
		_, function := t.Sh.Funcs[a[2]]
		t.Status = 0
		switch {
		case builtin || function:
			m.write(t, 1, a[2]+"\n")
		case m.unrunnable(t, a[2:3]) == "":
			m.write(t, 1, where(a[2])+"\n")
		default:
			t.Status = 127
		}
	case len(a) > 1:
		if b, ok := builtins[a[1]]; ok {
			b(m, t, a[1:])
			return
		}
		m.external(t, a[1:])
	}
}

func where(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "/bin/" + name
}

// execute puts a command in the shell's place.
func execute(m *machine, t *task, a []string) {
	t.Status = 0
	if len(a) < 2 {
		return
	}
	fds := t.Fd
	for len(t.Frames) > 0 {
		t.pop()
	}
	t.Fd, t.Shell, t.Pending = fds, false, nil
	t.Sh.Traps = map[string]string{}
	m.external(t, a[1:])
}
