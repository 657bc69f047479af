package process

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cat copies files, or what comes in as it comes.
func cat(c *call) (int, bool) {
	_, _, files := c.options("")
	if len(files) == 0 {
		return c.copy(func(s string) { c.out(s) })
	}
	status := 0
	for i := c.f.N; i < len(files); i++ {
		f := files[i]
		if f == "-" {
			if _, done := c.copy(func(s string) { c.out(s) }); !done {
				return 0, false
			}
			c.f.N = i + 1
			continue
		}
		text, ok := c.file(f)
		switch {
		case ok:
			c.out(text)
		case c.m.isDir(c.t.abs(f)):
			c.err("cat: read error: Is a directory\n")
			status = 1
		default:
			c.err("cat: can't open '" + f + "': " + notThere + "\n")
			status = 1
		}
	}
	return status, true
}

// copy hands on what comes in until its end.
func (c *call) copy(to func(string)) (int, bool) {
	text, eof, ok := c.more()
	if !ok {
		return 0, false
	}
	if text != "" {
		to(text)
	}
	if c.t.Broken {
		return 141, true
	}
	return 0, eof
}

func tee(c *call) (int, bool) {
	flags, _, files := c.options("")
	if c.f.Step == 0 {
		c.f.Step = 1
		for _, f := range files {
			if _, there := c.file(f); there && strings.Contains(flags, "a") {
				continue
			}
			if why := c.m.writeAbs(c.t.abs(f), ""); why != "" {
				c.err("tee: " + f + ": " + why + "\n")
			}
		}
	}
	return c.copy(func(s string) {
		c.out(s)
		for _, f := range files {
			old, _ := c.file(f)
			if len(old)+len(s) <= textMax {
				c.m.writeAbs(c.t.abs(f), old+s)
			}
		}
	})
}

// eachLine hands on whole lines as they come; what is left at the end is a line too.
func (c *call) eachLine(f func(line string) (enough bool)) (done bool) {
	text, eof, ok := c.more()
	if !ok {
		return false
	}
	c.f.Text += text
	for {
		line, rest, found := strings.Cut(c.f.Text, "\n")
		if !found && (!eof || line == "") {
			return eof
		}
		c.f.Text = rest
		if f(line) || c.t.Broken {
			c.m.unread(c.t, c.f.Text)
			return true
		}
	}
}

// from lets a filter read a file in place of its input.
func (c *call) from(file string) (found bool) {
	text, ok := c.file(file)
	if !ok {
		return false
	}
	c.t.top().Redir, c.t.top().Fds = true, c.t.Fd
	c.t.Fd[0] = fd{Kind: fdText, Text: text}
	return true
}

func grep(c *call) (int, bool) {
	flags, values, rest := c.options("emABC")
	pattern, ok := values['e']
	if !ok {
		if len(rest) == 0 {
			c.err("grep: missing pattern\n")
			return 2, true
		}
		pattern, rest = rest[0], rest[1:]
	}
	if c.f.Step == 0 {
		c.f.Step, c.f.Status = 1, 1
		if len(rest) > 0 && rest[0] != "-" && !c.from(rest[0]) {
			c.err("grep: " + rest[0] + ": " + notThere + "\n")
			return 2, true
		}
	}
	fits := matcher(pattern, flags)
	done := c.eachLine(func(line string) bool {
		if fits(line) == strings.Contains(flags, "v") {
			return false
		}
		c.f.Status = 0
		c.f.N++
		switch {
		case strings.Contains(flags, "q"):
			return true
		case strings.Contains(flags, "c"):
		case strings.Contains(flags, "n"):
			c.out(strconv.Itoa(c.f.N) + ":" + line + "\n")
		default:
			c.out(line + "\n")
		}
		return false
	})
	if done && strings.Contains(flags, "c") {
		c.out(strconv.Itoa(c.f.N) + "\n")
	}
	return c.f.Status, done
}

// matcher is grep's idea of a pattern, as far as Go's regular expressions go.
func matcher(pattern, flags string) func(string) bool {
	fold := strings.Contains(flags, "i")
	if !strings.Contains(flags, "F") {
		expr := pattern
		if !strings.Contains(flags, "E") { // basic: these stand for themselves, and for more with a backslash
			expr = basic(pattern)
		}
		if strings.Contains(flags, "w") {
			expr = `\b(?:` + expr + `)\b`
		}
		if strings.Contains(flags, "x") {
			expr = `^(?:` + expr + `)$`
		}
		if fold {
			expr = "(?i)" + expr
		}
		if re, err := regexp.Compile(expr); err == nil {
			return re.MatchString
		}
	}
	return func(line string) bool {
		if fold {
			return strings.Contains(strings.ToLower(line), strings.ToLower(pattern))
		}
		return strings.Contains(line, pattern)
	}
}

