package process

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// script parses and runs a script in the present shell.
func (m *machine) script(text string) int {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "sh")
	if err != nil {
		if f, err = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "sh"); err != nil {
			m.stderr("sh: syntax error: " + err.Error() + "\n")
			m.status = 2
			return 2
		}
	}
	m.stmts(f.Stmts)
	return m.status
}

func (m *machine) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		m.stmt(s)
		if m.loop > 0 || m.ret {
			return
		}
	}
}

func (m *machine) stmt(s *syntax.Stmt) {
	if m.steps++; m.steps > stepsMax {
		panic(suspend{0})
	}
	if m.depth++; m.depth > depthMax {
		m.stderr("sh: too many nested commands\n")
		panic(exited{code: 2})
	}
	defer func() { m.depth-- }()
	if s.Background {
		m.background(s)
		return
	}
	restore, ok := m.redirect(s.Redirs)
	if ok {
		m.cmd(s.Cmd)
	} else {
		m.status = 1
	}
	restore()
	if s.Negated {
		if m.status == 0 {
			m.status = 1
		} else {
			m.status = 0
		}
	}
}

// background runs a job beside the script: with a clock of its own.
func (m *machine) background(s *syntax.Stmt) {
	start := m.now
	j := job{}
	func() {
		defer func() {
			switch r := recover().(type) {
			case nil, exited:
				j.end = m.now
			case suspend: // still running
			default:
				panic(r)
			}
		}()
		copyOf := *s
		copyOf.Background = false
		m.stmt(&copyOf)
	}()
	m.now = start
	m.jobs = append(m.jobs, j)
	m.status = 0
}

// wait waits for all jobs.
func (m *machine) wait() {
	for _, j := range m.jobs {
		if j.end == 0 {
			m.forever()
		}
		if j.end > m.now {
			m.pass(j.end.Sub(m.now), true)
		}
	}
	m.jobs = nil
}

func (m *machine) cmd(c syntax.Command) {
	switch c := c.(type) {
	case nil:
		m.status = 0
	case *syntax.CallExpr:
		m.call(c)
	case *syntax.Block:
		m.stmts(c.Stmts)
	case *syntax.Subshell:
		m.subshell(func() { m.stmts(c.Stmts) })
	case *syntax.BinaryCmd:
		m.binary(c)
	case *syntax.IfClause:
		m.ifClause(c)
	case *syntax.WhileClause:
		m.while(c)
	case *syntax.ForClause:
		m.forClause(c)
	case *syntax.CaseClause:
		m.caseClause(c)
	case *syntax.FuncDecl:
		m.status = 0
		if c.Name == nil {
			m.stderr("sh: a function without a name is not supported\n")
			m.status = 2
			return
		}
		m.funcs[c.Name.Value] = c.Body
	case *syntax.ArithmCmd:
		m.status = btoi(m.arith(c.X) == 0)
	case *syntax.DeclClause:
		for _, a := range c.Args {
			m.assign(a)
			if a.Name != nil && c.Variant.Value == "export" {
				m.export[a.Name.Value] = true
			}
		}
		m.status = 0
	case *syntax.TestClause:
		m.status = btoi(!m.test(c.X))
	case *syntax.TimeClause:
		if c.Stmt != nil {
			m.stmt(c.Stmt)
		}
	default:
		m.stderr(fmt.Sprintf("sh: %T is not supported\n", c))
		m.status = 2
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// subshell runs f and takes back what it did to variables and the directory.
func (m *machine) subshell(f func()) {
	vars, dir, traps := cloneMap(m.vars), m.dir, cloneMap(m.traps)
	defer func() {
		m.vars, m.dir, m.traps = vars, dir, traps
		if r := recover(); r != nil {
			e, ok := r.(exited)
			if !ok || e.why != "" {
				panic(r)
			}
			m.status = int(e.code)
		}
	}()
	f()
}

func cloneMap(in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

func (m *machine) binary(b *syntax.BinaryCmd) {
	switch b.Op {
	case syntax.AndStmt:
		if m.stmt(b.X); m.status == 0 && m.loop == 0 && !m.ret {
			m.stmt(b.Y)
		}
	case syntax.OrStmt:
		if m.stmt(b.X); m.status != 0 && m.loop == 0 && !m.ret {
			m.stmt(b.Y)
		}
	case syntax.Pipe, syntax.PipeAll:
		m.pipe(b)
	}
}

// pipe runs the left side to its end and feeds the right one; a left side that never ends
// feeds what it has written so far.
func (m *machine) pipe(b *syntax.BinaryCmd) {
	var buf strings.Builder
	was, wasIn := m.capture, m.stdin
	m.capture = &buf
	var cut any
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(suspend); !ok {
					m.capture = was
					panic(r)
				}
				cut = r
			}
		}()
		m.subshell(func() { m.stmt(b.X) })
	}()
	m.capture, m.stdin = was, buf.String()
	m.subshell(func() { m.stmt(b.Y) })
	m.stdin = wasIn
	if cut != nil {
		panic(cut)
	}
}

