package process

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// step lets the frame on top of a task do one small thing.
func (m *machine) step(t *task) {
	if len(t.Frames) == 0 {
		m.finish(t, t.Status)
		return
	}
	if len(t.Frames) > framesMax {
		m.write(t, 2, t.Sh.Name+": maximum function recursion depth exceeded\n")
		m.finish(t, 2)
		return
	}
	f := t.top()
	if len(t.Pending) > 0 && f.Op != opLeaf && f.Op != opChild && f.Child == 0 {
		m.trap(t)
		return
	}
	switch f.Op {
	case opStart:
		args := f.Args
		t.pop()
		if m.tooLong(args, m.p.Spec.Env) {
			m.write(t, 2, "exec "+args[0]+": argument list too long\n") // it is runc that cannot go on
			m.end(t, 255, "")
			return
		}
		m.external(t, args)
	case opList:
		if f.Step == len(f.Code.List) {
			t.pop()
			return
		}
		s := f.Code.List[f.Step]
		f.Step++
		t.push(frame{Op: opStmt, Code: f.Code.node(s)})
	case opStmt:
		m.stmt(t, f, f.Code.Node.(*syntax.Stmt))
	case opNode:
		m.node(t, f)
	case opTrap:
		t.Status = f.Status
		t.pop()
	case opFunc, opSource:
		t.pop()
	case opChild:
		if status, ok := m.reap(f.Child); ok {
			t.Status = status
			t.pop()
			return
		}
		t.wait(blockChild, f.Child)
	case opLeaf:
		m.leaf(t, f)
	case opExit:
		code := f.Status
		m.end(t, code, "")
	}
}

// trap runs the action of a signal that has come.
func (m *machine) trap(t *task) {
	name := t.Pending[0]
	t.Pending = t.Pending[1:]
	action := t.Sh.Traps[name]
	if action == "" {
		return
	}
	t.push(frame{Op: opTrap, Status: t.Status})
	m.script(t, action)
}

func (m *machine) list(t *task, c Code, list []*syntax.Stmt) {
	t.push(frame{Op: opList, Code: c.list(list)})
}

func (m *machine) stmt(t *task, f *frame, s *syntax.Stmt) {
	if f.Step == 1 {
		if s.Negated {
			t.Status = btoi(t.Status == 0)
		}
		t.pop()
		if t.Sh.ErrExit && t.Status != 0 && !s.Negated && checked(s.Cmd) && !t.tested() {
			m.finish(t, t.Status)
		}
		return
	}
	if s.Background {
		f.Step = 1
		m.background(t, f.Code, s)
		return
	}
	if len(s.Redirs) > 0 {
		var targets []string
		if !m.expand(t, f, func(e *expander) {
			targets = nil
			for _, r := range s.Redirs {
				switch {
				case r.Hdoc != nil:
					targets = append(targets, e.word(r.Hdoc))
				default:
					targets = append(targets, e.word(r.Word))
				}
			}
		}) {
			return
		}
		f.Fds, f.Redir = t.Fd, !isExec(s.Cmd)
		if !m.redirect(t, s.Redirs, targets) {
			f.Step, t.Status = 1, 1
			return
		}
	}
	f.Step = 1
	if s.Cmd == nil {
		t.Status = 0
		return
	}
	t.push(frame{Op: opNode, Code: f.Code.node(s.Cmd)})
}

// checked says which commands end a shell with set -e: those whose parts have not been
// looked at already.
func checked(c syntax.Command) bool {
	switch c := c.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	case *syntax.CallExpr, *syntax.Subshell, *syntax.ArithmCmd, *syntax.TestClause, *syntax.DeclClause:
		return true
	}
	return false
}

// tested reports whether somebody further up looks at the status.
func (t *task) tested() bool {
	for i := range t.Frames {
		f := &t.Frames[i]
		switch n := f.Code.Node.(type) {
		case *syntax.IfClause, *syntax.WhileClause:
			if f.Step == 1 {
				return true
			}
		case *syntax.BinaryCmd:
			if f.Step == 1 && (n.Op == syntax.AndStmt || n.Op == syntax.OrStmt) {
				return true
			}
		case *syntax.Stmt:
			if n.Negated {
				return true
			}
		}
	}
	return false
}

