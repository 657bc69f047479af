package process

import (
	"fmt"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"podwalk/engine/kernel"
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
		"chmod": succeed, "chown": succeed, "ln": succeed, "cp": cp, "mv": mv, "timeout": timeout, "nc": nc, "uname": uname,
	}
}

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
		return m.serve(p)
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

func touch(m *machine, args []string) int {
	for _, f := range args[1:] {
		if strings.HasPrefix(f, "-") {
			continue
		}
		if _, ok := m.read(f); ok {
			continue
		}
		if err := m.write(f, ""); err != nil {
			m.stderr("touch: " + f + ": " + err.Error() + "\n")
			return 1
		}
	}
	return 0
}

func rm(m *machine, args []string) int {
	force, status := false, 0
	for _, f := range args[1:] {
		if strings.HasPrefix(f, "-") {
			force = force || strings.Contains(f, "f")
			continue
		}
		if !m.remove(f) && !force {
			m.stderr("rm: can't remove '" + f + "': No such file or directory\n")
			status = 1
		}
	}
	return status
}

func cp(m *machine, args []string) int { return copyFile(m, args, false) }
func mv(m *machine, args []string) int { return copyFile(m, args, true) }

func copyFile(m *machine, args []string, move bool) int {
	var files []string
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			files = append(files, a)
		}
	}
	if len(files) != 2 {
		return 1
	}
	text, ok := m.read(files[0])
	if !ok {
		m.stderr(args[0] + ": can't stat '" + files[0] + "': No such file or directory\n")
		return 1
	}
	to := files[1]
	if m.isDir(to) {
		to += "/" + path.Base(files[0])
	}
	if err := m.write(to, text); err != nil {
		m.stderr(args[0] + ": can't create '" + to + "': " + err.Error() + "\n")
		return 1
	}
	if move {
		m.remove(files[0])
	}
	return 0
}

func ls(m *machine, args []string) int {
	dir := m.dir
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			dir = m.abs(a)
		}
	}
	if _, ok := m.read(dir); ok {
		m.stdout(dir + "\n")
		return 0
	}
	seen := map[string]bool{}
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for f := range m.files {
		if rest, ok := strings.CutPrefix(f, prefix); ok {
			name, _, _ := strings.Cut(rest, "/")
			seen[name] = true
		}
	}
	if len(seen) == 0 && !m.isDir(dir) {
		m.stderr("ls: " + dir + ": No such file or directory\n")
		return 1
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		m.stdout(n + "\n")
	}
	return 0
}

func test(m *machine, args []string) int {
	args = args[1:]
	if n := len(args); n > 0 && args[n-1] == "]" {
		args = args[:n-1]
	}
	ok, good := m.condition(args)
	if !good {
		return 2
	}
	return btoi(!ok)
}

// condition evaluates the arguments of test.
func (m *machine) condition(a []string) (ok, good bool) {
	switch {
	case len(a) == 0:
		return false, true
	case a[0] == "!":
		ok, good = m.condition(a[1:])
		return !ok, good
	case len(a) == 1:
		return a[0] != "", true
	case len(a) == 2:
		switch a[0] {
		case "-n":
			return a[1] != "", true
		case "-z":
			return a[1] == "", true
		case "-f", "-e", "-r", "-s", "-x":
			text, found := m.read(a[1])
			if a[0] == "-s" {
				return found && text != "", true
			}
			return found || a[0] != "-f" && m.isDir(a[1]), true
		case "-d":
			return m.isDir(a[1]), true
		}
		return false, false
	}
	for i, w := range a {
		if w == "-a" || w == "-o" {
			l, g1 := m.condition(a[:i])
			r, g2 := m.condition(a[i+1:])
			if w == "-a" {
				return l && r, g1 && g2
			}
			return l || r, g1 && g2
		}
	}
	x, op, y := a[0], a[1], a[2]
	switch op {
	case "=", "==":
		return x == y, true
	case "!=":
		return x != y, true
	}
	n1, e1 := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
	n2, e2 := strconv.ParseInt(strings.TrimSpace(y), 10, 64)
	if e1 != nil || e2 != nil {
		m.stderr("sh: " + x + ": bad number\n")
		return false, false
	}
	switch op {
	case "-eq":
		return n1 == n2, true
	case "-ne":
		return n1 != n2, true
	case "-lt":
		return n1 < n2, true
	case "-le":
		return n1 <= n2, true
	case "-gt":
		return n1 > n2, true
	case "-ge":
		return n1 >= n2, true
	}
	return false, false
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

func grep(m *machine, args []string) int {
	quiet, invert, fold := false, false, false
	var rest []string
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") && len(a) > 1 {
			quiet = quiet || strings.Contains(a, "q")
			invert = invert || strings.Contains(a, "v")
			fold = fold || strings.Contains(a, "i")
			continue
		}
		rest = append(rest, a)
	}
	if len(rest) == 0 {
		return 2
	}
	text := m.stdin
	if len(rest) > 1 {
		t, ok := m.read(rest[1])
		if !ok {
			m.stderr("grep: " + rest[1] + ": No such file or directory\n")
			return 2
		}
		text = t
	}
	found := 1
	for _, line := range lines(text) {
		a, b := line, rest[0]
		if fold {
			a, b = strings.ToLower(a), strings.ToLower(b)
		}
		if strings.Contains(a, b) != invert {
			found = 0
			if !quiet {
				m.stdout(line + "\n")
			}
		}
	}
	return found
}

