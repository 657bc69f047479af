package process

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"podwalk/engine/kernel"
)

// The steps of an image's program.
const (
	serveBegins = iota
	serveStarts
	serveBinds
	serveRuns
	serveStops
	serveStarved // over its memory limit
)

// oomAfter is how long a program lasts that wants more memory than it may have.
const oomAfter = 200 * time.Millisecond

const (
	bindTries = 5
	bindPause = 500 * time.Millisecond
)

// runProgram starts an image's program: here, or in the background where it wants that.
func (m *machine) runProgram(t *task, pr *Program, args []string) {
	first := arg(args, 1)
	switch {
	case pr.Version != "" && (first == "-v" || first == "-V" || first == "--version"):
		m.write(t, 2, pr.Version+"\n")
		t.Status = 0
		return
	case pr.Control != "" && first == pr.Control:
		signal := map[string]string{"stop": "TERM", "quit": "QUIT", "reload": "HUP"}[arg(args, 2)]
		for _, other := range m.p.Tasks {
			if running, _ := other.serving(); running != nil && running.Name == pr.Name && signal != "" && signal != "HUP" {
				m.signal(other, signal)
			}
		}
		if !m.p.Spec.PIDOne && signal != "" && signal != "HUP" {
			m.emit(Event{At: m.now, Kind: Kill, Text: signal})
		}
		t.Status = 0
		return
	}
	f := frame{Op: opLeaf, Args: args, Code: Code{Program: pr.with(args[1:])}}
	if pr.Foreground != "" && !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, pr.Foreground) }) {
		if child, ok := m.fork(t); ok {
			child.Simple, child.Argv = true, args
			child.Frames = nil
			child.push(f)
			t.Status = 0
		}
		return
	}
	t.push(f)
}

// with is a program as its command line wants it: with another port, root, or memory.
func (pr Program) with(args []string) *Program {
	for i := 0; i+1 < len(args); i++ {
		switch args[i] {
		case "":
		case pr.PortFlag:
			if n, err := strconv.ParseInt(args[i+1][strings.LastIndexByte(args[i+1], ':')+1:], 10, 32); err == nil {
				pr.Ports = []int32{int32(n)}
			}
		case pr.RootFlag:
			pr.Root = args[i+1]
		case pr.MemoryFlag:
			pr.Memory = bytesOf(args[i+1])
		}
	}
	return &pr
}

