package process

import (
	"strings"
)

// builtins are part of the shell itself.
var builtins map[string]func(m *machine, args []string) int

func init() { builtins = shellBuiltins() }

func shellBuiltins() map[string]func(m *machine, args []string) int {
	return map[string]func(m *machine, args []string) int{
		"exit": func(m *machine, a []string) int { m.exit(number1(a, m.status)); return 0 },
		"cd": func(m *machine, a []string) int {
			if len(a) > 1 {
				m.dir = m.abs(a[1])
			} else {
				m.dir = "/root"
			}
			return 0
		},
		"set": succeed, "shift": shift, "eval": func(m *machine, a []string) int { return m.script(strings.Join(a[1:], " ")) },
		"trap":     trap,
		"wait":     func(m *machine, _ []string) int { m.wait(); return 0 },
		"break":    func(m *machine, a []string) int { m.loop, m.cont = number1(a, 1), false; return 0 },
		"continue": func(m *machine, a []string) int { m.loop, m.cont = number1(a, 1), true; return 0 },
		"return":   func(m *machine, a []string) int { m.status = number1(a, m.status); m.ret = true; return m.status },
		"unset": func(m *machine, a []string) int {
			for _, n := range a[1:] {
				delete(m.vars, n)
			}
			return 0
		},
		"read": read, "export": succeed, ".": source, "source": source, "umask": succeed, "ulimit": succeed, "command": command,
		"exec": func(m *machine, a []string) int {
			if len(a) > 1 {
				m.traps, m.shell = map[string]string{}, false
				panic(exited{code: int32(m.command(a[1:]) & 255)})
			}
			return 0
		},
	}
}

func command(m *machine, a []string) int {
	if len(a) > 2 && (a[1] == "-v" || a[1] == "-V") {
		if m.exists(a[2]) {
			m.stdout(a[2] + "\n")
			return 0
		}
		return 127
	}
	if len(a) > 1 {
		return m.command(a[1:])
	}
	return 0
}

func trap(m *machine, args []string) int {
	if len(args) < 3 {
		return 0
	}
	for _, s := range args[2:] {
		s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
		switch s {
		case "0":
			s = "EXIT"
		case "15":
			s = "TERM"
		case "2":
			s = "INT"
		case "3":
			s = "QUIT"
		}
		if args[1] == "-" {
			delete(m.traps, s)
		} else {
			m.traps[s] = args[1]
		}
	}
	return 0
}

func shift(m *machine, args []string) int {
	n := min(number1(args, 1), len(m.params))
	m.params = m.params[n:]
	return 0
}

func read(m *machine, args []string) int {
	line, rest, found := strings.Cut(m.stdin, "\n")
	m.stdin = rest
	if !found && line == "" {
		return 1
	}
	var names []string
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			names = append(names, a)
		}
	}
	fields := strings.Fields(line)
	for i, n := range names {
		switch {
		case i >= len(fields):
			m.vars[n] = ""
		case i == len(names)-1:
			m.vars[n] = strings.Join(fields[i:], " ")
		default:
			m.vars[n] = fields[i]
		}
	}
	return 0
}

func source(m *machine, args []string) int {
	if len(args) < 2 {
		return 2
	}
	text, ok := m.read(args[1])
	if !ok {
		m.stderr("sh: .: can't open '" + args[1] + "': No such file or directory\n")
		return 2
	}
	return m.script(text)
}
