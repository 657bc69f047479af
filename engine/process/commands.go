package process

import (
	"path"
	"sort"
	"strconv"
	"strings"
	"time"
)

// tools are the commands that an image with a shell has, busybox's and coreutils'.
var tools map[string]func(m *machine, args []string) int

func init() {
	tools = map[string]func(*machine, []string) int{
		"sh": shellCommand, "bash": shellCommand, "ash": shellCommand,
		"sleep": sleep, "echo": echo, "printf": printf, "cat": cat, "true": succeed, ":": succeed, "false": fail,
		"env": env, "printenv": env, "date": date, "touch": touch, "rm": rm, "mkdir": succeed, "ls": ls, "test": test, "[": test,
		"hostname": hostname, "id": id, "whoami": whoami, "grep": grep, "seq": seq, "tail": tail, "head": head, "wc": wc,
		"kill": kill, "wget": fetch, "curl": fetch, "nslookup": nslookup, "pwd": pwd, "ps": ps, "yes": yes, "tee": tee,
		"chmod": succeed, "chown": succeed, "ln": succeed, "cp": cp, "mv": mv, "timeout": timeout, "nc": nc, "uname": uname, "sort": sortLines, "basename": basename,
	}
}

func number1(args []string, otherwise int) int {
	if len(args) > 1 {
		if n, err := strconv.Atoi(args[1]); err == nil {
			return n
		}
	}
	return otherwise
}

// program returns an image's own program by its command.
func (m *machine) program(name string) *Program {
	base := path.Base(name)
	for i := range m.p.Spec.Image {
		if m.p.Spec.Image[i].Name == base {
			return &m.p.Spec.Image[i]
		}
	}
	return nil
}

// wrapper reports whether a command is an image's entrypoint script, which prepares things
// and then becomes the command that follows it.
func wrapper(name string) bool { return strings.HasSuffix(name, "docker-entrypoint.sh") }

// exists reports whether a command can be found.
func (m *machine) exists(name string) bool {
	if wrapper(name) {
		return true
	}
	if m.program(name) != nil {
		return true
	}
	if strings.Contains(name, "/") {
		if _, ok := m.files[m.abs(name)]; ok {
			return true
		}
		if _, _, shared := m.mount(m.abs(name)); shared {
			return true
		}
		dir := path.Dir(name)
		if dir != "/bin" && dir != "/usr/bin" && dir != "/usr/local/bin" && dir != "/sbin" && dir != "/usr/sbin" {
			return false
		}
	}
	_, ok := tools[path.Base(name)]
	return ok && m.p.Spec.Tools
}

// command runs one command with its arguments and returns its status.
func (m *machine) command(args []string) int {
	if m.steps++; m.steps > stepsMax {
		panic(suspend{0})
	}
	name := args[0]
	if f, ok := m.funcs[name]; ok {
		was := m.params
		m.params = args[1:]
		m.stmt(f)
		m.params, m.ret = was, false
		return m.status
	}
	if m.shell {
		if b, ok := builtin(name); ok {
			return b(m, args)
		}
	}
	m.pass(commandTime, false)
	if wrapper(name) && len(args) > 1 {
		return m.command(args[1:])
	}
	if p := m.program(name); p != nil {
		if len(args) > 1 && (args[1] == "-v" || args[1] == "-V" || args[1] == "--version") && p.Version != "" {
			m.stderr(p.Version + "\n")
			return 0
		}
		return m.serve(p.withFlags(args[1:]))
	}
	if strings.Contains(name, "/") {
		if text, ok := m.read(name); ok && m.p.Spec.Tools {
			return m.nested(text, args[1:])
		}
	}
	if f, ok := tools[path.Base(name)]; ok && m.p.Spec.Tools {
		return f(m, args)
	}
	m.stderr("sh: " + name + ": not found\n")
	return 127
}

func builtin(name string) (func(*machine, []string) int, bool) {
	b, ok := builtins[name]
	return b, ok
}

// nested runs a script as a program of its own.
func (m *machine) nested(text string, params []string) int {
	was, wasShell, wasFuncs := m.params, m.shell, m.funcs
	m.params, m.shell = params, true
	defer func() { m.params, m.shell, m.funcs = was, wasShell, wasFuncs }()
	if !wasShell { // PID 1 is this shell
		return m.script(text)
	}
	m.subshell(func() { m.script(text) })
	return m.status
}

func shellCommand(m *machine, args []string) int {
	for i := 1; i < len(args); i++ {
		a := args[i]
		if strings.HasPrefix(a, "-") && strings.Contains(a, "c") && i+1 < len(args) {
			params := []string{}
			if i+3 <= len(args)-1 {
				params = args[i+3:]
			}
			return m.nested(args[i+1], params)
		}
		if !strings.HasPrefix(a, "-") {
			text, ok := m.read(a)
			if !ok {
				m.stderr("sh: can't open '" + a + "': No such file or directory\n")
				return 2
			}
			return m.nested(text, args[i+1:])
		}
	}
	if m.stdin != "" {
		return m.nested(m.stdin, nil)
	}
	return 0 // a shell without a terminal reads the end of its input and ends
}

func succeed(*machine, []string) int { return 0 }
func fail(*machine, []string) int    { return 1 }

