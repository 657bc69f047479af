package cri

import (
	"fmt"
	"strings"
	"time"

	"podwalk/engine/kernel"
	"podwalk/engine/process"
)

// execution is a command that runs beside a container's own process, in its file systems.
type execution struct {
	Container      string
	ReplyTo        kernel.ActorID
	Proc           *process.Process // replaced before it is changed
	Timer, Alarm   kernel.Timer
	Since          kernel.Time
	Reply          Response
	Stdout, Stderr string
}

type (
	// tickExec lets an exec's process go on.
	tickExec struct{ ID string }
	// execTimeout ends an exec that takes too long.
	execTimeout struct {
		ID    string
		After time.Duration
	}
)

func (r *Runtime) exec(q ExecSync) {
	resp := Response{Tag: q.Tag, Call: "ExecSync", ContainerID: q.ContainerID}
	c, ok := r.Containers[q.ContainerID]
	if !ok || c.State != "running" {
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = failed to exec in container: failed to load task: no running task found: task %s not found", q.ContainerID)
		r.reply(q.ReplyTo, resp)
		return
	}
	id := r.rand.Hex(64)
	spec := c.Spec
	spec.Argv, spec.Init, spec.PIDOne, spec.Stdin = q.Command, c.Spec.Argv, false, string(q.Stdin)
	p, why := process.Start(spec, r.k.Now(), world{r, c})
	if why != "" {
		resp.Err = fmt.Sprintf("rpc error: code = Unknown desc = failed to exec in container: failed to start exec %q: OCI runtime exec failed: exec failed: unable to start container process: %s", id, why)
		r.reply(q.ReplyTo, resp)
		return
	}
	x := &execution{Container: q.ContainerID, ReplyTo: q.ReplyTo, Proc: p, Since: r.k.Now(), Reply: resp}
	if q.Timeout > 0 {
		x.Alarm = r.k.Send(r.self, q.Timeout, execTimeout{id, q.Timeout})
	}
	r.Execs[id] = x
	r.advanceExec(id)
}

func (r *Runtime) advanceExec(id string) {
	x, ok := r.Execs[id]
	if !ok {
		return
	}
	c := r.Containers[x.Container]
	r.k.Cancel(x.Timer)
	x.Timer = kernel.Timer{}
	x.Proc = x.Proc.Clone() // a snapshot may hold the old one
	events, next := x.Proc.Advance(r.k.Now(), world{r, c})
	for _, e := range events {
		switch e.Kind {
		case process.Out:
			x.Stdout += e.Text
		case process.Err:
			x.Stderr += e.Text
		case process.Log:
			c.write(e)
		case process.Kill:
			r.signal(x.Container, e.Text)
		case process.Exit:
			x.Reply.ExitCode = e.Code
			r.endExec(id)
			return
		}
	}
	if _, on := r.Execs[id]; on && next != 0 {
		x.Timer = r.k.Send(r.self, next.Sub(r.k.Now()), tickExec{id})
	}
}

// endExec gives an exec's answer, unless the daemon is not there to give it.
func (r *Runtime) endExec(id string) {
	x := r.Execs[id]
	r.k.Cancel(x.Timer)
	r.k.Cancel(x.Alarm)
	delete(r.Execs, id)
	x.Reply.Stdout, x.Reply.Stderr, x.Reply.Took = []byte(x.Stdout), []byte(x.Stderr), r.k.Now().Sub(x.Since)
	if !r.stopped() {
		r.reply(x.ReplyTo, x.Reply)
	}
}

func (r *Runtime) execTimesOut(e execTimeout) {
	x, ok := r.Execs[e.ID]
	if !ok {
		return
	}
	x.Reply.TimedOut = true
	x.Reply.Err = fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(x.Proc.Spec.Argv, " "), e.After)
	r.endExec(e.ID)
}

// endExecs ends what runs in a container whose first process is gone.
func (r *Runtime) endExecs(container string) {
	for _, id := range sortedKeys(r.Execs) {
		if x := r.Execs[id]; x.Container == container {
			x.Reply.ExitCode = 137
			r.endExec(id)
		}
	}
}

// signal sends a signal to a container's first process.
func (r *Runtime) signal(id, name string) {
	c, ok := r.Containers[id]
	if !ok || c.State != "running" {
		return
	}
	c.Proc = c.Proc.Clone()
	c.Proc.Signal(name, r.k.Now())
	r.advance(id)
}
