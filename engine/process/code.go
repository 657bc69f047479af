package process

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Code is a place in a script, or an image's program. Scripts and programs are never
// changed, so that copies of a process share them.
type Code struct {
	Src     string // the script's text
	Node    syntax.Node
	List    []*syntax.Stmt
	Program *Program
}

// HashState says which place it is, for comparing two states of a process.
func (c Code) HashState() any {
	place := ""
	switch {
	case c.Node != nil:
		place = fmt.Sprintf("%T %d-%d", c.Node, c.Node.Pos().Offset(), c.Node.End().Offset())
	case len(c.List) > 0:
		place = fmt.Sprintf("list %d-%d", c.List[0].Pos().Offset(), c.List[len(c.List)-1].End().Offset())
	}
	return struct {
		Src, Place string
		Program    *Program
	}{c.Src, place, c.Program}
}

func (c Code) node(n syntax.Node) Code    { return Code{Src: c.Src, Node: n} }
func (c Code) list(l []*syntax.Stmt) Code { return Code{Src: c.Src, List: l} }

// depth is how deep parentheses and braces lie within each other, quotes or not.
func depth(text string) (most int) {
	open := 0
	for _, c := range []byte(text) {
		switch c {
		case '(', '{':
			open++
			most = max(most, open)
		case ')', '}':
			open = max(open-1, 0)
		}
	}
	return most
}

// parse reads a script as a POSIX shell does, or else as bash does.
func parse(text string) (Code, error) {
	if depth(text) > nestMax {
		return Code{}, errors.New("too deeply nested")
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil {
		var again error
		if f, again = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), ""); again != nil {
			return Code{}, err
		}
	}
	return Code{Src: text, List: f.Stmts}, nil
}

// script pushes a script onto a task; it runs in the task's own shell.
func (m *machine) script(t *task, text string) bool {
	c, err := parse(text)
	if err != nil {
		m.write(t, 2, t.Sh.Name+": syntax error: "+err.Error()+"\n")
		t.Status = 2
		return false
	}
	t.push(frame{Op: opList, Code: c})
	return true
}
