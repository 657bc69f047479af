package cri

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/registry"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Config is one node's runtime and how fast it works.
type Config struct {
	Node string
	IP   string
	// Images are on the node from the beginning.
	Images []string

	Sandbox  time.Duration // namespaces and the pause container; the network plugin adds Network
	Network  time.Duration
	Create   time.Duration
	Start    time.Duration
	Stop     time.Duration // of a sandbox
	Manifest time.Duration // asking a registry for a manifest
	Unpack   time.Duration // of each new layer
	Jitter   float64
}

// DefaultConfig is a runtime on an SSD.
func DefaultConfig() Config {
	return Config{
		Sandbox: 70 * time.Millisecond, Network: 40 * time.Millisecond, Create: 25 * time.Millisecond, Start: 55 * time.Millisecond,
		Stop: 40 * time.Millisecond, Manifest: 25 * time.Millisecond, Unpack: 60 * time.Millisecond, Jitter: 0.2,
	}
}

// Network is what the runtime needs of the wires.
type Network interface {
	Do(replyTo kernel.ActorID, c network.Call)
	Listen(address string, actor kernel.ActorID)
	Unlisten(address string)
	Listening(address string) bool
	AddResponder(actor kernel.ActorID, r network.Responder)
	Resolve(namespace, name string) (ip string, ok bool)
	Fetch(from, to, path string) (code int, body, errText string)
}

// Plugin is the node's network plugin.
type Plugin interface {
	Add(sandboxID, podUID string) (ip, errText string)
	Del(sandboxID string)
	Ready() (ok bool, message string)
}

// Runtime is the actor "containerd/NODE".
type Runtime struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	net   Network
	cni   Plugin
	reg   *registry.Registry
	cfg   Config
	self  kernel.ActorID
	rand  *kernel.Rand

	state
}

// The runtime's events to itself.
type (
	// act carries a request out when it has taken its time.
	act struct{ Req any }
	// tick lets a container's process go on.
	tick struct{ ID string }
	// killAt ends a container that has not stopped in time.
	killAt struct{ ID string }
)

// New returns a node's runtime and registers it.
func New(k *kernel.Kernel, log *trace.Log, board *fault.Board, net Network, plugin Plugin, reg *registry.Registry, cfg Config) *Runtime {
	self := kernel.ActorID(stage.On(stage.Containerd, cfg.Node))
	r := &Runtime{k: k, log: log, board: board, net: net, cni: plugin, reg: reg, cfg: cfg, self: self, rand: k.Rand(string(self)), state: newState()}
	k.Register(self, r)
	net.AddResponder(self, r)
	return r
}

// Start puts the images in place that the node has from the beginning.
func (r *Runtime) Start() {
	for _, name := range r.cfg.Images {
		ref, err := registry.Normalize(name)
		if err != nil {
			continue
		}
		if img, bad := r.reg.Resolve(registry.Request{Ref: ref, Named: name}); bad == nil {
			r.keep(img)
		}
	}
}

// Handle implements kernel.Actor.
func (r *Runtime) Handle(ev kernel.Event) {
	switch e := ev.(type) {
	case tick: // processes run on even when the daemon is down
		r.advance(e.ID)
		return
	case killAt:
		r.kill(e.ID)
		return
	case tickExec:
		r.advanceExec(e.ID)
		return
	case execTimeout:
		r.execTimesOut(e)
		return
	case network.Request:
		r.serve(e)
		return
	}
	if r.stopped() {
		return // nobody answers the socket
	}
	switch e := ev.(type) {
	case act:
		r.carryOut(e.Req)
	default:
		r.k.Send(r.self, r.takes(ev), act{ev})
	}
}

func (r *Runtime) stopped() bool { return r.board.Hits(fault.ContainerdStopped, r.cfg.Node) }

// takes is how long a request keeps the runtime.
func (r *Runtime) takes(req any) time.Duration {
	var d time.Duration
	switch q := req.(type) {
	case RunPodSandbox:
		d = r.cfg.Sandbox
		if !q.HostNetwork {
			d += r.cfg.Network
		}
	case CreateContainer:
		d = r.cfg.Create
	case StartContainer:
		d = r.cfg.Start
	case StopPodSandbox:
		d = r.cfg.Stop
	default:
		return time.Millisecond
	}
	return r.rand.Jitter(d, r.cfg.Jitter)
}

func (r *Runtime) carryOut(req any) {
	switch q := req.(type) {
	case Status:
		ok, message := r.cni.Ready()
		r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "Status", NetworkReady: ok, NetworkMessage: message})
	case ImageStatus:
		r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "ImageStatus", Image: r.imageInfo(q.Image)})
	case ListImages:
		r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "ListImages", Images: r.listImages()})
	case ListContainers:
		r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "ListContainers", Containers: r.listContainers()})
	case ContainerLog:
		r.reply(q.ReplyTo, r.readLog(q))
	case RunPodSandbox:
		r.runSandbox(q)
	case StopPodSandbox:
		r.stopSandbox(q)
	case RemovePodSandbox:
		r.removeSandbox(q)
	case PullImage:
		r.pull(q)
	case pulling:
		r.pullLayers(q)
	case pulled:
		r.pullEnds(q)
	case CreateContainer:
		r.create(q)
	case StartContainer:
		r.start(q)
	case StopContainer:
		r.stop(q)
	case RemoveContainer:
		r.remove(q.ContainerID)
		r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "RemoveContainer"})
	case ExecSync:
		r.exec(q)
	}
}

