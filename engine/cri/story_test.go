package cri_test

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"podwalk/engine/cni"
	"podwalk/engine/cri"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/registry"
	"podwalk/engine/trace"
)

const kubelet kernel.ActorID = "kubelet/node01"

// node is a runtime with its network, and a kubelet that writes down what it hears.
type node struct {
	t     *testing.T
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	net   *network.Net
	rt    *cri.Runtime
	ids   map[string]string // name → id
	names map[string]string // id → name
	heard []any
	next  string // the name for the id that the next answer brings
}

func (n *node) Handle(ev kernel.Event) { n.heard = append(n.heard, ev) }

func newNode(t *testing.T, cidr string, images ...string) *node {
	k := kernel.New(1)
	n := &node{t: t, k: k, log: trace.New(k), board: fault.NewBoard(), ids: map[string]string{}, names: map[string]string{}}
	k.Attach("faults", n.board)
	n.net = network.New(k, n.log, n.board)
	n.net.Attach("172.30.0.11")
	plugin := cni.New(k, n.board, n.net, cni.Config{Node: "node01", PodCIDR: cidr})
	cfg := cri.DefaultConfig()
	cfg.Node, cfg.IP, cfg.Images, cfg.Jitter = "node01", "172.30.0.11", images, 0
	n.rt = cri.New(k, n.log, n.board, n.net, plugin, registry.New(n.board), cfg)
	n.rt.Start()
	k.Register(kubelet, n)
	return n
}

// ask sends a request and follows the run until its answer is there, or for so long.
func (n *node) ask(req any, patience time.Duration) string {
	n.k.Send("containerd/node01", 0, req)
	began := n.k.Now()
	for {
		for i, ev := range n.heard {
			if r, ok := ev.(cri.Response); ok {
				n.heard = append(n.heard[:i:i], n.heard[i+1:]...)
				return n.plain(n.told() + n.response(r, n.k.Now().Sub(began)))
			}
		}
		if at, ok := n.k.Next(); !ok || at > began.Add(patience) {
			n.k.AdvanceTo(began.Add(patience))
			return n.plain(n.told() + "no answer\n")
		}
		n.k.Step()
	}
}

var hex64 = regexp.MustCompile(`[0-9a-f]{64}`)

// plain puts names in the place of ids.
func (n *node) plain(s string) string {
	return hex64.ReplaceAllStringFunc(s, func(id string) string { return cmp.Or(n.names[id], "ID") })
}

func (n *node) response(r cri.Response, took time.Duration) string {
	if id := cmp.Or(r.ContainerID, r.SandboxID); id != "" && n.next != "" {
		n.ids[n.next], n.names[id], n.next = id, "<"+n.next+">", ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Call, took.Round(time.Millisecond))
	if r.Err != "" {
		return b.String() + "\n  " + r.Err + "\n"
	}
	switch r.Call {
	case "RunPodSandbox":
		fmt.Fprintf(&b, " %s", r.PodIP)
	case "PullImage", "ImageStatus":
		if r.Image.ID == "" {
			b.WriteString(" not here")
			break
		}
		fmt.Fprintf(&b, " %s %d bytes, %d of %d layers were here", r.Image.Ref, r.Image.SizeBytes, r.Image.Cached, r.Image.Layers)
	case "StopContainer":
		fmt.Fprintf(&b, " exit %d", r.ExitCode)
	case "ExecSync":
		fmt.Fprintf(&b, " exit %d %q %q", r.ExitCode, r.Stdout, r.Stderr)
	case "Status":
		fmt.Fprintf(&b, " network ready: %v %s", r.NetworkReady, r.NetworkMessage)
	}
	b.WriteString("\n")
	for _, l := range r.Log {
		fmt.Fprintf(&b, "  %s\n", l.Text)
	}
	for _, i := range r.Images {
		fmt.Fprintf(&b, "  %s %d\n", i.Ref, i.SizeBytes)
	}
	for _, c := range r.Containers {
		fmt.Fprintf(&b, "  %s %s exit %d %s\n", c.Name, c.State, c.ExitCode, c.Reason)
	}
	return b.String()
}

// told is what the runtime has said by itself, or the network.
func (n *node) told() string {
	var b strings.Builder
	rest := n.heard[:0]
	for _, ev := range n.heard {
		switch e := ev.(type) {
		case cri.ContainerEvent:
			fmt.Fprintf(&b, "event at %s: %s %s exit %d %s\n", time.Duration(e.At).Round(time.Millisecond), e.Name, e.Type, e.ExitCode, strings.TrimSpace(e.Reason+" "+e.Message))
		case network.Result:
			fmt.Fprintf(&b, "call: %d %q %s\n", e.Code, e.Body, e.Err)
		default:
			rest = append(rest, ev)
		}
	}
	n.heard = rest
	return b.String()
}