// isExec recognises "exec > file", whose redirections stay.
func isExec(c syntax.Command) bool {
	call, ok := c.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && call.Args[0].Lit() == "exec"
}

// background starts a job beside the script.
func (m *machine) background(t *task, c Code, s *syntax.Stmt) {
	child, ok := m.fork(t)
	if !ok {
		return
	}
	child.Fd[0] = fd{Kind: fdNull}
	plain := *s
	plain.Background = false
	_, child.Simple = s.Cmd.(*syntax.CallExpr)
	child.push(frame{Op: opStmt, Code: c.node(&plain)})
	t.Sh.Jobs = append(t.Sh.Jobs, child.PID)
	t.Sh.LastBG, t.Status = child.PID, 0
}

// node runs a command by its kind.
func (m *machine) node(t *task, f *frame) {
	switch n := f.Code.Node.(type) {
	case *syntax.CallExpr:
		m.call(t, f, n)
	case *syntax.Block:
		if f.Step++; f.Step == 1 {
			m.list(t, f.Code, n.Stmts)
		} else {
			t.pop()
		}
	case *syntax.Subshell:
		if child, ok := m.fork(t); ok {
			m.list(child, f.Code, n.Stmts)
			t.pop()
			m.await(t, child.PID)
		} else {
			t.pop()
		}
	case *syntax.BinaryCmd:
		m.binary(t, f, n)
	case *syntax.IfClause:
		m.ifClause(t, f, n)
	case *syntax.WhileClause:
		m.while(t, f, n)
	case *syntax.ForClause:
		m.forClause(t, f, n)
	case *syntax.CaseClause:
		m.caseClause(t, f, n)
	case *syntax.FuncDecl:
		t.Status = 0
		if n.Name == nil {
			m.unsupported(t, "a function without a name")
		} else {
			t.Sh.Funcs[n.Name.Value] = f.Code.node(n.Body)
		}
		t.pop()
	case *syntax.DeclClause:
		m.declare(t, f, n)
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
		ok := false
		if m.expand(t, f, func(e *expander) {
			switch n := n.(type) {
			case *syntax.ArithmCmd:
				ok = e.arith(n.X) != 0
			case *syntax.LetClause:
				for _, x := range n.Exprs {
					ok = e.arith(x) != 0
				}
			case *syntax.TestClause:
				ok = e.test(n.X)
			}
		}) {
			t.Status = btoi(!ok)
			t.pop()
		}
	case *syntax.TimeClause:
		if f.Step++; f.Step == 1 && n.Stmt != nil {
			t.push(frame{Op: opStmt, Code: f.Code.node(n.Stmt)})
		} else {
			t.pop()
		}
	default:
		m.unsupported(t, fmt.Sprintf("%T", n))
		t.pop()
	}
}