func (r *Runtime) reply(to kernel.ActorID, resp Response) {
	r.k.Send(to, 200*time.Microsecond, resp)
}

// leastMemory is what runc itself needs while it starts a container: with a lower limit
// the kernel kills it.
const leastMemory = 6 << 20

// runcFailed begins every error of runc, as it comes through the shim.
const runcFailed = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "

func (r *Runtime) background(namespace string) bool { return namespace == "kube-system" }

func (r *Runtime) runSandbox(q RunPodSandbox) {
	resp := Response{Tag: q.Tag, Call: "RunPodSandbox"}
	id := r.rand.Hex(64)
	switch {
	case q.RuntimeHandler != "" && q.RuntimeHandler != "runc":
		resp.Err = fmt.Sprintf("rpc error: code = Unknown desc = unable to get OCI runtime for sandbox %q: no runtime for %q is configured", id, q.RuntimeHandler)
	case q.MemoryLimitBytes > 0 && q.MemoryLimitBytes < leastMemory:
		resp.Err = fmt.Sprintf("rpc error: code = Unknown desc = failed to start sandbox %q: %scontainer init was OOM-killed (memory limit too low?)", id, runcFailed)
	}
	if resp.Err != "" {
		r.reply(q.ReplyTo, resp)
		return
	}
	s := sandbox{ID: id, PodUID: q.PodUID, Namespace: q.Namespace, Name: q.Name, HostNetwork: q.HostNetwork, Hostname: q.Hostname, Ready: true, IP: r.cfg.IP}
	if !q.HostNetwork {
		ip, errText := r.cni.Add(id, q.PodUID)
		h := trace.Hop{
			Stage: stage.Sandbox, From: stage.Component(r.self), To: stage.On(stage.CNI, r.cfg.Node), Verb: "ADD",
			Object: trace.Ref{Kind: "Pod", Namespace: q.Namespace, Name: q.Name}, Background: r.background(q.Namespace),
		}
		if errText != "" {
			resp.Err = fmt.Sprintf("rpc error: code = Unknown desc = failed to setup network for sandbox %q: plugin type=\"bridge\" failed (add): %s", id, errText)
			h.Outcome, h.Message = trace.Failed, errText
			r.log.Record(h)
			r.reply(q.ReplyTo, resp)
			return
		}
		h.Message = ip
		r.log.Record(h)
		s.IP = ip
	}
	r.Sandboxes[id] = s
	resp.SandboxID, resp.PodIP = id, s.IP
	r.reply(q.ReplyTo, resp)
}

func (r *Runtime) stopSandbox(q StopPodSandbox) {
	if s, ok := r.Sandboxes[q.SandboxID]; ok {
		for _, id := range r.containersOf(q.SandboxID) {
			r.kill(id)
		}
		if !s.HostNetwork {
			r.cni.Del(s.ID)
		}
		s.Ready = false
		r.Sandboxes[s.ID] = s
	}
	r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "StopPodSandbox"})
}

func (r *Runtime) removeSandbox(q RemovePodSandbox) {
	for _, id := range r.containersOf(q.SandboxID) {
		r.remove(id)
	}
	if s, ok := r.Sandboxes[q.SandboxID]; ok {
		if s.Ready && !s.HostNetwork {
			r.cni.Del(s.ID)
		}
		delete(r.Sandboxes, s.ID)
		if !slices.ContainsFunc(sortedKeys(r.Sandboxes), func(id string) bool { return r.Sandboxes[id].PodUID == s.PodUID }) {
			for _, key := range sortedKeys(r.Volumes) {
				if strings.HasPrefix(key, s.PodUID+"/") {
					delete(r.Volumes, key)
				}
			}
		}
	}
	r.reply(q.ReplyTo, Response{Tag: q.Tag, Call: "RemovePodSandbox"})
}

func (r *Runtime) containersOf(sandboxID string) []string {
	var out []string
	for _, id := range sortedKeys(r.Containers) {
		if r.Containers[id].SandboxID == sandboxID {
			out = append(out, id)
		}
	}
	return out
}

func (r *Runtime) listContainers() []ContainerStatus {
	ids := sortedKeys(r.Containers)
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(r.Containers[a].CreatedAt, r.Containers[b].CreatedAt) })
	var out []ContainerStatus
	for _, id := range ids {
		c := r.Containers[id]
		s := r.Sandboxes[c.SandboxID]
		out = append(out, ContainerStatus{
			PodUID: c.PodUID, SandboxID: c.SandboxID, ContainerID: id, Name: c.Name, Attempt: c.Attempt, State: c.State,
			SandboxReady: s.Ready, PodIP: s.IP, Image: c.Image, StartedAt: c.StartedAt, FinishedAt: c.FinishedAt,
			ExitCode: c.ExitCode, Reason: c.Reason, Message: c.Message,
		})
	}
	return out
}

func (r *Runtime) readLog(q ContainerLog) Response {
	resp := Response{Tag: q.Tag, Call: "ContainerLog"}
	c, ok := r.Containers[q.ContainerID]
	if !ok {
		resp.Err = fmt.Sprintf("rpc error: code = NotFound desc = an error occurred when try to find container %q: not found", q.ContainerID)
		return resp
	}
	resp.Log = c.Log[:len(c.Log):len(c.Log)]
	return resp
}
