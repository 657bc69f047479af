package process

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tools are the commands that an image with a shell has, busybox's and coreutils'.
var tools map[string]tool

// hidden are tools that are no files: parts of the shell that take time.
var hidden = map[string]bool{"wait": true, "read": true}

func init() {
	tools = map[string]tool{
		"sh": readScript, "wait": waitFor, "read": readLine,
		"sleep": sleep, "timeout": timeout, "yes": yes, "kill": once(kill), "pkill": once(pkill), "killall": once(pkill), "pidof": once(pidof), "pgrep": once(pidof),
		"true": once(func(*call) int { return 0 }), "false": once(func(*call) int { return 1 }),
		"chmod": once(needFiles), "chown": once(needFiles), "sync": once(func(*call) int { return 0 }), "dd": once(dd),
		"echo": once(echo), "printf": once(printf), "env": once(env), "printenv": once(env), "date": once(date),
		"hostname": once(hostname), "id": once(id), "whoami": once(whoami), "pwd": once(func(c *call) int { c.out(c.t.Sh.Dir + "\n"); return 0 }),
		"ps": once(ps), "uname": once(uname), "expr": once(expr), "basename": once(baseName), "dirname": once(baseName), "which": once(which),
		"nproc": once(func(c *call) int { c.out("2\n"); return 0 }),
		"test":  once(test), "[": once(test), "touch": once(touch), "rm": once(rm), "rmdir": once(rm), "mkdir": once(mkdir), "ls": once(ls), "cp": once(cp), "mv": once(cp), "ln": once(cp),
		"stat": once(needFiles), "mktemp": once(mktemp),
		"cat": cat, "tee": tee, "grep": grep, "head": head, "tail": tail, "wc": wc, "sort": sortLines, "uniq": uniq, "tr": tr, "cut": cut, "sed": sed, "xargs": xargs, "rev": cat,
		"seq": once(seq), "wget": fetch, "curl": fetch, "nslookup": lookup, "nc": nc,
	}
}

// readScript is a shell that reads its script from standard input.
func readScript(c *call) (int, bool) {
	text, ok := c.all()
	if !ok {
		return 0, false
	}
	c.t.pop()
	c.m.script(c.t, text)
	return 0, false
}

// waitFor is the shell's wait: for one job, or for all of them.
func waitFor(c *call) (int, bool) {
	if len(c.t.Pending) > 0 { // a signal with a trap ends it
		return c.t.Status, true
	}
	jobs, status := c.t.Sh.Jobs, 0
	one := len(c.args) > 1
	if one {
		jobs = nil
		for _, a := range c.args[1:] {
			jobs = append(jobs, c.jobNumber(a))
		}
	}
	for _, pid := range jobs {
		if !slices.Contains(c.t.Sh.Jobs, pid) {
			status = 127
			continue
		}
		code, ended := c.m.reap(pid)
		if !ended {
			c.t.wait(blockJobs, 0)
			return 0, false
		}
		c.t.Sh.Jobs = slices.DeleteFunc(slices.Clone(c.t.Sh.Jobs), func(j int) bool { return j == pid })
		status = code
		c.f.Status = code
	}
	if one {
		if status == 127 && c.f.Status != 0 {
			status = c.f.Status
		}
		return status, true
	}
	return 0, true
}

// jobNumber reads a process's number, or %1 for the first job.
func (c *call) jobNumber(s string) int {
	if n, ok := strings.CutPrefix(s, "%"); ok {
		if i := number(n, 1); i >= 1 && i <= len(c.t.Sh.Jobs) {
			return c.t.Sh.Jobs[i-1]
		}
		return -1
	}
	return number(s, -1)
}

func readLine(c *call) (int, bool) {
	for !strings.Contains(c.f.Text, "\n") {
		text, eof, ok := c.more()
		if !ok {
			return 0, false
		}
		c.f.Text += text
		if eof {
			break
		}
	}
	line, rest, found := strings.Cut(c.f.Text, "\n")
	c.m.unread(c.t, rest)
	_, _, names := c.options("ptndu")
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	fields := strings.Fields(line)
	for i, n := range names {
		switch {
		case i >= len(fields):
			c.t.set(n, "")
		case i == len(names)-1:
			c.t.set(n, strings.Join(fields[i:], " "))
		default:
			c.t.set(n, fields[i])
		}
	}
	c.t.Laps = 0
	return btoi(!found && line == ""), true
}

