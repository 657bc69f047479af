package process

import (
	"path"
	"strconv"
	"strings"
)

// needFiles is a command about files of which only their absence matters.
func needFiles(c *call) int {
	_, _, rest := c.options("")
	name := path.Base(c.args[0])
	if (name == "chmod" || name == "chown") && len(rest) > 0 {
		rest = rest[1:]
	}
	status := 0
	for _, f := range rest {
		if !c.m.exists(c.t.abs(f)) {
			c.err(name + ": " + f + ": " + notThere + "\n")
			status = 1
		} else if name == "stat" {
			c.out("  File: " + f + "\n")
		}
	}
	return status
}

func touch(c *call) int {
	_, _, rest := c.options("drt")
	status := 0
	for _, f := range rest {
		p := c.t.abs(f)
		if c.m.exists(p) {
			continue
		}
		if why := c.m.writeAbs(p, ""); why != "" {
			if why == "nonexistent directory" {
				why = notThere
			}
			c.err("touch: " + f + ": " + why + "\n")
			status = 1
		}
	}
	return status
}

func mktemp(c *call) int {
	p := "/tmp/tmp." + strconv.FormatInt(int64(c.m.now)/1000, 36)
	c.m.writeAbs(p, "")
	c.out(p + "\n")
	return 0
}

func rm(c *call) int {
	flags, _, rest := c.options("")
	force, whole, status := strings.Contains(flags, "f"), strings.ContainsAny(flags, "rR"), 0
	name := path.Base(c.args[0])
	for _, f := range rest {
		p := c.t.abs(f)
		if name == "rmdir" {
			whole = true
			if c.m.isDir(p) && len(c.m.names(p)) > 0 {
				c.err("rmdir: '" + f + "': Directory not empty\n")
				status = 1
				continue
			}
		}
		if why := c.m.remove(p, whole); why != "" && !(force && why == notThere) {
			c.err(name + ": can't remove '" + f + "': " + why + "\n")
			status = 1
		}
	}
	return status
}

func mkdir(c *call) int {
	flags, _, rest := c.options("m")
	parents, status := strings.Contains(flags, "p"), 0
	for _, f := range rest {
		p := c.t.abs(f)
		why := ""
		mt, rel := c.m.p.Spec.Find(p)
		switch {
		case !nameFits(p):
			why = tooLong
		case c.m.isDir(p):
			if !parents {
				why = "File exists"
			}
		case c.m.exists(p):
			why = "File exists"
		case mt.ReadOnly:
			why = readOnly
		case !parents && !c.m.isDir(path.Dir(p)):
			why = notThere
		case c.m.w.CountFiles(mt.Volume) >= filesMax:
			why = noSpace
		default:
			c.m.w.WriteFile(mt.Volume, rel+"/", "")
		}
		if why != "" {
			c.err("mkdir: can't create directory '" + f + "': " + why + "\n")
			status = 1
		}
	}
	return status
}

// cp is cp, mv and ln: a link is a copy here.
func cp(c *call) int {
	name := path.Base(c.args[0])
	_, _, rest := c.options("")
	if len(rest) < 2 {
		c.err(name + ": missing file operand\n")
		return 1
	}
	to, status := rest[len(rest)-1], 0
	for _, from := range rest[:len(rest)-1] {
		src, dst := c.t.abs(from), c.t.abs(to)
		if c.m.isDir(dst) {
			dst = path.Join(dst, path.Base(src))
		}
		files := map[string]string{}
		order := []string{}
		if text, ok := c.m.readAbs(src); ok {
			files[dst], order = text, append(order, dst)
		} else if c.m.isDir(src) {
			for _, f := range c.m.below(src) {
				if text, ok := c.m.readAbs(path.Join(src, f)); ok {
					p := path.Join(dst, f)
					files[p], order = text, append(order, p)
				}
			}
			if mt, rel := c.m.p.Spec.Find(dst); !mt.ReadOnly {
				c.m.w.WriteFile(mt.Volume, rel+"/", "")
			}
		} else {
			c.err(name + ": can't stat '" + from + "': " + notThere + "\n")
			status = 1
			continue
		}
		for _, p := range order {
			if mt, rel := c.m.p.Spec.Find(path.Dir(p)); p != dst && !mt.ReadOnly && !c.m.isDir(path.Dir(p)) {
				c.m.w.WriteFile(mt.Volume, rel+"/", "")
			}
			if why := c.m.writeAbs(p, files[p]); why != "" {
				c.err(name + ": can't create '" + p + "': " + why + "\n")
				status = 1
			}
		}
		if name == "mv" && status == 0 {
			c.m.remove(src, true)
		}
	}
	return status
}