// basic turns a basic regular expression into an extended one.
func basic(p string) string {
	const special = "+?|(){}"
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			i++
			if strings.IndexByte(special, p[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(p[i])
		case strings.IndexByte(special, p[i]) >= 0:
			b.WriteByte('\\')
			b.WriteByte(p[i])
		default:
			b.WriteByte(p[i])
		}
	}
	return b.String()
}

func lines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// count reads "-n 5", "-5", "-n +1".
func (c *call) count() (n string, flags string, files []string) {
	n = "10"
	for i := 1; i < len(c.args); i++ {
		a := c.args[i]
		switch {
		case (a == "-n" || a == "-c") && i+1 < len(c.args):
			i++
			n = c.args[i]
		case strings.HasPrefix(a, "-n") && len(a) > 2:
			n = a[2:]
		case strings.HasPrefix(a, "-") && len(a) > 1 && number(a[1:], -1) >= 0:
			n = a[1:]
		case strings.HasPrefix(a, "-") && len(a) > 1:
			flags += a[1:]
		default:
			files = append(files, a)
		}
	}
	return n, flags, files
}

func head(c *call) (int, bool) {
	n, _, files := c.count()
	if c.f.Step == 0 {
		c.f.Step = 1
		if len(files) > 0 && !c.from(files[0]) {
			c.err("head: " + files[0] + ": " + notThere + "\n")
			return 1, true
		}
	}
	most := number(n, 10)
	if most <= 0 {
		return 0, true
	}
	return 0, c.eachLine(func(line string) bool {
		c.out(line + "\n")
		c.f.N++
		return c.f.N >= most
	})
}

// tailPoll is how often tail -f looks.
const tailPoll = time.Second

func tail(c *call) (int, bool) {
	n, flags, files := c.count()
	follow := strings.ContainsAny(flags, "fF")
	if len(files) == 0 {
		text, ok := c.all()
		if ok {
			c.out(lastLines(text, n))
		}
		return 0, ok
	}
	file := files[len(files)-1]
	if file == "/dev/zero" { // it looks for the end of a line that has none
		if c.m.p.Spec.Limit == 0 {
			c.t.wait(blockForever, 0)
			return 0, false
		}
		if c.f.Step == 1 {
			return c.starved()
		}
		c.f.Step = 1
		c.sleep(oomAfter)
		return 0, false
	}
	if file == "/dev/null" && follow {
		c.t.wait(blockForever, 0)
		return 0, false
	}
	text, ok := c.file(file)
	switch {
	case !ok && c.f.Step == 0 && !strings.Contains(flags, "F"):
		c.err("tail: can't open '" + file + "': " + notThere + "\ntail: no files\n")
		return 1, true
	case !ok:
		c.f.N = 0
		if c.f.Step == 0 {
			c.err("tail: can't open '" + file + "': " + notThere + "\n")
		}
		c.f.Step = 2
	case c.f.Step == 0:
		c.out(lastLines(text, n))
		c.f.N, c.f.Step = len(text), 2
		if !follow {
			return 0, true
		}
	case len(text) < c.f.N: // cut off, or a new one
		c.f.N = 0
		fallthrough
	default:
		c.out(text[c.f.N:])
		c.f.N = len(text)
	}
	c.sleep(tailPoll)
	return 0, false
}

// lastLines is what tail -n shows: so many lines from the end, or from line +N on.
func lastLines(text, n string) string {
	all := strings.SplitAfter(text, "\n")
	if k := len(all) - 1; all[k] == "" {
		all = all[:k]
	}
	from := len(all) - number(n, 10)
	if first, ok := strings.CutPrefix(n, "+"); ok {
		from = number(first, 1) - 1
	}
	return strings.Join(all[min(max(from, 0), len(all)):], "")
}

// whole makes a filter of a function of all its input.
func (c *call) whole(files []string, f func(string) string) (int, bool) {
	text := ""
	if len(files) > 0 {
		for _, name := range files {
			more, ok := c.file(name)
			if !ok {
				c.err(c.args[0] + ": " + name + ": " + notThere + "\n")
				return 1, true
			}
			text += more
		}
	} else {
		ok := false
		if text, ok = c.all(); !ok {
			return 0, false
		}
	}
	c.out(f(text))
	return 0, true
}

func wc(c *call) (int, bool) {
	flags, _, files := c.options("")
	return c.whole(files, func(s string) string {
		counts := []int{}
		for _, k := range []struct {
			flag string
			n    int
		}{{"l", strings.Count(s, "\n")}, {"w", len(strings.Fields(s))}, {"c", len(s)}} {
			if flags == "" || strings.Contains(flags, k.flag) {
				counts = append(counts, k.n)
			}
		}
		var out []string
		for _, n := range counts {
			out = append(out, strconv.Itoa(n))
		}
		return strings.Join(append(out, files...), " ") + "\n"
	})
}