func sleep(c *call) (int, bool) {
	if c.f.Step == 1 {
		return 0, true
	}
	total := time.Duration(0)
	if len(c.args) == 1 {
		c.err("sleep: missing operand\n")
		return 1, true
	}
	for _, a := range c.args[1:] {
		if a == "infinity" || a == "inf" {
			c.t.wait(blockForever, 0)
			return 0, false
		}
		d, ok := span(a)
		if !ok {
			c.err("sleep: invalid number '" + a + "'\n")
			return 1, true
		}
		total += d
	}
	c.f.Step = 1
	c.sleep(total)
	return 0, false
}

// spanMax is longer than any run lasts.
const spanMax = 100 * 365 * 24 * time.Hour

// span reads "90", "1.5" or "2m".
func span(s string) (time.Duration, bool) {
	unit := time.Second
	if s != "" {
		switch s[len(s)-1] {
		case 'm':
			unit = time.Minute
		case 'h':
			unit = time.Hour
		case 'd':
			unit = 24 * time.Hour
		}
	}
	f, err := strconv.ParseFloat(strings.TrimRight(s, "smhd"), 64)
	if err != nil || !(f >= 0) {
		return 0, false
	}
	if f > float64(spanMax/unit) {
		return spanMax, true
	}
	return time.Duration(f * float64(unit)), true
}

// timeout runs a command in a task of its own, and ends it when its time is over.
func timeout(c *call) (int, bool) {
	_, values, rest := c.options("skt")
	switch {
	case c.f.Step == 0:
		if len(rest) < 2 {
			c.err("timeout: missing operand\n")
			return 125, true
		}
		d, ok := span(rest[0])
		if !ok {
			c.err("timeout: invalid number '" + rest[0] + "'\n")
			return 125, true
		}
		child, ok := c.m.fork(c.t)
		if !ok {
			return 125, true
		}
		child.Shell, child.Argv = false, rest[1:]
		child.push(frame{Op: opStart, Args: rest[1:]})
		c.f.Step, c.f.Child, c.f.Until = 1, child.PID, c.m.now.Add(d)
	case c.f.Step == 1 && c.m.now >= c.f.Until:
		name := "TERM"
		if s, ok := values['s']; ok {
			name = signalName(s)
		}
		if child := c.m.task(c.f.Child); child != nil && !child.Done {
			c.f.Step = 2
			c.m.signal(child, name)
		}
	}
	if status, ended := c.m.reap(c.f.Child); ended {
		if c.f.Step == 2 {
			return 143, true
		}
		return status, true
	}
	c.t.wait(blockChild, c.f.Child)
	if c.f.Step == 1 {
		c.t.Alarm = c.f.Until
	}
	return 0, false
}

func yes(c *call) (int, bool) {
	word := "y"
	if len(c.args) > 1 {
		word = strings.Join(c.args[1:], " ")
	}
	c.out(word + "\n")
	if c.t.Broken {
		return 141, true
	}
	c.m.lap(c.t)
	c.sleep(commandTime)
	return 0, false
}

func kill(c *call) int {
	name, status := "TERM", 0
	for i := 1; i < len(c.args); i++ {
		a := c.args[i]
		switch {
		case a == "-s" && i+1 < len(c.args):
			i++
			name = signalName(c.args[i])
		case a == "-l":
			c.out("HUP INT QUIT KILL TERM\n")
			return 0
		case strings.HasPrefix(a, "-") && a != "-1":
			name = signalName(a[1:])
		default:
			pid := c.jobNumber(a)
			if t := c.m.task(pid); t != nil && !t.Done {
				if name != "EXIT" { // kill -0 only asks
					c.m.signal(t, name)
				}
				continue
			}
			if pid == 1 && !c.m.p.Spec.PIDOne {
				if name != "EXIT" && name != "KILL" { // nothing in its own namespace can kill PID 1
					c.m.emit(Event{At: c.m.now, Kind: Kill, Text: name})
				}
				continue
			}
			c.err("sh: can't kill pid " + a + ": No such process\n")
			status = 1
		}
	}
	return status
}

// named returns the tasks that run a command.
func (c *call) named(name string) []*task {
	var out []*task
	for _, t := range c.m.p.Tasks {
		if t.Done || t == c.t {
			continue
		}
		if len(t.Frames) > 0 && t.top().Op == opLeaf && path.Base(t.top().Args[0]) == name || path.Base(arg(t.Argv, 0)) == name {
			out = append(out, t)
		}
	}
	return out
}

