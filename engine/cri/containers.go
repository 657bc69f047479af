package cri

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/process"
)

// rootVolume is a container's own file system, which its execs share with it.
const rootVolume = "root"

const (
	logLinesMax = 10_000 // kept of one container
	logLineMax  = 16 << 10
)

func (r *Runtime) create(q CreateContainer) {
	resp := Response{Tag: q.Tag, Call: "CreateContainer"}
	img, ok := r.find(q.Image)
	if !ok {
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = failed to create containerd container: image %q: not found", q.Image)
		r.reply(q.ReplyTo, resp)
		return
	}
	s := r.Sandboxes[q.SandboxID]
	id := r.rand.Hex(64)
	c := &container{
		PodUID: q.PodUID, SandboxID: q.SandboxID, Name: q.Name, Attempt: q.Attempt, State: "created", ReplyTo: q.ReplyTo,
		Image: img.info(0), StopSignal: q.StopSignal, Files: map[string]string{},
	}
	if c.StopSignal == "" {
		c.StopSignal = img.Image.StopSignal
	}
	c.StopSignal = strings.TrimPrefix(c.StopSignal, "SIG")
	c.Spec = process.Spec{
		Argv: argv(q, img.Image.Entrypoint, img.Image.Cmd), Hostname: s.Hostname, Dir: q.WorkingDir,
		Image: img.Image.Programs, Tools: img.Image.Tools, Limit: q.MemoryLimit, IP: s.IP, PIDOne: true, Ports: q.Ports,
		Mounts: []process.Mount{{Path: "/", Volume: rootVolume}},
	}
	c.Spec.Env = append(c.Spec.Env, process.Var{Name: "PATH", Value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		process.Var{Name: "HOSTNAME", Value: s.Hostname}, process.Var{Name: "HOME", Value: "/root"})
	for _, e := range q.Env {
		c.Spec.Env = append(c.Spec.Env, process.Var(e))
	}
	for i, m := range q.Mounts {
		name := m.Volume
		if name == "" {
			name = fmt.Sprintf("%s#%d", q.Name, i)
		}
		key := q.PodUID + "/" + name
		files := r.Volumes[key]
		if files == nil {
			files = map[string]string{}
		}
		if m.Files != nil {
			files = cloneFiles(m.Files)
		}
		r.Volumes[key] = files
		c.Spec.Mounts = append(c.Spec.Mounts, process.Mount{Path: path.Clean(m.Path), Volume: name, ReadOnly: m.ReadOnly})
	}
	r.Containers[id] = c
	resp.ContainerID, resp.Image = id, c.Image
	r.reply(q.ReplyTo, resp)
}

func argv(q CreateContainer, entrypoint, cmd []string) []string {
	switch {
	case len(q.Command) > 0:
		return append(slices.Clone(q.Command), q.Args...)
	case len(q.Args) > 0:
		return append(slices.Clone(entrypoint), q.Args...)
	}
	return append(slices.Clone(entrypoint), cmd...)
}

// start is runc's part: the first process begins, or does not.
func (r *Runtime) start(q StartContainer) {
	resp := Response{Tag: q.Tag, Call: "StartContainer", ContainerID: q.ContainerID}
	c, ok := r.Containers[q.ContainerID]
	if !ok {
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = an error occurred when try to find container %q: not found", q.ContainerID)
		r.reply(q.ReplyTo, resp)
		return
	}
	now := r.k.Now()
	p, found := process.Start(c.Spec, now)
	if !found {
		what := ""
		if len(c.Spec.Argv) > 0 {
			what = c.Spec.Argv[0]
		}
		why := "executable file not found in $PATH"
		if strings.Contains(what, "/") {
			why = "stat " + what + ": no such file or directory"
		}
		resp.Err = fmt.Sprintf("%sexec: %q: %s", runcFailed, what, why)
		c.State, c.ExitCode, c.Reason, c.StartedAt, c.FinishedAt = "exited", 128, "StartError", 0, now
		c.Message = resp.Err
		r.reply(q.ReplyTo, resp)
		return
	}
	c.State, c.StartedAt, c.Proc = "running", now, p
	r.reply(q.ReplyTo, resp)
	r.advance(q.ContainerID)
}

// advance lets a container's process run up to now and carries out what it did.
func (r *Runtime) advance(id string) {
	c, ok := r.Containers[id]
	if !ok || c.State != "running" {
		return
	}
	r.k.Cancel(c.Timer)
	c.Timer = kernel.Timer{}
	p := c.Proc.Clone() // a snapshot may hold the old one
	c.Proc = p
	events, next := p.Advance(r.k.Now(), world{r, c})
	for _, e := range events {
		r.happened(id, c, e)
	}
	if c.State == "running" && next != 0 {
		c.Timer = r.k.Send(r.self, next.Sub(r.k.Now()), tick{id})
	}
}

func (r *Runtime) happened(id string, c *container, e process.Event) {
	switch e.Kind {
	case process.Out, process.Err:
		c.write(e)
	case process.Listen:
		addr := net.JoinHostPort(c.Spec.IP, strconv.Itoa(int(e.Port)))
		c.Listens = append(slices.Clone(c.Listens), addr)
		r.net.Listen(addr, r.self)
		r.Ports[addr] = id
	case process.Write, process.Remove:
		r.change(c, e)
	case process.Exit:
		r.exited(id, c, e)
	}
}

// write appends what a process wrote to its log, line by line.
func (c *container) write(e process.Event) {
	text := e.Text
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if len(line) > logLineMax {
			line = line[:logLineMax]
		}
		c.Log = append(c.Log, LogLine{At: e.At, Stderr: e.Kind == process.Err, Text: line})
	}
	if len(c.Log) > logLinesMax {
		c.Log = slices.Clone(c.Log[len(c.Log)-logLinesMax:])
	}
}

