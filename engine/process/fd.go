package process

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fd is a file descriptor.
type fd struct {
	Kind fdKind
	Pipe int
	Path string // of a file, absolute
	Text string // that is left to read
}

type fdKind string

const (
	fdClosed fdKind = ""
	fdOut    fdKind = "stdout" // the process's own
	fdErr    fdKind = "stderr"
	fdLog    fdKind = "log" // the first process's, for another one
	fdNull   fdKind = "null"
	fdText   fdKind = "text" // read: a file's content, a here-document
	fdFile   fdKind = "file" // written
	fdPipe   fdKind = "pipe"
)

type pipe struct {
	ID  int
	Buf string
}

func (m *machine) newPipe() int {
	id := m.p.NextPipe
	m.p.NextPipe++
	m.p.Pipes = append(m.p.Pipes, pipe{ID: id})
	return id
}

func (m *machine) pipe(id int) *pipe {
	for i := range m.p.Pipes {
		if m.p.Pipes[i].ID == id {
			return &m.p.Pipes[i]
		}
	}
	return &pipe{}
}

// holds reports whether anybody has a pipe open for writing (or for reading).
func (m *machine) holds(id int, writing bool) bool {
	has := func(f *[3]fd) bool {
		if !writing {
			return f[0].Kind == fdPipe && f[0].Pipe == id
		}
		return f[1].Kind == fdPipe && f[1].Pipe == id || f[2].Kind == fdPipe && f[2].Pipe == id
	}
	for _, t := range m.p.Tasks {
		if t.Done {
			continue
		}
		if has(&t.Fd) {
			return true
		}
		for i := range t.Frames {
			f := &t.Frames[i]
			if f.Redir && has(&f.Fds) || writing && f.Pipe == id {
				return true
			}
		}
	}
	return false
}

// dropPipes forgets pipes that nobody has open.
func (m *machine) dropPipes() {
	m.p.Pipes = slices.DeleteFunc(m.p.Pipes, func(p pipe) bool { return !m.holds(p.ID, true) && !m.holds(p.ID, false) })
}

// write writes to a task's file descriptor.
func (m *machine) write(t *task, n int, s string) {
	if s == "" {
		return
	}
	switch f := t.Fd[n]; f.Kind {
	case fdOut:
		m.emit(Event{At: m.now, Kind: Out, Text: s})
	case fdErr:
		m.emit(Event{At: m.now, Kind: Err, Text: s})
	case fdLog:
		m.emit(Event{At: m.now, Kind: Log, Text: s})
	case fdFile:
		old, _ := m.readAbs(f.Path)
		if len(old)+len(s) <= textMax {
			m.writeAbs(f.Path, old+s)
		}
	case fdPipe:
		p := m.pipe(f.Pipe)
		captured := slices.ContainsFunc(m.p.Tasks, func(t *task) bool {
			return !t.Done && slices.ContainsFunc(t.Frames, func(g frame) bool { return g.Pipe == f.Pipe })
		})
		if !captured && !m.holds(f.Pipe, false) {
			t.Broken = true
			return
		}
		if len(p.Buf)+len(s) <= textMax {
			p.Buf += s
		}
		m.wakePipes()
	}
}

// read takes what there is to read from standard input. eof says that nothing more will
// come; when there is neither text nor the end, the task has to wait.
func (m *machine) read(t *task) (text string, eof bool) {
	switch f := &t.Fd[0]; f.Kind {
	case fdText:
		text, f.Text = f.Text, ""
		return text, true
	case fdPipe:
		p := m.pipe(f.Pipe)
		text, p.Buf = p.Buf, ""
		return text, !m.holds(f.Pipe, true)
	}
	return "", true
}

// unread gives back what was read too much.
func (m *machine) unread(t *task, text string) {
	switch f := &t.Fd[0]; f.Kind {
	case fdText:
		f.Text = text + f.Text
	case fdPipe:
		p := m.pipe(f.Pipe)
		p.Buf = text + p.Buf
	}
}

// open opens a file for writing or for reading.
func (m *machine) open(t *task, path string, write, add bool) (f fd, errText string) {
	switch path {
	case "/dev/null":
		return fd{Kind: fdNull}, ""
	case "/dev/stdin":
		return t.Fd[0], ""
	case "/dev/stdout":
		return t.Fd[1], ""
	case "/dev/stderr":
		return t.Fd[2], ""
	case "/proc/1/fd/1", "/proc/1/fd/2":
		switch {
		case !m.p.Spec.PIDOne:
			return fd{Kind: fdLog}, ""
		case path == "/proc/1/fd/1":
			return fd{Kind: fdOut}, ""
		}
		return fd{Kind: fdErr}, ""
	}
	p := t.abs(path)
	if !write {
		text, ok := m.readAbs(p)
		if !ok {
			return fd{}, "no such file"
		}
		return fd{Kind: fdText, Text: text}, ""
	}
	if _, there := m.readAbs(p); !there || !add {
		if why := m.writeAbs(p, ""); why != "" {
			return fd{}, why
		}
	}
	return fd{Kind: fdFile, Path: p}, ""
}

// redirect carries out redirections, from left to right.
func (m *machine) redirect(t *task, list []*syntax.Redirect, targets []string) bool {
	for i, r := range list {
		n, target := 1, targets[i]
		switch r.Op {
		case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
			n = 0
		}
		if r.N != nil {
			n = number(r.N.Value, -1)
		}
		if n < 0 || n > 2 {
			continue // there are no more of them here
		}
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.ClbOut, syntax.RdrAll, syntax.AppAll:
			f, why := m.open(t, target, true, r.Op == syntax.AppOut || r.Op == syntax.AppAll)
			if why != "" {
				m.write(t, 2, t.Sh.Name+": can't create "+target+": "+why+"\n")
				return false
			}
			t.Fd[n] = f
			if r.Op == syntax.RdrAll || r.Op == syntax.AppAll {
				t.Fd[2] = f
			}
		case syntax.RdrIn:
			f, why := m.open(t, target, false, false)
			if why != "" {
				m.write(t, 2, t.Sh.Name+": can't open "+target+": "+why+"\n")
				return false
			}
			t.Fd[n] = f
		case syntax.Hdoc:
			t.Fd[n] = fd{Kind: fdText, Text: target}
		case syntax.DashHdoc:
			lines := strings.Split(target, "\n")
			for i := range lines {
				lines[i] = strings.TrimLeft(lines[i], "\t")
			}
			t.Fd[n] = fd{Kind: fdText, Text: strings.Join(lines, "\n")}
		case syntax.WordHdoc:
			t.Fd[n] = fd{Kind: fdText, Text: target + "\n"}
		case syntax.DplOut, syntax.DplIn:
			if target == "-" {
				t.Fd[n] = fd{}
			} else if from := number(target, -1); from >= 0 && from <= 2 {
				t.Fd[n] = t.Fd[from]
			}
		}
	}
	return true
}