func (m *machine) ifClause(c *syntax.IfClause) {
	for c != nil {
		if len(c.Cond) == 0 { // else
			m.stmts(c.Then)
			return
		}
		if m.stmts(c.Cond); m.loop > 0 || m.ret {
			return
		}
		if m.status == 0 {
			m.status = 0
			m.stmts(c.Then)
			return
		}
		c = c.Else
	}
	m.status = 0
}

// endLoop reports whether the loop ends after a pass.
func (m *machine) endLoop() bool {
	if m.ret {
		return true
	}
	if m.loop == 0 {
		return false
	}
	m.loop--
	return m.loop > 0 || !m.cont
}

func (m *machine) while(c *syntax.WhileClause) {
	status := 0
	for {
		m.stmts(c.Cond)
		if m.loop > 0 || m.ret {
			if m.endLoop() {
				break
			}
			continue
		}
		if (m.status == 0) == c.Until {
			break
		}
		m.stmts(c.Do)
		status = m.status
		if m.endLoop() {
			break
		}
		m.pass(10*time.Microsecond, false) // a loop that does nothing takes time too
	}
	m.status = status
}

func (m *machine) forClause(c *syntax.ForClause) {
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		m.stderr("sh: this kind of for is not supported\n")
		m.status = 2
		return
	}
	items := m.params
	if it.InPos.IsValid() {
		items = m.fields(it.Items)
	}
	m.status = 0
	for _, v := range items {
		m.vars[it.Name.Value] = v
		m.stmts(c.Do)
		if m.endLoop() {
			break
		}
	}
}

func (m *machine) caseClause(c *syntax.CaseClause) {
	word := m.word(c.Word)
	m.status = 0
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			if matches(m.word(p), word) {
				m.stmts(item.Stmts)
				return
			}
		}
	}
}

// redirect sets up a statement's redirections and returns what takes them back.
func (m *machine) redirect(list []*syntax.Redirect) (restore func(), ok bool) {
	capture, errTo, stdin := m.capture, m.errTo, m.stdin
	var after []func()
	ok = true
	for _, r := range list {
		fd := "1"
		if r.N != nil {
			fd = r.N.Value
		}
		target := ""
		if r.Word != nil {
			target = m.word(r.Word)
		}
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.ClbOut, syntax.RdrAll, syntax.AppAll:
			buf := &strings.Builder{}
			both := r.Op == syntax.RdrAll || r.Op == syntax.AppAll
			if fd == "2" && !both {
				m.errTo = buf
			} else {
				m.capture = buf
			}
			if both {
				m.errTo = buf
			}
			add := r.Op == syntax.AppOut || r.Op == syntax.AppAll
			after = append(after, func() { m.fill(target, buf.String(), add) })
		case syntax.DplOut:
			switch {
			case fd == "2" && target == "1":
				m.errTo = m.capture
				if m.capture == nil {
					m.errTo = errTo
				}
			case fd == "1" && target == "2":
				m.capture = m.errTo
				if m.errTo == nil {
					buf := &strings.Builder{}
					m.capture = buf
					after = append(after, func() { m.stderr(buf.String()) })
				}
			}
		case syntax.RdrIn:
			text, found := m.read(target)
			if !found && target != "/dev/null" {
				m.stderr("sh: can't open " + target + ": no such file\n")
				ok = false
			}
			m.stdin = text
		case syntax.Hdoc, syntax.DashHdoc:
			m.stdin = m.word(r.Hdoc)
		case syntax.WordHdoc:
			m.stdin = target + "\n"
		}
	}
	return func() {
		m.capture, m.errTo, m.stdin = capture, errTo, stdin
		for _, f := range after {
			f()
		}
	}, ok
}

// fill writes what was redirected to a file, or to the container's own output.
func (m *machine) fill(target, text string, add bool) {
	switch target {
	case "/dev/null":
		return
	case "/dev/stdout", "/proc/1/fd/1":
		m.stdout(text)
		return
	case "/dev/stderr", "/proc/1/fd/2":
		m.stderr(text)
		return
	}
	if add {
		if old, ok := m.read(target); ok {
			text = old + text
		}
	}
	if err := m.write(target, text); err != nil {
		m.stderr("sh: can't create " + target + ": " + err.Error() + "\n")
		m.status = 1
	}
}