// change puts a write of a process into the files that it shares.
func (r *Runtime) change(c *container, e process.Event) {
	into := cloneFiles(r.files(c, e.Vol))
	if e.Kind == process.Remove {
		for f := range into {
			if f == e.Path || strings.HasPrefix(f, e.Path+"/") {
				delete(into, f)
			}
		}
	} else {
		into[e.Path] = e.Text
	}
	if e.Vol == rootVolume {
		c.Files = into
		if e.Path == "dev/termination-log" {
			c.Message = e.Text
		}
	} else {
		r.Volumes[c.PodUID+"/"+e.Vol] = into
	}
}

func (r *Runtime) files(c *container, volume string) map[string]string {
	if volume == rootVolume {
		return c.Files
	}
	return r.Volumes[c.PodUID+"/"+volume]
}

func cloneFiles(in map[string]string) map[string]string {
	out := make(map[string]string, len(in)+1)
	for k, v := range in {
		out[k] = v
	}
	return out
}

// exited tells the kubelet that a container's first process is gone.
func (r *Runtime) exited(id string, c *container, e process.Event) {
	for _, addr := range c.Listens {
		r.net.Unlisten(addr)
		delete(r.Ports, addr)
	}
	r.k.Cancel(c.Timer)
	r.k.Cancel(c.Kill)
	c.Listens, c.Timer, c.Kill = nil, kernel.Timer{}, kernel.Timer{}
	c.State, c.ExitCode, c.FinishedAt = "exited", e.Code, e.At
	switch {
	case e.Why != "":
		c.Reason = e.Why
	case e.Code == 0:
		c.Reason = "Completed"
	default:
		c.Reason = "Error"
	}
	if c.ReplyTo != "" {
		r.k.Send(c.ReplyTo, time.Millisecond, ContainerEvent{
			PodUID: c.PodUID, SandboxID: c.SandboxID, ContainerID: id, Name: c.Name, Type: Stopped,
			ExitCode: c.ExitCode, Reason: c.Reason, Message: c.Message, At: e.At,
		})
	}
	for _, w := range c.Waiting {
		r.reply(w.ReplyTo, Response{Tag: w.Tag, Call: "StopContainer", ContainerID: id, ExitCode: c.ExitCode})
	}
	c.Waiting = nil
}

func (r *Runtime) stop(q StopContainer) {
	c, ok := r.Containers[q.ContainerID]
	if !ok || c.State != "running" {
		resp := Response{Tag: q.Tag, Call: "StopContainer", ContainerID: q.ContainerID}
		if ok {
			resp.ExitCode = c.ExitCode
		}
		r.reply(q.ReplyTo, resp)
		return
	}
	c.Waiting = append(slices.Clone(c.Waiting), waiting{q.ReplyTo, q.Tag})
	if q.Timeout <= 0 {
		r.kill(q.ContainerID)
		return
	}
	if c.Kill == (kernel.Timer{}) {
		c.Kill = r.k.Send(r.self, q.Timeout, killAt{q.ContainerID})
	}
	c.Proc = c.Proc.Clone()
	c.Proc.Signal(c.StopSignal, r.k.Now())
	r.advance(q.ContainerID)
}

func (r *Runtime) kill(id string) {
	c, ok := r.Containers[id]
	if !ok || c.State != "running" {
		return
	}
	c.Proc = c.Proc.Clone()
	c.Proc.Signal("KILL", r.k.Now())
	r.advance(id)
}