// create reads a container: a line each of "command WORD…" (the rest of a line after "sh"
// is one script), "env NAME=VALUE", "mount VOLUME PATH [ro]", "file PATH CONTENT".
func (n *node) create(d *datadriven.TestData) cri.CreateContainer {
	q := cri.CreateContainer{ReplyTo: kubelet, PodUID: "uid", SandboxID: n.ids["sandbox"]}
	d.ScanArgs(n.t, "name", &q.Name)
	d.ScanArgs(n.t, "image", &q.Image)
	if d.HasArg("memory") {
		var mib int64
		d.ScanArgs(n.t, "memory", &mib)
		q.MemoryLimit = mib << 20
	}
	d.MaybeScanArgs(n.t, "dir", &q.WorkingDir)
	d.MaybeScanArgs(n.t, "user", &q.User)
	if d.HasArg("port") {
		var port int
		d.ScanArgs(n.t, "port", &port)
		q.Ports = []int32{int32(port)}
	}
	q.ReadOnlyRootFS = d.HasArg("readonly")
	for line := range strings.Lines(d.Input) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "sh":
			q.Command = []string{"sh", "-c", rest}
		case "command":
			q.Command = strings.Fields(rest)
		case "args":
			q.Args = strings.Fields(rest)
		case "env":
			name, value, _ := strings.Cut(rest, "=")
			q.Env = append(q.Env, cri.EnvVar{Name: name, Value: value})
		case "mount":
			f := strings.Fields(rest)
			q.Mounts = append(q.Mounts, cri.Mount{Volume: f[0], Path: f[1], ReadOnly: len(f) > 2, HostPath: "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir/" + f[0]})
		case "file":
			path, text, _ := strings.Cut(rest, " ")
			q.Mounts = append(q.Mounts, cri.Mount{Path: path, Files: map[string]string{"": text + "\n"}})
		}
	}
	return q
}

func seconds(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	var s string
	d.ScanArgs(t, key, &s)
	v, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestStories tells what a node's runtime does and says.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var n *node
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "node" {
				cidr := "10.244.1.0/24"
				d.MaybeScanArgs(t, "cidr", &cidr)
				n = newNode(t, cidr, strings.Fields(d.Input)...)
				return ""
			}
			return n.command(d)
		})
	})
}

func (n *node) command(d *datadriven.TestData) string {
	t := n.t
	id := func() string {
		var name string
		d.ScanArgs(t, "name", &name)
		return n.ids[name]
	}
	const patience = 5 * time.Minute
	switch d.Cmd {
	case "sandbox":
		q := cri.RunPodSandbox{ReplyTo: kubelet, PodUID: "uid", Namespace: "default", Name: "web", Hostname: "web", HostNetwork: d.HasArg("host")}
		d.MaybeScanArgs(t, "handler", &q.RuntimeHandler)
		if d.HasArg("memory") {
			var mib int64
			d.ScanArgs(t, "memory", &mib)
			q.MemoryLimitBytes = mib << 20
		}
		n.next = "sandbox"
		return n.ask(q, patience)
	case "stop-sandbox":
		return n.ask(cri.StopPodSandbox{ReplyTo: kubelet, SandboxID: n.ids["sandbox"]}, patience)
	case "remove-sandbox":
		return n.ask(cri.RemovePodSandbox{ReplyTo: kubelet, SandboxID: n.ids["sandbox"]}, patience)
	case "pull":
		q := cri.PullImage{ReplyTo: kubelet, Image: d.CmdArgs[0].Key}
		d.MaybeScanArgs(t, "user", &q.Username)
		d.MaybeScanArgs(t, "password", &q.Password)
		return n.ask(q, patience)
	case "image":
		return n.ask(cri.ImageStatus{ReplyTo: kubelet, Image: d.CmdArgs[0].Key}, patience)
	case "images":
		return n.ask(cri.ListImages{ReplyTo: kubelet}, patience)
	case "status":
		return n.ask(cri.Status{ReplyTo: kubelet}, 10*time.Second)
	case "containers":
		return n.ask(cri.ListContainers{ReplyTo: kubelet}, patience)
	case "create":
		q := n.create(d)
		n.next = q.Name
		return n.ask(q, patience)
	case "start":
		return n.ask(cri.StartContainer{ReplyTo: kubelet, ContainerID: id()}, patience)
	case "stop":
		return n.ask(cri.StopContainer{ReplyTo: kubelet, ContainerID: id(), Timeout: seconds(t, d, "timeout")}, patience)
	case "remove":
		return n.ask(cri.RemoveContainer{ReplyTo: kubelet, ContainerID: id()}, patience)
	case "log":
		return n.ask(cri.ContainerLog{ReplyTo: kubelet, ContainerID: id()}, patience)
	case "exec":
		q := cri.ExecSync{ReplyTo: kubelet, ContainerID: id(), Command: strings.Fields(d.Input)}
		if script, ok := strings.CutPrefix(d.Input, "sh "); ok {
			q.Command = []string{"sh", "-c", script}
		}
		if d.HasArg("timeout") {
			q.Timeout = seconds(t, d, "timeout")
		}
		return n.ask(q, patience)
	case "run": // for so long
		n.k.AdvanceTo(n.k.Now().Add(seconds(t, d, "for")))
		return n.plain(n.told())
	case "call":
		n.net.Do(kubelet, network.Call{From: "172.30.0.12", To: d.CmdArgs[0].Key, Protocol: network.HTTP, Method: "GET", Path: d.CmdArgs[1].Key, Timeout: time.Second})
		n.k.AdvanceTo(n.k.Now().Add(2 * time.Second))
		return n.told()
	case "listening":
		return strings.Join(n.net.Addresses(), "\n") + "\n"
	case "fault":
		if err := n.board.Set(fault.Point(d.CmdArgs[0].Key), strings.TrimSpace(d.Input)); err != nil {
			t.Fatal(err)
		}
		return ""
	case "mend":
		n.board.Clear(fault.Point(d.CmdArgs[0].Key))
		return ""
	case "hops":
		var b strings.Builder
		for _, h := range n.log.Hops() {
			fmt.Fprintf(&b, "%s %s→%s %s %s %s", h.Stage, h.From, h.To, h.Verb, h.Outcome, h.Message)
			if p, ok := h.Detail.(trace.Pull); ok {
				fmt.Fprintf(&b, " [%d layers, %d cached, %d bytes]", p.Layers, p.Cached, p.SizeBytes)
			}
			b.WriteString("\n")
		}
		return n.plain(b.String())
	}
	t.Fatalf("%s: there is no command %q", d.Pos, d.Cmd)
	return ""
}