func pkill(c *call) int {
	name, status := "TERM", 1
	for _, a := range c.args[1:] {
		if strings.HasPrefix(a, "-") {
			if s := signalName(a[1:]); signalNumbers[s] != 0 {
				name = s
			}
			continue
		}
		for _, t := range c.named(a) {
			c.m.signal(t, name)
			status = 0
		}
		if !c.m.p.Spec.PIDOne && c.m.first() != c.t || !c.m.p.Spec.PIDOne && status != 0 {
			c.m.emit(Event{At: c.m.now, Kind: Kill, Text: name})
			status = 0
		}
	}
	return status
}

func pidof(c *call) int {
	var pids []string
	for _, t := range c.named(arg(c.args, len(c.args)-1)) {
		pids = append(pids, strconv.Itoa(t.PID))
	}
	if len(pids) == 0 {
		return 1
	}
	c.out(strings.Join(pids, " ") + "\n")
	return 0
}

func echo(c *call) int {
	args := c.args[1:]
	newline, escapes := "\n", false
	for len(args) > 0 && slices.Contains([]string{"-n", "-e", "-ne", "-en"}, args[0]) {
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
	c.out(text + newline)
	return 0
}

func escaped(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`, `\"`, `"`, `\033`, "\x1b", `\e`, "\x1b").Replace(s)
}

func printf(c *call) int {
	if len(c.args) < 2 {
		return 1
	}
	format, rest := escaped(c.args[1]), c.args[2:]
	for {
		var b strings.Builder
		used := false
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			j := i + 1
			for j < len(format) && strings.IndexByte("-+ 0123456789.", format[j]) >= 0 {
				j++
			}
			if j == len(format) {
				break
			}
			if format[j] == '%' {
				b.WriteByte('%')
				i = j
				continue
			}
			value := ""
			if len(rest) > 0 {
				value, rest = rest[0], rest[1:]
			}
			used = true
			b.WriteString(padded(format[i+1:j], format[j], value))
			i = j
		}
		c.out(b.String())
		if len(rest) == 0 || !used {
			return 0
		}
	}
}

// padded formats one value of printf.
func padded(flags string, verb byte, value string) string {
	switch verb {
	case 'd', 'i', 'u':
		value = strconv.Itoa(number(value, 0))
	case 'b':
		value = escaped(value)
	}
	left := strings.Contains(flags, "-")
	width, _, _ := strings.Cut(strings.TrimLeft(flags, "-+ "), ".")
	fill := " "
	if strings.HasPrefix(width, "0") && !left {
		fill = "0"
	}
	n := min(number(width, 0), 1000) - len([]rune(value))
	if n <= 0 {
		return value
	}
	if left {
		return value + strings.Repeat(" ", n)
	}
	return strings.Repeat(fill, n) + value
}

func env(c *call) int {
	if path.Base(c.args[0]) == "printenv" && len(c.args) > 1 {
		v, ok := c.t.Sh.Vars[c.args[1]]
		if !ok {
			return 1
		}
		c.out(v + "\n")
		return 0
	}
	for _, n := range slices.Sorted(maps.Keys(c.t.Sh.Export)) {
		if v, ok := c.t.Sh.Vars[n]; ok {
			c.out(n + "=" + v + "\n")
		}
	}
	return 0
}

func date(c *call) int {
	at := c.m.now.Wall().UTC()
	format := "Mon Jan _2 15:04:05 UTC 2006"
	for _, a := range c.args[1:] {
		switch {
		case strings.HasPrefix(a, "+"):
			format = strings.NewReplacer(
				"%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05", "%T", "15:04:05", "%F", "2006-01-02", "%Z", "UTC", "%z", "+0000",
				"%a", "Mon", "%b", "Jan", "%N", strconv.Itoa(at.Nanosecond()), "%s", strconv.FormatInt(at.Unix(), 10),
			).Replace(a[1:])
			if strings.Contains(a, "%s") { // digits are not to be read as a layout
				c.out(strings.ReplaceAll(a[1:], "%s", strconv.FormatInt(at.Unix(), 10)) + "\n")
				return 0
			}
		case a == "-Iseconds":
			format = "2006-01-02T15:04:05+00:00"
		case a == "-R":
			format = "Mon, 02 Jan 2006 15:04:05 +0000"
		}
	}
	c.out(at.Format(format) + "\n")
	return 0
}

func hostname(c *call) int {
	if arg(c.args, 1) == "-i" || arg(c.args, 1) == "-I" {
		c.out(c.m.p.Spec.IP + "\n")
		return 0
	}
	c.out(c.m.p.Spec.Hostname + "\n")
	return 0
}

func (c *call) user() (uid, name string) {
	switch u := c.m.p.Spec.User; {
	case u == "" || u == "0" || u == "root":
		return "0", "root"
	case number(u, -1) >= 0:
		return u, ""
	default:
		return "1000", u
	}
}

func id(c *call) int {
	uid, name := c.user()
	flags, _, _ := c.options("")
	switch {
	case strings.Contains(flags, "u") && !strings.Contains(flags, "n"):
		c.out(uid + "\n")
	case name != "":
		c.out("uid=" + uid + "(" + name + ") gid=" + uid + "(" + name + ") groups=" + uid + "(" + name + ")\n")
	default:
		c.out("uid=" + uid + " gid=0(root) groups=0(root)\n")
	}
	return 0
}

func whoami(c *call) int {
	uid, name := c.user()
	if name == "" {
		c.err("whoami: unknown uid " + uid + "\n")
		return 1
	}
	c.out(name + "\n")
	return 0
}

func uname(c *call) int {
	flags, _, _ := c.options("")
	switch {
	case strings.Contains(flags, "a"):
		c.out("Linux " + c.m.p.Spec.Hostname + " 6.1.0-40-amd64 #1 SMP x86_64 GNU/Linux\n")
	case strings.Contains(flags, "n"):
		c.out(c.m.p.Spec.Hostname + "\n")
	case strings.Contains(flags, "r"):
		c.out("6.1.0-40-amd64\n")
	case strings.Contains(flags, "m"):
		c.out("x86_64\n")
	default:
		c.out("Linux\n")
	}
	return 0
}

func ps(c *call) int {
	_, name := c.user()
	row := func(pid int, args []string) {
		c.out(padded("5", 's', strconv.Itoa(pid)) + " " + padded("-8", 's', name) + "  0:00 " + strings.Join(args, " ") + "\n")
	}
	c.out("PID   USER     TIME  COMMAND\n")
	if !c.m.p.Spec.PIDOne {
		row(1, c.m.p.Spec.Init)
	}
	for _, t := range c.m.p.Tasks {
		args := t.Argv
		if len(t.Frames) > 0 && t.top().Op == opLeaf && (!t.Shell || t.Simple) {
			args = t.top().Args
		}
		if !t.Done {
			row(t.PID, args)
		}
	}
	return 0
}

func which(c *call) int {
	status := 0
	for _, a := range c.args[1:] {
		if c.m.unrunnable(c.t, []string{a}) != "" {
			status = 1
			continue
		}
		c.out(where(a) + "\n")
	}
	return status
}

// expr is integer arithmetic and comparison of two words.
func expr(c *call) int {
	if len(c.args) != 4 {
		c.out(arg(c.args, 1) + "\n")
		return 0
	}
	a, b := number(c.args[1], 0), number(c.args[3], 0)
	v := 0
	switch c.args[2] {
	case "+":
		v = a + b
	case "-":
		v = a - b
	case "*":
		v = a * b
	case "/", "%":
		if b == 0 {
			c.err("expr: division by zero\n")
			return 2
		}
		if v = a % b; c.args[2] == "/" {
			v = a / b
		}
	case "<":
		v = btoi(a < b)
	case ">":
		v = btoi(a > b)
	case "=":
		v = btoi(c.args[1] == c.args[3])
	}
	c.out(strconv.Itoa(v) + "\n")
	return btoi(v == 0)
}

func baseName(c *call) int {
	a := arg(c.args, 1)
	if path.Base(c.args[0]) == "dirname" {
		c.out(path.Dir(a) + "\n")
		return 0
	}
	c.out(strings.TrimSuffix(path.Base(a), arg(c.args, 2)) + "\n")
	return 0
}

// dd makes a file of zeros; its size is not kept.
func dd(c *call) int {
	for _, a := range c.args[1:] {
		if to, ok := strings.CutPrefix(a, "of="); ok {
			if why := c.m.writeAbs(c.t.abs(to), ""); why != "" {
				c.err("dd: can't open '" + to + "': " + why + "\n")
				return 1
			}
		}
	}
	return 0
}