func joined(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

func sortLines(c *call) (int, bool) {
	flags, _, files := c.options("kt")
	return c.whole(files, func(s string) string {
		all := lines(s)
		slices.SortStableFunc(all, func(a, b string) int {
			if strings.Contains(flags, "n") {
				return number(strings.TrimSpace(a), 0) - number(strings.TrimSpace(b), 0)
			}
			return strings.Compare(a, b)
		})
		if strings.Contains(flags, "r") {
			slices.Reverse(all)
		}
		if strings.Contains(flags, "u") {
			all = slices.Compact(all)
		}
		return joined(all)
	})
}

func uniq(c *call) (int, bool) {
	_, _, files := c.options("")
	return c.whole(files, func(s string) string { return joined(slices.Compact(lines(s))) })
}

func tr(c *call) (int, bool) {
	flags, _, sets := c.options("")
	from, to := set1(arg(sets, 0)), set1(arg(sets, 1))
	return c.copy(func(s string) {
		c.out(strings.Map(func(r rune) rune {
			i := slices.Index(from, r)
			switch {
			case i < 0:
				return r
			case strings.Contains(flags, "d"):
				return -1
			case len(to) == 0:
				return r
			}
			return to[min(i, len(to)-1)]
		}, s))
	})
}

// set1 spells a-z out.
func set1(s string) []rune {
	r := []rune(escaped(s))
	var out []rune
	for i := 0; i < len(r); i++ {
		if i+2 < len(r) && r[i+1] == '-' && r[i+2] >= r[i] && r[i+2]-r[i] < 256 {
			for x := r[i]; x <= r[i+2]; x++ {
				out = append(out, x)
			}
			i += 2
			continue
		}
		out = append(out, r[i])
	}
	return out
}

func cut(c *call) (int, bool) {
	_, values, files := c.options("dfc")
	sep := values['d']
	if sep == "" {
		sep = "\t"
	}
	n := number(values['f'], 1)
	return c.whole(files, func(s string) string {
		all := lines(s)
		for i, l := range all {
			if parts := strings.Split(l, sep); len(parts) > 1 {
				all[i] = arg(parts, max(n, 1)-1)
			}
		}
		return joined(all)
	})
}

// sed knows s/…/…/ alone.
func sed(c *call) (int, bool) {
	flags, values, rest := c.options("e")
	script, ok := values['e']
	if !ok {
		if len(rest) == 0 {
			return 1, true
		}
		script, rest = rest[0], rest[1:]
	}
	if len(script) < 4 || script[0] != 's' {
		c.err("sed: unsupported command " + script + "\n")
		return 1, true
	}
	parts := strings.Split(script[2:], script[1:2])
	if len(parts) < 3 {
		c.err("sed: unmatched '" + script[1:2] + "'\n")
		return 1, true
	}
	expr := parts[0]
	if !strings.ContainsAny(flags, "Er") {
		expr = basic(expr)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		c.err("sed: bad regex '" + parts[0] + "'\n")
		return 1, true
	}
	with := regexp.MustCompile(`\\([0-9])`).ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(parts[1], "$", "$$"), "&", "${0}"), "$${$1}")
	edit := func(s string) string {
		all := lines(s)
		for i, l := range all {
			if strings.Contains(parts[2], "g") {
				all[i] = re.ReplaceAllString(l, with)
			} else if at := re.FindStringSubmatchIndex(l); at != nil {
				all[i] = l[:at[0]] + string(re.ExpandString(nil, with, l, at)) + l[at[1]:]
			}
		}
		return joined(all)
	}
	if strings.Contains(flags, "i") {
		for _, f := range rest {
			if text, ok := c.file(f); ok {
				c.m.writeAbs(c.t.abs(f), edit(text))
			}
		}
		return 0, true
	}
	return c.whole(rest, edit)
}

// xargs runs a command once, with all words of its input.
func xargs(c *call) (int, bool) {
	if c.f.Step == 1 {
		return c.t.Status, true
	}
	text, ok := c.all()
	if !ok {
		return 0, false
	}
	args := append(slices.Clone(c.args[1:]), strings.Fields(text)...)
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"echo"}
	}
	c.f.Step = 1
	c.m.external(c.t, args)
	return 0, false
}

func seq(c *call) int {
	_, _, n := c.options("s")
	from, step, to := 1, 1, number(arg(n, len(n)-1), 0)
	if len(n) > 1 {
		from = number(n[0], 1)
	}
	if len(n) > 2 {
		step = number(n[1], 1)
	}
	if len(n) == 0 || step == 0 {
		return 1
	}
	var b strings.Builder
	for i, k := from, 0; (step > 0 && i <= to || step < 0 && i >= to) && k < 100_000; i, k = i+step, k+1 {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	c.out(b.String())
	return 0
}
