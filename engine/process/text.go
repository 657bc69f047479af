package process

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

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

func sortLines(m *machine, args []string) int {
	text := m.stdin
	if len(args) > 1 && !strings.HasPrefix(args[len(args)-1], "-") {
		t, ok := m.read(args[len(args)-1])
		if !ok {
			m.stderr("sort: " + args[len(args)-1] + ": No such file or directory\n")
			return 2
		}
		text = t
	}
	all := lines(text)
	slices.Sort(all)
	for _, l := range all {
		m.stdout(l + "\n")
	}
	return 0
}

func basename(m *machine, args []string) int {
	if len(args) > 1 {
		m.stdout(path.Base(args[1]) + "\n")
	}
	return 0
}
