package process

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expander expands words. A command substitution needs time: the first one that has not
// run yet ends the expansion, which begins again when it has.
type expander struct {
	m     *machine
	t     *task
	subst []string
	used  int
	size  int               // of what was put together
	vars  map[string]string // assigned on the way
}

type (
	needSubst    struct{ stmts []*syntax.Stmt }
	badExpansion struct{ text string }
	noMemory     struct{}
)

// expand lets fn expand words. It returns false where the frame has to come back: because
// a substitution is under way, or because the shell has ended over an error.
func (m *machine) expand(t *task, f *frame, fn func(*expander)) bool {
	if f.Child != 0 {
		status, ok := m.reap(f.Child)
		if !ok {
			t.wait(blockChild, f.Child)
			return false
		}
		text := strings.TrimRight(m.pipe(f.Pipe).Buf, "\n")
		f.Subst = append(slices.Clip(f.Subst), text)
		t.Status, f.Child, f.Pipe = status, 0, 0
		m.dropPipes()
	}
	e := &expander{m: m, t: t, subst: f.Subst, vars: map[string]string{}}
	switch r := e.try(fn).(type) {
	case needSubst:
		child, ok := m.fork(t)
		if !ok {
			m.finish(t, 2)
			return false
		}
		f.Pipe = m.newPipe()
		f.Child = child.PID
		child.Fd[1] = fd{Kind: fdPipe, Pipe: f.Pipe}
		child.push(frame{Op: opList, Code: Code{Src: f.Code.Src, List: r.stmts}})
		t.wait(blockChild, child.PID)
		return false
	case noMemory:
		t.Full = true
		return false
	case badExpansion:
		m.write(t, 2, t.Sh.Name+": "+r.text+"\n")
		m.finish(t, 2)
		return false
	}
	f.Subst = nil
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		t.set(name, e.vars[name])
	}
	return true
}

func (e *expander) try(fn func(*expander)) (stopped any) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case needSubst, badExpansion, noMemory:
			stopped = r
		default:
			panic(r)
		}
	}()
	fn(e)
	return nil
}

// word expands a word to one string.
func (e *expander) word(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for i, p := range w.Parts {
		s := e.part(p, false)
		if lit, ok := p.(*syntax.Lit); ok && i == 0 && (lit.Value == "~" || strings.HasPrefix(lit.Value, "~/")) {
			s = e.get("HOME") + s[1:]
		}
		b.WriteString(s)
	}
	return b.String()
}

// pattern expands a word whose quoted parts stand for themselves.
func (e *expander) pattern(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted, *syntax.DblQuoted:
			b.WriteString(quoteMeta(e.part(p, false)))
		default:
			b.WriteString(e.part(p, false))
		}
	}
	return b.String()
}

func quoteMeta(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

func (e *expander) value(a *syntax.Assign) string {
	v := ""
	if a.Value != nil {
		v = e.word(a.Value)
	}
	if a.Append && a.Name != nil {
		v = e.get(a.Name.Value) + v
	}
	return v
}

// fields expands words to arguments: what is not quoted is split at white space, and
// patterns become the names of files.
func (e *expander) fields(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		for _, f := range e.split(w) {
			if !f.glob {
				out = append(out, f.text)
				continue
			}
			if files := e.m.glob(e.t, f.pattern); len(files) > 0 {
				out = append(out, files...)
			} else {
				out = append(out, f.text)
			}
		}
	}
	return out
}

type field struct {
	text, pattern string
	glob          bool
}

func (f *field) add(s string, quoted bool) {
	f.text += s
	if quoted {
		f.pattern += quoteMeta(s)
		return
	}
	f.pattern += s
	f.glob = f.glob || strings.ContainsAny(s, "*?[")
}