func (r *Runtime) remove(id string) {
	r.kill(id)
	delete(r.Containers, id)
}

// exec runs a command beside a container's own process, in its file systems.
func (r *Runtime) exec(q ExecSync) {
	resp := Response{Tag: q.Tag, Call: "ExecSync", ContainerID: q.ContainerID}
	c, ok := r.Containers[q.ContainerID]
	if !ok || c.State != "running" {
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = failed to exec in container: failed to load task: no running task found: task %s not found", q.ContainerID)
		r.reply(q.ReplyTo, resp)
		return
	}
	spec := c.Spec
	spec.Argv, spec.PIDOne, spec.Stdin = q.Command, false, string(q.Stdin)
	now := r.k.Now()
	p, found := process.Start(spec, now)
	if !found {
		resp.Err = fmt.Sprintf("rpc error: code = Unknown desc = failed to exec in container: failed to start exec %q: OCI runtime exec failed: exec failed: unable to start container process: exec: %q: executable file not found in $PATH", r.rand.Hex(64), first(q.Command))
		r.reply(q.ReplyTo, resp)
		return
	}
	timeout := q.Timeout
	if timeout <= 0 {
		timeout = time.Hour
	}
	took := timeout
	events, _ := p.Advance(now.Add(timeout), world{r, c})
	resp.TimedOut = true
	for _, e := range events {
		switch e.Kind {
		case process.Out:
			resp.Stdout = append(resp.Stdout, e.Text...)
		case process.Err:
			resp.Stderr = append(resp.Stderr, e.Text...)
		case process.Write, process.Remove:
			r.change(c, e)
		case process.Exit:
			resp.TimedOut, resp.ExitCode, took = false, e.Code, e.At.Sub(now)
		}
	}
	if resp.TimedOut {
		resp.Err = fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(q.Command, " "), timeout)
	}
	resp.Took = took
	r.k.Send(r.self, took, endExec{Reply: resp, To: q.ReplyTo})
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// serve answers a call to one of the containers' ports.
func (r *Runtime) serve(q network.Request) {
	a := network.Answer{ID: q.ID}
	if c := r.Containers[r.Ports[q.Call.To]]; c == nil || c.State != "running" {
		a.Err = "dial tcp " + q.Call.To + ": connect: connection refused"
		r.k.Send(network.Self, 0, a)
		return
	}
	code, body, http := r.Respond(q.Call.To, q.Call.Path)
	if !http || q.Call.Protocol == network.GRPC {
		a.Err = "EOF"
	}
	a.Code, a.Body = code, []byte(body)
	r.k.Send(network.Self, time.Millisecond, a)
}

// world is what a container's processes see around them.
type world struct {
	r *Runtime
	c *container
}

// ReadFile implements process.World.
func (w world) ReadFile(volume, p string) (string, bool) {
	s, ok := w.r.files(w.c, volume)[p]
	return s, ok
}

// file finds an absolute path through the mounts.
func (w world) file(p string) (string, bool) {
	best := process.Mount{}
	for _, m := range w.c.Spec.Mounts {
		if (p == m.Path || m.Path == "/" || strings.HasPrefix(p, m.Path+"/")) && len(m.Path) >= len(best.Path) {
			best = m
		}
	}
	return w.ReadFile(best.Volume, strings.Trim(strings.TrimPrefix(p, best.Path), "/"))
}

// Fetch implements process.World. A script's own requests are answered at once.
func (w world) Fetch(url string) (code int, body, err string) {
	_, rest, _ := strings.Cut(url, "://")
	host, p, _ := strings.Cut(rest, "/")
	if !strings.Contains(host, ":") {
		host += ":80"
	}
	name, port, _ := strings.Cut(host, ":")
	ip := w.c.Spec.IP
	if name != "localhost" && name != "127.0.0.1" {
		found := false
		if ip, found = w.Resolve(name); !found {
			return 0, "", "bad address '" + name + "'"
		}
	}
	return w.r.net.Fetch(w.c.Spec.IP, net.JoinHostPort(ip, port), "/"+p)
}

// Resolve implements process.World.
func (w world) Resolve(name string) (string, bool) {
	return w.r.net.Resolve(w.r.Sandboxes[w.c.SandboxID].Namespace, name)
}

// Respond implements network.Responder.
func (r *Runtime) Respond(address, p string) (code int, body string, ok bool) {
	c := r.Containers[r.Ports[address]]
	if c == nil || c.State != "running" {
		return 0, "", false
	}
	return c.Proc.Answer(p, r.k.Now(), world{r, c}.file)
}