// bytesOf reads "250M".
func bytesOf(s string) int64 {
	unit := int64(1)
	if s != "" {
		if i := strings.IndexByte("KMG", s[len(s)-1]&^0x20); i >= 0 {
			unit = 1 << (10 * (i + 1))
			s = s[:len(s)-1]
		}
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	return n * unit
}

// serve is an image's own program.
func serve(c *call, pr *Program) (status int, done bool) {
	m, t, f := c.m, c.t, c.f
	switch f.Step {
	case serveBegins:
		if pr.Bare && len(f.Args) == 1 {
			return 0, true
		}
		if limit := m.p.Spec.Limit; limit > 0 && pr.Memory > limit {
			f.Step = serveStarved
			c.sleep(oomAfter)
			return 0, false
		}
		f.Step = serveStarts
		c.sleep(time.Duration(pr.Start))
	case serveStarts:
		if pr.Writes != "" {
			if mt, _ := m.p.Spec.Find(pr.Writes); mt.ReadOnly {
				pr.say(c, pr.Cannot)
				return 1, true
			}
		}
		f.Step = serveBinds
	case serveBinds:
		return c.bind(pr)
	case serveRuns:
		if f.Until != 0 && f.Until <= m.now {
			m.closePorts(t)
			if pr.After > 0 && f.Until == f.endsAt(pr) {
				return int(pr.Exit), true
			}
			return c.starved()
		}
		t.wait(blockForever, 0)
	case serveStops:
		return 0, true
	case serveStarved:
		return c.starved()
	}
	return 0, false
}

// starved ends a program that has used up its memory: the kernel kills it.
func (c *call) starved() (status int, done bool) {
	if c.t == c.m.first() && !c.t.Shell {
		c.m.end(c.t, 137, "OOMKilled")
		return 137, true
	}
	if c.t.Shell && !c.t.Simple {
		c.err("Killed\n")
	}
	return 137, true
}

// bind takes the program's ports, or ends it.
func (c *call) bind(pr *Program) (status int, done bool) {
	m, t, f := c.m, c.t, c.f
	ports := pr.Ports
	if pr.Any && len(ports) == 0 {
		if ports = m.p.Spec.Ports; len(ports) == 0 {
			ports = []int32{8080}
		}
	}
	for _, port := range ports {
		if slices.Contains(t.Ports, port) {
			continue
		}
		if !m.listen(t, port) {
			return c.taken(pr, port)
		}
	}
	for _, line := range pr.Log {
		pr.say(c, line)
	}
	f.Step, f.N = serveRuns, int(m.now)
	if pr.After > 0 {
		f.Until = f.endsAt(pr)
	}
	if limit := m.p.Spec.Limit; pr.Grow > 0 && limit > 0 {
		full := m.now.Add(time.Duration(float64(limit-pr.Memory) / float64(pr.Grow) * float64(time.Second)))
		if f.Until == 0 || full < f.Until {
			f.Until = full
		}
	}
	if f.Until != 0 {
		t.At = max(f.Until, m.now)
	}
	return 0, false
}

func (f *frame) endsAt(pr *Program) kernel.Time { return kernel.Time(f.N).Add(time.Duration(pr.After)) }

// taken is what a program does whose port somebody else has.
func (c *call) taken(pr *Program, port int32) (status int, done bool) {
	lines := pr.InUse
	if len(lines) == 0 {
		c.m.closePorts(c.t)
		pr.say(c, pr.Name+": bind: Address already in use")
		return 1, true
	}
	pr.say(c, strings.ReplaceAll(lines[0], "{port}", strconv.Itoa(int(port))))
	if c.f.N++; c.f.N < bindTries {
		c.sleep(bindPause)
		return 0, false
	}
	c.m.closePorts(c.t)
	for _, line := range lines[1:] {
		pr.say(c, line)
	}
	return 1, true
}

// listen takes a port for a task.
func (m *machine) listen(t *task, port int32) bool {
	for _, other := range m.p.Tasks {
		if slices.Contains(other.Ports, port) {
			return false
		}
	}
	if !m.w.Bind(port) {
		return false
	}
	t.Ports = append(t.Ports, port)
	m.emit(Event{At: m.now, Kind: Listen, Port: port})
	return true
}

func (pr *Program) say(c *call, line string) {
	line = strings.ReplaceAll(line, "{time}", c.m.now.Wall().UTC().Format("2006/01/02 15:04:05"))
	if pr.Stderr {
		c.err(line + "\n")
	} else {
		c.out(line + "\n")
	}
}

// Answer is what the process answers to an HTTP request at one of its ports; http is false
// where it does not speak HTTP there. access is the line that it logs.
func (p *Process) Answer(port int32, urlPath string, read func(path string) (string, bool)) (code int, body, access string, http bool) {
	for _, t := range p.Tasks {
		if t.Done || !slices.Contains(t.Ports, port) || len(t.Frames) == 0 {
			continue
		}
		pr := t.top().Code.Program
		if pr == nil {
			return 0, "", "", false
		}
		code, body = pr.answer(urlPath, read)
		return code, body, pr.Access, code != 0
	}
	return 0, "", "", false
}

func (pr *Program) answer(urlPath string, read func(path string) (string, bool)) (code int, body string) {
	urlPath, _, _ = strings.Cut(urlPath, "?")
	if pr.Any {
		return 200, "ok\n"
	}
	if pr.Root == "" {
		return 0, ""
	}
	name := strings.TrimSuffix(pr.Root, "/") + "/" + strings.TrimLeft(urlPath, "/")
	if strings.HasSuffix(name, "/") {
		if text, ok := read(name + "index.html"); ok {
			return 200, text
		}
		if pr.NoIndex != 0 {
			return pr.NoIndex, page(pr.NoIndex)
		}
		return 404, page(404)
	}
	if text, ok := read(name); ok {
		return 200, text
	}
	return 404, page(404)
}

func page(code int) string {
	title := map[int]string{403: "403 Forbidden", 404: "404 Not Found"}[code]
	return "<html>\n<head><title>" + title + "</title></head>\n<body>\n<center><h1>" + title + "</h1></center>\n</body>\n</html>\n"
}
