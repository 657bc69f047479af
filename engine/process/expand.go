package process

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word expands a word to one string.
func (m *machine) word(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range w.Parts {
		b.WriteString(m.part(p, false))
	}
	return b.String()
}

// fields expands words to arguments: what is not quoted is split at white space.
func (m *machine) fields(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		out = append(out, m.split(w)...)
	}
	return out
}

func (m *machine) split(w *syntax.Word) []string {
	var out []string
	var cur strings.Builder
	open := false
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst:
			text := m.part(p, false)
			for i, f := range strings.Fields(text) {
				if i > 0 || open && startsWithSpace(text) {
					out = append(out, cur.String())
					cur.Reset()
				}
				cur.WriteString(f)
				open = true
			}
		case *syntax.DblQuoted:
			if len(p.Parts) == 1 {
				if e, ok := p.Parts[0].(*syntax.ParamExp); ok && e.Param.Value == "@" {
					for i, a := range m.params {
						if i > 0 {
							out = append(out, cur.String())
							cur.Reset()
						}
						cur.WriteString(a)
						open = true
					}
					continue
				}
			}
			cur.WriteString(m.part(p, true))
			open = true
		default:
			cur.WriteString(m.part(p, false))
			open = true
		}
	}
	if open {
		out = append(out, cur.String())
	}
	return out
}

func startsWithSpace(s string) bool { return s != "" && (s[0] == ' ' || s[0] == '\n' || s[0] == '\t') }

func (m *machine) part(p syntax.WordPart, quoted bool) string {
	switch p := p.(type) {
	case *syntax.Lit:
		return unescape(p.Value, quoted)
	case *syntax.SglQuoted:
		return p.Value
	case *syntax.DblQuoted:
		var b strings.Builder
		for _, q := range p.Parts {
			b.WriteString(m.part(q, true))
		}
		return b.String()
	case *syntax.ParamExp:
		return m.param(p)
	case *syntax.CmdSubst:
		return m.substitute(p.Stmts)
	case *syntax.ArithmExp:
		return strconv.FormatInt(m.arith(p.X), 10)
	}
	return ""
}

func unescape(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch {
		case s[i] == '\n':
		case quoted && !strings.ContainsRune("$`\"\\", rune(s[i])):
			b.WriteByte('\\')
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// substitute is $(…).
func (m *machine) substitute(stmts []*syntax.Stmt) string {
	var buf strings.Builder
	was := m.capture
	m.capture = &buf
	defer func() { m.capture = was }()
	m.subshell(func() { m.stmts(stmts) })
	return strings.TrimRight(buf.String(), "\n")
}

func (m *machine) lookup(name string) (string, bool) {
	switch name {
	case "?":
		return strconv.Itoa(m.status), true
	case "$":
		return "1", true
	case "#":
		return strconv.Itoa(len(m.params)), true
	case "@", "*":
		return strings.Join(m.params, " "), true
	case "0":
		return "sh", true
	case "!":
		return strconv.Itoa(6 + len(m.jobs)), true
	case "HOSTNAME":
		if v, ok := m.vars[name]; ok {
			return v, true
		}
		return m.p.Spec.Hostname, true
	case "RANDOM":
		return strconv.Itoa(m.steps * 7919 % 32768), true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(m.params) {
			return m.params[n-1], true
		}
		return "", false
	}
	v, ok := m.vars[name]
	return v, ok
}

func (m *machine) param(p *syntax.ParamExp) string {
	v, set := m.lookup(p.Param.Value)
	if p.Length {
		return strconv.Itoa(len([]rune(v)))
	}
	if p.Exp == nil {
		return v
	}
	arg := func() string { return m.word(p.Exp.Word) }
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !set || p.Exp.Op == syntax.DefaultUnsetOrNull && v == "" {
			return arg()
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !set || p.Exp.Op == syntax.AssignUnsetOrNull && v == "" {
			v = arg()
			m.vars[p.Param.Value] = v
		}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !set || p.Exp.Op == syntax.AlternateUnsetOrNull && v == "" {
			return ""
		}
		return arg()
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !set || p.Exp.Op == syntax.ErrorUnsetOrNull && v == "" {
			msg := arg()
			if msg == "" {
				msg = "parameter not set"
			}
			m.stderr("sh: " + p.Param.Value + ": " + msg + "\n")
			panic(exited{code: 2})
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return trim(v, arg(), p.Exp.Op == syntax.RemLargeSuffix, false)
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return trim(v, arg(), p.Exp.Op == syntax.RemLargePrefix, true)
	}
	return v
}

// trim removes the shortest or longest prefix or suffix that a pattern matches.
func trim(v, pattern string, longest, prefix bool) string {
	found, best := false, v
	for i := 0; i <= len(v); i++ {
		cut, rest := v[:i], v[i:]
		if !prefix {
			cut, rest = v[i:], v[:i]
		}
		if !matches(pattern, cut) {
			continue
		}
		if !found || longest == (len(rest) < len(best)) {
			found, best = true, rest
		}
	}
	return best
}

// matches is the shell's pattern matching.
func matches(pattern, s string) bool {
	if pattern == s {
		return true
	}
	// path.Match does not let * cross a slash; the shell's case does.
	const slash = "\x01"
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", slash), strings.ReplaceAll(s, "/", slash))
	return err == nil && ok
}
