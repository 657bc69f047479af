package process

import (
	"path"
	"sort"
	"strconv"
	"strings"
)

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