// A run that is taken back in the middle of scripts, pulls and execs goes on as it did.
func TestSnapshots(t *testing.T) {
	n := newNode(t, "10.244.1.0/24", "busybox", "nginx")
	n.next = "sandbox"
	n.ask(cri.RunPodSandbox{ReplyTo: kubelet, PodUID: "uid", Namespace: "default", Name: "web", Hostname: "web"}, time.Minute)
	for _, c := range [][2]string{
		{"writer", "trap 'echo bye; exit 3' TERM; i=0; while true; do echo $i | tee -a /out/log; i=$((i+1)); sleep 1; done"},
		{"reader", "tail -F /out/log"},
		{"jobs", "(sleep 3; echo late >> /out/log) & nginx & wait; sleep 4; exit 5"},
	} {
		name, script := c[0], c[1]
		n.next = name
		n.ask(cri.CreateContainer{ReplyTo: kubelet, PodUID: "uid", SandboxID: n.ids["sandbox"], Name: name, Image: "nginx", Command: []string{"sh", "-c", script}, Mounts: []cri.Mount{{Volume: "v", Path: "/out"}}}, time.Minute)
		n.ask(cri.StartContainer{ReplyTo: kubelet, ContainerID: n.ids[name]}, time.Minute)
	}
	send := func(req any) { n.k.Send("containerd/node01", 0, req) }
	send(cri.PullImage{ReplyTo: kubelet, Image: "redis"})
	send(cri.ExecSync{ReplyTo: kubelet, ContainerID: n.ids["writer"], Command: []string{"sh", "-c", "sleep 2; kill 1; ls /out"}})
	told := ""
	for range 8 {
		n.k.AdvanceTo(n.k.Now().Add(700 * time.Millisecond))
		snap := n.k.Snapshot()
		finish := func() (string, uint64) {
			n.heard = nil
			n.k.AdvanceTo(n.k.Now().Add(5 * time.Second))
			send(cri.ContainerLog{ReplyTo: kubelet, ContainerID: n.ids["reader"]})
			n.k.AdvanceTo(n.k.Now().Add(time.Second))
			return fmt.Sprint(n.heard), n.k.Snapshot().Hash()
		}
		first, hash := finish()
		n.k.Restore(snap)
		told += first
		if second, again := finish(); first != second || hash != again {
			t.Fatalf("not the same:\n%s\n%s", first, second)
		}
		n.k.Restore(snap)
	}
	for _, want := range []string{"writer stopped 3", "jobs stopped 5", "late", "docker.io/library/redis"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q has not happened in %s", want, told)
		}
	}
}