func (m *machine) unsupported(t *task, what string) {
	m.write(t, 2, t.Sh.Name+": "+what+" is not known here\n")
	t.Status = 2
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// await lets a task wait for another and take its status.
func (m *machine) await(t *task, pid int) {
	t.push(frame{Op: opChild, Child: pid})
	t.wait(blockChild, pid)
}

func (m *machine) binary(t *task, f *frame, b *syntax.BinaryCmd) {
	if b.Op == syntax.Pipe || b.Op == syntax.PipeAll {
		m.pipeline(t, f, b)
		return
	}
	switch f.Step {
	case 0:
		f.Step = 1
		t.push(frame{Op: opStmt, Code: f.Code.node(b.X)})
	case 1:
		if (t.Status == 0) != (b.Op == syntax.AndStmt) {
			t.pop()
			return
		}
		f.Step = 2
		t.push(frame{Op: opStmt, Code: f.Code.node(b.Y)})
	default:
		t.pop()
	}
}

// pipeline runs both sides at the same time, and waits for both.
func (m *machine) pipeline(t *task, f *frame, b *syntax.BinaryCmd) {
	switch f.Step {
	case 0:
		left, ok := m.fork(t)
		if !ok {
			t.pop()
			return
		}
		right, ok := m.fork(t)
		if !ok {
			m.end(left, 2, "")
			t.pop()
			return
		}
		id := m.newPipe()
		left.Fd[1] = fd{Kind: fdPipe, Pipe: id}
		if b.Op == syntax.PipeAll {
			left.Fd[2] = left.Fd[1]
		}
		right.Fd[0] = fd{Kind: fdPipe, Pipe: id}
		_, left.Simple = b.X.Cmd.(*syntax.CallExpr)
		_, right.Simple = b.Y.Cmd.(*syntax.CallExpr)
		left.push(frame{Op: opStmt, Code: f.Code.node(b.X)})
		right.push(frame{Op: opStmt, Code: f.Code.node(b.Y)})
		f.Step, f.N, f.Child = 1, left.PID, right.PID
		t.wait(blockChild, right.PID)
	case 1:
		status, ok := m.reap(f.Child)
		if !ok {
			t.wait(blockChild, f.Child)
			return
		}
		f.Status, f.Child, f.Step = status, f.N, 2
	default:
		if _, ok := m.reap(f.Child); !ok {
			t.wait(blockChild, f.Child)
			return
		}
		t.Status = f.Status
		t.pop()
	}
}

func (m *machine) ifClause(t *task, f *frame, c *syntax.IfClause) {
	switch f.Step {
	case 0:
		f.Step = 1
		if len(c.Cond) == 0 { // else
			f.Step = 2
			m.list(t, f.Code, c.Then)
			return
		}
		m.list(t, f.Code, c.Cond)
	case 1:
		switch {
		case t.Status == 0:
			f.Step = 2
			m.list(t, f.Code, c.Then)
		case c.Else != nil:
			f.Code, f.Step = f.Code.node(c.Else), 0
		default:
			t.Status = 0
			t.pop()
		}
	default:
		t.pop()
	}
}

func (m *machine) while(t *task, f *frame, c *syntax.WhileClause) {
	switch f.Step {
	case 0:
		f.Step = 1
		m.list(t, f.Code, c.Cond)
	case 1:
		if (t.Status == 0) == c.Until {
			t.Status = f.Status
			t.pop()
			return
		}
		f.Step = 2
		m.list(t, f.Code, c.Do)
	default:
		f.Status, f.Step = t.Status, 0
		m.lap(t)
	}
}

func (m *machine) forClause(t *task, f *frame, c *syntax.ForClause) {
	it, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		m.cFor(t, f, c)
		return
	}
	if f.Step == 0 {
		items := t.Sh.Params
		if it.InPos.IsValid() && !m.expand(t, f, func(e *expander) { items = e.fields(it.Items) }) {
			return
		}
		f.Args, f.Step, t.Status = items, 1, 0
	}
	if f.N == len(f.Args) {
		t.pop()
		return
	}
	t.set(it.Name.Value, f.Args[f.N])
	f.N++
	t.At = t.At.Add(lapTime)
	m.list(t, f.Code, c.Do)
}

// cFor is for ((…;…;…)).
func (m *machine) cFor(t *task, f *frame, c *syntax.ForClause) {
	loop, ok := c.Loop.(*syntax.CStyleLoop)
	if !ok {
		m.unsupported(t, "this kind of for")
		t.pop()
		return
	}
	eval := func(x syntax.ArithmExpr, otherwise int64) (v int64, ok bool) {
		v = otherwise
		ok = m.expand(t, f, func(e *expander) {
			if x != nil {
				v = e.arith(x)
			}
		})
		return v, ok
	}
	switch f.Step {
	case 0:
		if _, ok := eval(loop.Init, 0); ok {
			f.Step, t.Status = 1, 0
		}
	case 1:
		v, ok := eval(loop.Cond, 1)
		switch {
		case !ok:
		case v == 0:
			t.pop()
		default:
			f.Step = 2
			m.list(t, f.Code, c.Do)
		}
	default:
		if _, ok := eval(loop.Post, 0); ok {
			f.Step = 1
			m.lap(t)
		}
	}
}