func (m *machine) call(c *syntax.CallExpr) {
	args := m.fields(c.Args)
	if len(args) == 0 {
		m.status = 0
		for _, a := range c.Assigns {
			m.assign(a)
		}
		return
	}
	saved := map[string]string{}
	for _, a := range c.Assigns {
		saved[a.Name.Value] = m.vars[a.Name.Value]
		m.assign(a)
	}
	m.status = m.command(args)
	for n, v := range saved {
		m.vars[n] = v
	}
}

func (m *machine) assign(a *syntax.Assign) {
	if a.Name == nil || a.Naked {
		return
	}
	v := ""
	if a.Value != nil {
		v = m.word(a.Value)
	}
	if a.Append {
		v = m.vars[a.Name.Value] + v
	}
	m.vars[a.Name.Value] = v
}

// arith evaluates $((…)).
func (m *machine) arith(x syntax.ArithmExpr) int64 {
	switch x := x.(type) {
	case *syntax.Word:
		s := m.word(x)
		for range 10 {
			n, err := strconv.ParseInt(s, 0, 64)
			if err == nil {
				return n
			}
			v, ok := m.vars[s]
			if !ok {
				return 0
			}
			s = v
		}
	case *syntax.ParenArithm:
		return m.arith(x.X)
	case *syntax.UnaryArithm:
		return m.unary(x)
	case *syntax.BinaryArithm:
		return m.arithBinary(x)
	}
	return 0
}

func (m *machine) unary(x *syntax.UnaryArithm) int64 {
	v := m.arith(x.X)
	switch x.Op {
	case syntax.Minus:
		return -v
	case syntax.Not:
		return int64(btoi(v == 0))
	case syntax.Inc, syntax.Dec:
		d := int64(1)
		if x.Op == syntax.Dec {
			d = -1
		}
		if w, ok := x.X.(*syntax.Word); ok {
			m.vars[w.Lit()] = strconv.FormatInt(v+d, 10)
		}
		if x.Post {
			return v
		}
		return v + d
	}
	return v
}

func (m *machine) arithBinary(x *syntax.BinaryArithm) int64 {
	if w, ok := x.X.(*syntax.Word); ok {
		switch x.Op {
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn:
			v, old := m.arith(x.Y), m.arith(x.X)
			switch x.Op {
			case syntax.AddAssgn:
				v += old
			case syntax.SubAssgn:
				v = old - v
			case syntax.MulAssgn:
				v *= old
			}
			m.vars[w.Lit()] = strconv.FormatInt(v, 10)
			return v
		}
	}
	a, b := m.arith(x.X), m.arith(x.Y)
	switch x.Op {
	case syntax.Add:
		return a + b
	case syntax.Sub:
		return a - b
	case syntax.Mul:
		return a * b
	case syntax.Quo, syntax.Rem:
		if b == 0 {
			m.stderr("sh: divide by zero\n")
			panic(exited{code: 2})
		}
		if x.Op == syntax.Quo {
			return a / b
		}
		return a % b
	case syntax.Eql:
		return int64(btoi(a == b))
	case syntax.Neq:
		return int64(btoi(a != b))
	case syntax.Lss:
		return int64(btoi(a < b))
	case syntax.Leq:
		return int64(btoi(a <= b))
	case syntax.Gtr:
		return int64(btoi(a > b))
	case syntax.Geq:
		return int64(btoi(a >= b))
	case syntax.AndArit:
		return int64(btoi(a != 0 && b != 0))
	case syntax.OrArit:
		return int64(btoi(a != 0 || b != 0))
	}
	return 0
}

// test evaluates [[ … ]] as far as [ … ] goes.
func (m *machine) test(x syntax.TestExpr) bool {
	switch x := x.(type) {
	case *syntax.Word:
		return m.word(x) != ""
	case *syntax.ParenTest:
		return m.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			return !m.test(x.X)
		}
		w, _ := x.X.(*syntax.Word)
		ok, _ := m.condition([]string{x.Op.String(), m.word(w)})
		return ok
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest:
			return m.test(x.X) && m.test(x.Y)
		case syntax.OrTest:
			return m.test(x.X) || m.test(x.Y)
		}
		a, _ := x.X.(*syntax.Word)
		b, _ := x.Y.(*syntax.Word)
		op := x.Op.String()
		if op == "==" || op == "=" {
			return matches(m.word(b), m.word(a))
		}
		ok, _ := m.condition([]string{m.word(a), op, m.word(b)})
		return ok
	}
	return false
}