func ls(c *call) int {
	flags, _, rest := c.options("")
	if len(rest) == 0 {
		rest = []string{"."}
	}
	status := 0
	for _, f := range rest {
		p := c.t.abs(f)
		if _, file := c.m.readAbs(p); file {
			c.out(f + "\n")
			continue
		}
		if !c.m.isDir(p) {
			c.err("ls: " + f + ": " + notThere + "\n")
			status = 1
			continue
		}
		if len(rest) > 1 {
			c.out(f + ":\n")
		}
		for _, n := range c.m.names(p) {
			if !strings.HasPrefix(n, ".") || strings.ContainsAny(flags, "aA") {
				c.out(n + "\n")
			}
		}
	}
	return status
}

func test(c *call) int {
	args := c.args[1:]
	if path.Base(c.args[0]) == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			c.err("sh: missing ]\n")
			return 2
		}
		args = args[:len(args)-1]
	}
	ok, why := c.m.condition(c.t, args)
	if why != "" {
		c.err("sh: " + why + "\n")
		return 2
	}
	return btoi(!ok)
}

// condition evaluates the arguments of test.
func (m *machine) condition(t *task, a []string) (ok bool, why string) {
	switch {
	case len(a) == 0:
		return false, ""
	case len(a) == 1:
		return a[0] != "", ""
	case len(a) == 3 && isComparison(a[1]):
		return compare(a[0], a[1], a[2])
	case a[0] == "!":
		ok, why = m.condition(t, a[1:])
		return !ok, why
	case len(a) == 2:
		return m.fileTest(t, a[0], a[1])
	}
	for _, op := range []string{"-o", "-a"} {
		for i, w := range a {
			if w != op || i == 0 {
				continue
			}
			l, why1 := m.condition(t, a[:i])
			r, why2 := m.condition(t, a[i+1:])
			if why1 == "" {
				why1 = why2
			}
			if op == "-a" {
				return l && r, why1
			}
			return l || r, why1
		}
	}
	if a[0] == "(" && a[len(a)-1] == ")" {
		return m.condition(t, a[1:len(a)-1])
	}
	return false, a[1] + ": unknown operand"
}

func (m *machine) fileTest(t *task, op, x string) (ok bool, why string) {
	p := t.abs(x)
	switch op {
	case "-n":
		return x != "", ""
	case "-z":
		return x == "", ""
	case "-d":
		return x != "" && m.isDir(p), ""
	case "-f":
		_, file := m.readAbs(p)
		return x != "" && file, ""
	case "-e", "-r", "-x", "-L", "-h":
		return x != "" && m.exists(p), ""
	case "-w":
		mt, _ := m.p.Spec.Find(p)
		return x != "" && m.exists(p) && !mt.ReadOnly, ""
	case "-s":
		text, _ := m.readAbs(p)
		return text != "", ""
	case "-t":
		return false, ""
	}
	return false, op + ": unknown operand"
}

func isComparison(op string) bool {
	switch op {
	case "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">":
		return true
	}
	return false
}

func compare(x, op, y string) (ok bool, why string) {
	switch op {
	case "=", "==":
		return x == y, ""
	case "!=":
		return x != y, ""
	case "<":
		return x < y, ""
	case ">":
		return x > y, ""
	}
	a, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
	if err != nil {
		return false, x + ": bad number"
	}
	b, err := strconv.ParseInt(strings.TrimSpace(y), 10, 64)
	if err != nil {
		return false, y + ": bad number"
	}
	switch op {
	case "-eq":
		return a == b, ""
	case "-ne":
		return a != b, ""
	case "-lt":
		return a < b, ""
	case "-le":
		return a <= b, ""
	case "-gt":
		return a > b, ""
	}
	return a >= b, ""
}