func (m *machine) caseClause(t *task, f *frame, c *syntax.CaseClause) {
	if f.Step == 1 {
		t.pop()
		return
	}
	found := -1
	if !m.expand(t, f, func(e *expander) {
		found = -1
		word := e.word(c.Word)
		for i, item := range c.Items {
			if slices.ContainsFunc(item.Patterns, func(p *syntax.Word) bool { return matches(e.pattern(p), word) }) {
				found = i
				return
			}
		}
	}) {
		return
	}
	f.Step, t.Status = 1, 0
	if found >= 0 {
		m.list(t, f.Code, c.Items[found].Stmts)
	}
}

// declare is export, local, readonly, declare.
func (m *machine) declare(t *task, f *frame, c *syntax.DeclClause) {
	var values []string
	if !m.expand(t, f, func(e *expander) {
		values = nil
		for _, a := range c.Args {
			values = append(values, e.value(a))
		}
	}) {
		return
	}
	for i, a := range c.Args {
		if a.Name == nil {
			continue
		}
		name := a.Name.Value
		switch c.Variant.Value {
		case "export":
			t.Sh.Export[name] = true
		case "local":
			t.keepInFunction(name)
		}
		if !a.Naked {
			t.set(name, values[i])
		}
	}
	t.Status = 0
	t.pop()
}

// set gives a variable a value.
func (t *task) set(name, value string) {
	if len(value) > textMax {
		t.Full, value = true, ""
	}
	t.Sh.Vars[name] = value
}

// call runs a simple command: assignments, or a command with its arguments.
func (m *machine) call(t *task, f *frame, c *syntax.CallExpr) {
	if f.Step == 1 {
		t.pop()
		return
	}
	var args, values []string
	substituted := f.Child != 0 || len(f.Subst) > 0
	if !m.expand(t, f, func(e *expander) {
		values = nil
		args = e.fields(c.Args)
		for _, a := range c.Assigns {
			values = append(values, e.value(a))
		}
	}) {
		return
	}
	if t.Sh.Trace {
		m.write(t, 2, "+ "+strings.Join(append(traced(c.Assigns, values), args...), " ")+"\n")
	}
	if len(args) == 0 {
		for i, a := range c.Assigns {
			t.set(a.Name.Value, values[i])
		}
		if !substituted {
			t.Status = 0
		}
		t.pop()
		return
	}
	for i, a := range c.Assigns {
		name := a.Name.Value
		f.Saved = append(slices.Clip(f.Saved), t.keep(name))
		t.set(name, values[i])
		t.Sh.Export[name] = true
	}
	f.Step = 1
	m.start(t, args)
}

func traced(assigns []*syntax.Assign, values []string) []string {
	var out []string
	for i, a := range assigns {
		out = append(out, a.Name.Value+"="+values[i])
	}
	return out
}

// start runs a command by its name: a function, a part of the shell, or a program.
func (m *machine) start(t *task, args []string) {
	if body, ok := t.Sh.Funcs[args[0]]; ok {
		t.push(frame{Op: opFunc, Params: t.Sh.Params})
		t.Sh.Params = args[1:]
		m.lap(t)
		t.push(frame{Op: opStmt, Code: body})
		return
	}
	if b, ok := builtins[args[0]]; ok {
		b(m, t, args)
		return
	}
	m.external(t, args)
}

// unwind ends frames down to the one that stop accepts; ok is false where there is none,
// and then nothing has happened.
func (t *task) unwind(stop func(*frame) bool) (f *frame, ok bool) {
	for i := len(t.Frames) - 1; i >= 0; i-- {
		if t.Frames[i].Op == opTrap { // a trap cannot leave a loop around it
			return nil, false
		}
		if !stop(&t.Frames[i]) {
			continue
		}
		for len(t.Frames) > i+1 {
			t.pop()
		}
		return t.top(), true
	}
	return nil, false
}

func isLoop(f *frame) bool {
	switch f.Code.Node.(type) {
	case *syntax.WhileClause, *syntax.ForClause:
		return f.Op == opNode
	}
	return false
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return otherwise
}