func (e *expander) split(w *syntax.Word) []field {
	var out []field
	var cur field
	open := false
	end := func() {
		if open {
			out = append(out, cur)
		}
		cur, open = field{}, false
	}
	for i, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
			text := e.part(p, false)
			words := strings.Fields(text)
			if len(words) == 0 {
				continue
			}
			if isSpace(text[0]) {
				end()
			}
			for j, f := range words {
				if j > 0 {
					end()
				}
				cur.add(f, false)
				open = true
			}
			if isSpace(text[len(text)-1]) {
				end()
			}
		case *syntax.DblQuoted:
			if list, ok := e.all(p); ok {
				for j, a := range list {
					if j > 0 {
						end()
					}
					cur.add(a, true)
					open = true
				}
				continue
			}
			cur.add(e.part(p, true), true)
			open = true
		case *syntax.Lit:
			s := e.part(p, false)
			if i == 0 && (p.Value == "~" || strings.HasPrefix(p.Value, "~/")) {
				s = e.get("HOME") + s[1:]
			}
			cur.add(s, strings.Contains(p.Value, `\`))
			open = true
		default:
			cur.add(e.part(p, false), true)
			open = true
		}
	}
	end()
	return out
}

// all is "$@", which stays as many words as there are parameters.
func (e *expander) all(q *syntax.DblQuoted) ([]string, bool) {
	if len(q.Parts) != 1 {
		return nil, false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Param.Value != "@" || p.Length || p.Exp != nil {
		return nil, false
	}
	return e.t.Sh.Params, true
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }

func (e *expander) part(p syntax.WordPart, quoted bool) string {
	s := e.text(p, quoted)
	if e.size += len(s); e.size > wordsMax {
		panic(noMemory{})
	}
	return s
}

func (e *expander) text(p syntax.WordPart, quoted bool) string {
	switch p := p.(type) {
	case *syntax.Lit:
		return unescape(p.Value, quoted)
	case *syntax.SglQuoted:
		if p.Dollar {
			return escaped(p.Value)
		}
		return p.Value
	case *syntax.DblQuoted:
		var b strings.Builder
		for _, q := range p.Parts {
			b.WriteString(e.part(q, true))
		}
		return b.String()
	case *syntax.ParamExp:
		return e.param(p)
	case *syntax.CmdSubst:
		if e.used == len(e.subst) {
			panic(needSubst{p.Stmts})
		}
		e.used++
		return e.subst[e.used-1]
	case *syntax.ArithmExp:
		return strconv.FormatInt(e.arith(p.X), 10)
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

func (e *expander) get(name string) string {
	v, _ := e.lookup(name)
	return v
}

func (e *expander) lookup(name string) (string, bool) {
	t := e.t
	switch name {
	case "?":
		return strconv.Itoa(t.Status), true
	case "$":
		return strconv.Itoa(t.Sh.PID), true
	case "#":
		return strconv.Itoa(len(t.Sh.Params)), true
	case "@", "*":
		return strings.Join(t.Sh.Params, " "), true
	case "0":
		return t.Sh.Name, true
	case "!":
		if t.Sh.LastBG == 0 {
			return "", false
		}
		return strconv.Itoa(t.Sh.LastBG), true
	case "-":
		return "", true
	case "PWD":
		return t.Sh.Dir, true
	case "RANDOM":
		return strconv.Itoa(int((uint64(e.m.now)/1000*7919 + uint64(e.m.steps)*104729) % 32768)), true
	case "SECONDS":
		return strconv.Itoa(int(e.m.now.Sub(0).Seconds())), true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 1 && n <= len(t.Sh.Params) {
			return t.Sh.Params[n-1], true
		}
		return "", false
	}
	if v, ok := e.vars[name]; ok {
		return v, true
	}
	v, ok := t.Sh.Vars[name]
	return v, ok
}

func (e *expander) param(p *syntax.ParamExp) string {
	if p.Param == nil {
		return ""
	}
	name := p.Param.Value
	v, set := e.lookup(name)
	switch {
	case p.Length:
		if name == "@" || name == "*" {
			return strconv.Itoa(len(e.t.Sh.Params))
		}
		return strconv.Itoa(len([]rune(v)))
	case p.Slice != nil:
		return e.slice(v, p.Slice)
	case p.Repl != nil:
		return replace(v, e.pattern(p.Repl.Orig), e.word(p.Repl.With), p.Repl.All)
	case p.Exp == nil:
		if !set && e.t.Sh.NoUnset && name != "@" && name != "*" {
			panic(badExpansion{name + ": parameter not set"})
		}
		return v
	}
	missing := !set
	switch p.Exp.Op {
	case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull, syntax.AlternateUnsetOrNull, syntax.ErrorUnsetOrNull:
		missing = v == ""
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if missing {
			return e.word(p.Exp.Word)
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if missing {
			v = e.word(p.Exp.Word)
			e.vars[name] = v
		}
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if missing {
			return ""
		}
		return e.word(p.Exp.Word)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if missing {
			text := e.word(p.Exp.Word)
			if text == "" {
				text = "parameter not set"
			}
			panic(badExpansion{name + ": " + text})
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return trim(v, e.patternOf(p.Exp.Word), p.Exp.Op == syntax.RemLargeSuffix, false)
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return trim(v, e.patternOf(p.Exp.Word), p.Exp.Op == syntax.RemLargePrefix, true)
	}
	return v
}

func (e *expander) patternOf(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return e.pattern(w)
}

func (e *expander) slice(v string, s *syntax.Slice) string {
	r := []rune(v)
	from, n := int64(0), int64(len(r))
	if s.Offset != nil {
		from = e.arith(s.Offset)
	}
	if from < 0 {
		from += int64(len(r))
	}
	from = min(max(from, 0), int64(len(r)))
	if s.Length != nil {
		n = e.arith(s.Length)
	}
	to := from + n
	if n < 0 {
		to = int64(len(r)) + n
	}
	to = min(max(to, from), int64(len(r)))
	return string(r[from:to])
}

// trimMax bounds what pattern operators look at: they try every place.
const trimMax = 4096

func replace(v, pattern, with string, all bool) string {
	if len(v) > trimMax || pattern == "" {
		return v
	}
	var b strings.Builder
	for i := 0; i < len(v); {
		n := -1
		for j := len(v); j > i; j-- {
			if matches(pattern, v[i:j]) {
				n = j
				break
			}
		}
		if n < 0 {
			b.WriteByte(v[i])
			i++
			continue
		}
		b.WriteString(with)
		i = n
		if !all {
			b.WriteString(v[i:])
			break
		}
	}
	return b.String()
}

// trim removes the shortest or longest prefix or suffix that a pattern matches.
func trim(v, pattern string, longest, prefix bool) string {
	if len(v) > trimMax {
		return v
	}
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
	pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, "[!", "[^"), "/", slash)
	ok, err := path.Match(pattern, strings.ReplaceAll(s, "/", slash))
	return err == nil && ok
}
