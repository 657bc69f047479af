package cri

import (
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"podwalk/engine/kernel"
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
	s, there := r.Sandboxes[q.SandboxID]
	user := q.User
	if user == "" {
		user = img.Image.User
	}
	switch {
	case !ok:
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = failed to create containerd container: image %q: not found", q.Image)
	case !there:
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = failed to find sandbox id %q: not found", q.SandboxID)
	case !knows(img.Image.Files["etc/passwd"], user):
		resp.Err = "failed to create containerd container: no users found"
	}
	if resp.Err != "" {
		r.reply(q.ReplyTo, resp)
		return
	}
	id := r.rand.Hex(64)
	c := &container{
		PodUID: q.PodUID, SandboxID: q.SandboxID, Name: q.Name, Attempt: q.Attempt, State: "created", ReplyTo: q.ReplyTo, CreatedAt: r.k.Now(),
		Image: img.info(0), StopSignal: q.StopSignal, Files: maps.Clone(img.Image.Files),
	}
	if c.Files == nil {
		c.Files = map[string]string{}
	}
	c.Files["etc/hostname"] = s.Hostname + "\n"
	if c.StopSignal == "" {
		c.StopSignal = img.Image.StopSignal
	}
	c.StopSignal = strings.TrimPrefix(c.StopSignal, "SIG")
	c.Spec = process.Spec{
		Argv: argv(q, img.Image.Entrypoint, img.Image.Cmd), Hostname: s.Hostname, Dir: q.WorkingDir, User: user,
		Image: img.Image.Programs, Tools: img.Image.Tools, Limit: q.MemoryLimit, IP: s.IP, PIDOne: true, Ports: q.Ports,
		Mounts: []process.Mount{{Path: "/", Volume: rootVolume, ReadOnly: q.ReadOnlyRootFS}},
		Env: []process.Var{
			{Name: "PATH", Value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, {Name: "HOSTNAME", Value: s.Hostname}, {Name: "HOME", Value: "/root"},
		},
	}
	if c.Spec.Dir == "" {
		c.Spec.Dir = img.Image.WorkingDir
	}
	c.Spec.Env = append(c.Spec.Env, img.Image.Env...)
	for _, e := range q.Env {
		c.Spec.Env = append(c.Spec.Env, process.Var(e))
	}
	r.mount(c, q)
	r.Containers[id] = c
	resp.ContainerID, resp.Image = id, c.Image
	r.reply(q.ReplyTo, resp)
}

// knows reports whether a user is a number, or a name in an image's /etc/passwd.
func knows(passwd, user string) bool {
	user, _, _ = strings.Cut(user, ":")
	if _, err := strconv.ParseUint(user, 10, 32); err == nil || user == "" || user == "root" {
		return true
	}
	for line := range strings.Lines(passwd) {
		if strings.HasPrefix(line, user+":") {
			return true
		}
	}
	return false
}

// mount puts the volumes in place that a container asks for.
func (r *Runtime) mount(c *container, q CreateContainer) {
	for i, m := range q.Mounts {
		name := m.Volume
		single := name == ""
		if single {
			name = fmt.Sprintf("%s#%d", q.Name, i)
		}
		if m.Outlives {
			name = outlives + name
		}
		key := volumeKey(c, name)
		if m.Files != nil {
			r.Volumes[key] = maps.Clone(m.Files)
		} else if r.Volumes[key] == nil {
			r.Volumes[key] = map[string]string{}
		}
		at := path.Clean(m.Path)
		c.Spec.Mounts = append(c.Spec.Mounts, process.Mount{Path: at, Volume: name, Sub: path.Clean("/" + m.SubPath)[1:], ReadOnly: m.ReadOnly})
		_, isFile := r.Volumes[key][m.SubPath]
		if _, overFile := c.Files[at[1:]]; overFile && !single && !isFile && c.Refused == "" {
			flags := "0x5000"
			if m.ReadOnly {
				flags = "0x5001"
			}
			c.Refused = fmt.Sprintf("error mounting %q to rootfs at %q: mount %s:%s (via /proc/self/fd/6), flags: %s: not a directory", m.HostPath, m.Path, m.HostPath, m.Path, flags)
		}
	}
	for dir := path.Clean("/" + c.Spec.Dir); dir != "/"; dir = path.Dir(dir) {
		if _, file := c.Files[dir[1:]]; file && c.Refused == "" {
			c.Refused = fmt.Sprintf("mkdir %s: not a directory", path.Clean(c.Spec.Dir))
		}
	}
}

// outlives marks volumes that are not one Pod's alone.
const outlives = "node/"

// volumeKey is where the files of a container's volume are.
func volumeKey(c *container, volume string) string {
	if strings.HasPrefix(volume, outlives) {
		return volume
	}
	return c.PodUID + "/" + volume
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
	p, why := process.Start(c.Spec, now, world{r, c})
	if c.Refused != "" {
		why = "error during container init: " + c.Refused
	}
	if why != "" {
		resp.Err = runcFailed + why
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
	case process.Out, process.Err, process.Log:
		c.write(e)
	case process.Listen:
		addr := c.address(e.Port)
		c.Listens = append(slices.Clone(c.Listens), addr)
		r.net.Listen(addr, r.self)
		r.Ports[addr] = id
	case process.Close:
		addr := c.address(e.Port)
		if r.Ports[addr] == id {
			c.Listens = slices.DeleteFunc(slices.Clone(c.Listens), func(a string) bool { return a == addr })
			r.net.Unlisten(addr)
			delete(r.Ports, addr)
		}
	case process.Exit:
		r.exited(id, c, e)
	}
}

func (c *container) address(port int32) string {
	return net.JoinHostPort(c.Spec.IP, strconv.Itoa(int(port)))
}

// write appends what a process wrote to its log, line by line. A line whose end has not
// come yet goes on with what comes next.
func (c *container) write(e process.Event) {
	stderr := e.Kind == process.Err
	text := e.Text
	if n := len(c.Log); c.Partial && n > 0 && c.Log[n-1].Stderr == stderr {
		text = c.Log[n-1].Text + text
		c.Log = c.Log[: n-1 : n-1]
	}
	c.Partial = !strings.HasSuffix(text, "\n")
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if len(line) > logLineMax {
			line = line[:logLineMax]
		}
		c.Log = append(c.Log, LogLine{At: e.At, Stderr: stderr, Text: line})
	}
	if len(c.Log) > logLinesMax {
		c.Log = slices.Clone(c.Log[len(c.Log)-logLinesMax:])
	}
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
	r.endExecs(id)
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