func sleep(m *machine, args []string) int {
	total := time.Duration(0)
	for _, a := range args[1:] {
		if a == "infinity" || a == "inf" {
			m.forever()
		}
		unit := time.Second
		switch a[len(a)-1] {
		case 'm':
			unit = time.Minute
		case 'h':
			unit = time.Hour
		case 'd':
			unit = 24 * time.Hour
		}
		f, err := strconv.ParseFloat(strings.TrimRight(a, "smhd"), 64)
		if err != nil || f < 0 {
			m.stderr("sleep: invalid number '" + a + "'\n")
			return 1
		}
		total += time.Duration(f * float64(unit))
	}
	m.pass(total, false)
	return 0
}

func echo(m *machine, args []string) int {
	args = args[1:]
	newline, escapes := "\n", false
	for len(args) > 0 && (args[0] == "-n" || args[0] == "-e" || args[0] == "-ne" || args[0] == "-en") {
		if strings.Contains(args[0], "n") {
			newline = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		text = escaped(text)
	}
	m.stdout(text + newline)
	return 0
}

func escaped(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(s)
}

func printf(m *machine, args []string) int {
	if len(args) < 2 {
		return 1
	}
	format, rest := escaped(args[1]), args[2:]
	for {
		var b strings.Builder
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			if format[i] == '%' {
				b.WriteByte('%')
				continue
			}
			arg := ""
			if len(rest) > 0 {
				arg, rest = rest[0], rest[1:]
			}
			b.WriteString(arg)
		}
		m.stdout(b.String())
		if len(rest) == 0 || !strings.Contains(format, "%") {
			return 0
		}
	}
}

func cat(m *machine, args []string) int {
	if len(args) == 1 {
		m.stdout(m.stdin)
		return 0
	}
	status := 0
	for _, f := range args[1:] {
		text, ok := m.read(f)
		if !ok {
			m.stderr("cat: can't open '" + f + "': No such file or directory\n")
			status = 1
			continue
		}
		m.stdout(text)
	}
	return status
}

func env(m *machine, args []string) int {
	if args[0] == "printenv" && len(args) > 1 {
		v, ok := m.vars[args[1]]
		if !ok {
			return 1
		}
		m.stdout(v + "\n")
		return 0
	}
	names := make([]string, 0, len(m.export))
	for n := range m.export {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		m.stdout(n + "=" + m.vars[n] + "\n")
	}
	return 0
}

func date(m *machine, args []string) int {
	t := m.now.Wall().UTC()
	format := "Mon Jan _2 15:04:05 UTC 2006"
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "+") {
			format = strings.NewReplacer("%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%T", "15:04:05", "%F", "2006-01-02").Replace(a[1:])
			if strings.Contains(a, "%s") {
				format = strings.ReplaceAll(format, "%s", strconv.FormatInt(t.Unix(), 10))
			}
		}
	}
	m.stdout(t.Format(format) + "\n")
	return 0
}

func hostname(m *machine, args []string) int {
	if len(args) > 1 && args[1] == "-i" {
		m.stdout(m.p.Spec.IP + "\n")
		return 0
	}
	m.stdout(m.p.Spec.Hostname + "\n")
	return 0
}

func id(m *machine, _ []string) int     { m.stdout("uid=0(root) gid=0(root) groups=0(root)\n"); return 0 }
func whoami(m *machine, _ []string) int { m.stdout("root\n"); return 0 }
func pwd(m *machine, _ []string) int    { m.stdout(m.dir + "\n"); return 0 }
func uname(m *machine, _ []string) int  { m.stdout("Linux\n"); return 0 }

func ps(m *machine, _ []string) int {
	m.stdout("PID   USER     TIME  COMMAND\n    1 root      0:00 " + strings.Join(m.p.Spec.Argv, " ") + "\n")
	return 0
}

func yes(m *machine, _ []string) int {
	m.forever()
	return 0
}

func kill(m *machine, args []string) int {
	signal := "TERM"
	for _, a := range args[1:] {
		if s, ok := strings.CutPrefix(a, "-"); ok {
			s = strings.TrimPrefix(s, "SIG")
			for _, n := range []string{"HUP", "INT", "QUIT", "KILL", "TERM"} {
				if s == n || s == strconv.Itoa(int(number(n))) {
					signal = n
				}
			}
			continue
		}
		if a == "1" || a == "$$" {
			m.signals = append([]Signal{{m.now, signal}}, m.signals...)
		}
	}
	return 0
}

func timeout(m *machine, args []string) int {
	if len(args) < 3 {
		return 1
	}
	d, err := strconv.ParseFloat(strings.TrimRight(args[1], "s"), 64)
	if err != nil {
		return 1
	}
	end := m.now.Add(time.Duration(d * float64(time.Second)))
	limit := m.limit
	m.limit = min(limit, end)
	status, cut := m.bounded(args[2:])
	m.limit = limit
	if !cut {
		return status
	}
	if end > limit {
		panic(suspend{end})
	}
	m.now = end
	return 143
}

// bounded runs a command until the limit.
func (m *machine) bounded(args []string) (status int, cut bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(suspend); !ok {
				panic(r)
			}
			cut = true
		}
	}()
	return m.command(args), false
}