func lines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

func seq(m *machine, args []string) int {
	from, to := 1, number1(args, 0)
	if len(args) > 2 {
		from = to
		to, _ = strconv.Atoi(args[2])
	}
	for i := from; i <= to && i < from+100_000; i++ {
		m.stdout(strconv.Itoa(i) + "\n")
	}
	return 0
}

func tail(m *machine, args []string) int {
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") && strings.ContainsAny(a, "fF") {
			m.forever()
		}
	}
	return some(m, args, func(l []string, n int) []string { return l[max(0, len(l)-n):] })
}

func head(m *machine, args []string) int {
	return some(m, args, func(l []string, n int) []string { return l[:min(n, len(l))] })
}

func some(m *machine, args []string, pick func([]string, int) []string) int {
	n, text := 10, m.stdin
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-n" && i+1 < len(args):
			n, _ = strconv.Atoi(strings.TrimLeft(args[i+1], "+-"))
			i++
		case strings.HasPrefix(a, "-"):
			if v, err := strconv.Atoi(strings.TrimLeft(a, "-n")); err == nil {
				n = v
			}
		default:
			t, ok := m.read(a)
			if !ok {
				m.stderr(args[0] + ": " + a + ": No such file or directory\n")
				return 1
			}
			text = t
		}
	}
	for _, l := range pick(lines(text), n) {
		m.stdout(l + "\n")
	}
	return 0
}

func wc(m *machine, args []string) int {
	m.stdout(strconv.Itoa(len(lines(m.stdin))) + "\n")
	return 0
}

func tee(m *machine, args []string) int {
	for _, f := range args[1:] {
		if !strings.HasPrefix(f, "-") {
			if err := m.write(f, m.stdin); err != nil {
				m.stderr("tee: " + f + ": " + err.Error() + "\n")
			}
		}
	}
	m.stdout(m.stdin)
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

// fetch is wget and curl, as far as scripts look at them.
func fetch(m *machine, args []string) int {
	url, quiet, failing := "", false, false
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-O" || a == "-o" || a == "-T" || a == "-H" || a == "-m" || a == "--max-time" || a == "-w":
			i++
		case strings.HasPrefix(a, "-"):
			quiet = quiet || strings.Contains(a, "q") || strings.Contains(a, "s")
			failing = failing || strings.Contains(a, "f")
		default:
			url = a
		}
	}
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	answer := m.ask(func() string {
		code, body, err := m.world.Fetch(url)
		return fmt.Sprintf("%d\x00%s\x00%s", code, body, err)
	})
	parts := strings.SplitN(answer, "\x00", 3)
	m.pass(5*time.Millisecond, false)
	if len(parts) < 3 || parts[2] != "" {
		why := "download failed"
		if len(parts) == 3 {
			why = parts[2]
		}
		if !quiet {
			m.stderr(args[0] + ": can't connect to remote host: " + why + "\n")
		}
		return 1
	}
	code, _ := strconv.Atoi(parts[0])
	if code >= 400 && (args[0] == "wget" || failing) {
		m.stderr(fmt.Sprintf("wget: server returned error: HTTP/1.1 %d\n", code))
		return 1
	}
	m.stdout(parts[1])
	return 0
}

func nslookup(m *machine, args []string) int {
	if len(args) < 2 {
		return 1
	}
	ip := m.ask(func() string {
		ip, _ := m.world.Resolve(args[1])
		return ip
	})
	m.pass(2*time.Millisecond, false)
	if ip == "" {
		m.stdout("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n** server can't find " + args[1] + ": NXDOMAIN\n")
		return 1
	}
	m.stdout("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\nName:\t" + args[1] + "\nAddress: " + ip + "\n")
	return 0
}

// nc listens, or does nothing.
func nc(m *machine, args []string) int {
	for i, a := range args {
		if strings.Contains(a, "l") && strings.HasPrefix(a, "-") {
			for _, b := range args[i+1:] {
				if port, err := strconv.Atoi(b); err == nil {
					m.ports = append(m.ports, int32(port))
					m.emit(Event{At: m.now, Kind: Listen, Port: int32(port)})
					m.forever()
				}
			}
		}
	}
	return 0
}

// Answer is what the process answers to an HTTP request now; ok is false where it does
// not speak HTTP.
func (p *Process) Answer(urlPath string, _ kernel.Time, readFile func(path string) bool) (code int, body string, ok bool) {
	s := p.Server
	if s == nil {
		return 0, "", false
	}
	urlPath, _, _ = strings.Cut(urlPath, "?")
	if s.Any {
		return 200, "ok\n", true
	}
	if strings.HasSuffix(urlPath, "/") {
		urlPath += "index.html"
	}
	for _, f := range s.Index {
		if "/"+f == urlPath {
			return 200, "<html><body><h1>Welcome</h1></body></html>\n", true
		}
	}
	if s.Root != "" && readFile != nil && readFile(s.Root+urlPath) {
		return 200, "", true
	}
	return 404, "<html><head><title>404 Not Found</title></head></html>\n", true
}
