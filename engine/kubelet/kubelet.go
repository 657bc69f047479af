package kubelet

import (
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/cri"
	"podwalk/engine/csi"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// Network is what the kubelet needs of the cluster's wires: probes and hooks go out by it,
// logs and exec come in.
type Network interface {
	Do(replyTo kernel.ActorID, call network.Call)
	// Listen makes the actor get the calls to an address, as network.Request.
	Listen(address string, actor kernel.ActorID)
	// Unlisten frees the address: callers find the connection refused.
	Unlisten(address string)
}

// Kubelet is one node's agent.
type Kubelet struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	c     *client.Client
	net   Network
	cfg   Config

	self     kernel.ActorID
	me       stage.Component
	runtime  kernel.ActorID
	rand     *kernel.Rand
	pods     *client.Cache[*corev1.Pod]
	node     *client.Cache[*corev1.Node]
	services *client.Cache[*corev1.Service]
	recorder *client.Recorder

	state
}

// state is what a snapshot carries, besides the caches and the recorder.
type state struct {
	Node    nodeState
	Workers map[types.UID]*worker
	Pulls   []pull // the first one is under way
	Pulled  pullRecords
	// PullsFull is when the bucket of pulls is full again.
	PullsFull kernel.Time
	Phase     time.Duration
	Began     kernel.Time
	Stopped   bool
	Services  bool   // the Service cache was started
	Listed    bool   // and has listed once: enough to go on when the API server is away
	Seq       uint64 // of requests to the runtime
	Asked     map[uint64]asked
	Serving   map[uint64]serving
	NextIP    int // of a node played by kwok
}

// The events that the kubelet sends itself.
type (
	heartbeat  struct{}
	wake       struct{ UID types.UID }
	volumeTick struct{ UID types.UID }
	volumesUp  struct {
		UID  types.UID
		Pass uint64
	}
	probeTick struct {
		UID types.UID
		Key probeKey
		Gen int
	}
	hookDone struct {
		UID       types.UID
		Container string
		Seq       uint64
	}
)

// New makes the kubelet of a node and registers it with the kernel.
func New(k *kernel.Kernel, log *trace.Log, board *fault.Board, c *client.Client, net Network, cfg Config) *Kubelet {
	me := stage.On(stage.Kubelet, cfg.Node)
	kl := &Kubelet{
		k: k, log: log, board: board, c: c, net: net, cfg: cfg,
		self: kernel.ActorID(me), me: me, runtime: kernel.ActorID(stage.On(stage.Containerd, cfg.Node)),
		rand:     k.Rand(string(me)),
		pods:     client.NewCache[*corev1.Pod](c, client.Selector{Fields: "spec.nodeName=" + cfg.Node}),
		node:     client.NewCache[*corev1.Node](c, client.Selector{Fields: "metadata.name=" + cfg.Node}),
		services: client.NewCache[*corev1.Service](c, client.Selector{}),
		recorder: client.NewRecorder(c, "kubelet", cfg.Node),
		state: state{
			Workers: map[types.UID]*worker{}, Asked: map[uint64]asked{}, Serving: map[uint64]serving{}, Pulled: pullRecords{},
		},
	}
	kl.Phase = time.Duration(kl.rand.IntN(int(cfg.RelistPeriod)))
	kl.NextIP = 1
	k.Register(kl.self, kl)
	return kl
}

// Start registers the node and begins to watch its Pods.
func (kl *Kubelet) Start() {
	kl.Began = kl.k.Now()
	kl.k.Send(kl.self, 0, heartbeat{})
	kl.startNode()
	kl.pods.Start()
	kl.net.Listen(kl.address(), kl.self)
	if !kl.cfg.Kwok {
		kl.startStatic()
	}
}

// down reports whether a fault keeps the kubelet from working. The first heartbeat after
// that begins anew.
func (kl *Kubelet) down() bool { return kl.board.Hits(fault.KubeletStopped, kl.cfg.Node) }

// Handle implements kernel.Actor.
func (kl *Kubelet) Handle(ev kernel.Event) {
	if kl.down() {
		kl.stop()
		switch e := ev.(type) {
		case heartbeat:
			kl.k.Send(kl.self, time.Second, heartbeat{})
		case network.Request: // was on its way when the port was closed
			kl.k.Send(network.Self, 0, network.Answer{ID: e.ID, Err: "dial tcp " + kl.address() + ": connect: connection refused"})
		}
		return
	}
	if kl.Stopped {
		kl.resume()
	}
	if changes, mine := kl.pods.Handle(ev); mine {
		for _, c := range changes {
			kl.podChanged(c)
		}
		return
	}
	if changes, mine := kl.node.Handle(ev); mine {
		kl.nodeChanged(changes)
		return
	}
	if _, mine := kl.services.Handle(ev); mine {
		kl.servicesCame()
		return
	}
	if kl.recorder.Handle(ev) {
		return
	}
	kl.dispatch(ev)
}

func (kl *Kubelet) dispatch(ev kernel.Event) {
	switch e := ev.(type) {
	case heartbeat:
		kl.beat()
	case wake:
		kl.wake(e.UID)
	case volumeTick:
		if w := kl.Workers[e.UID]; w != nil {
			kl.mountVolumes(w)
		}
	case volumesUp:
		if w := kl.Workers[e.UID]; w != nil && w.Running && w.Pass == e.Pass && w.Stage == "volumes" {
			kl.runtimePass(w)
		}
	case probeTick:
		if w := kl.Workers[e.UID]; w != nil {
			kl.probeDue(w, e.Key, e.Gen)
		}
	case volumePoll:
		kl.volumesPolled(e.UID, e.Pass)
	case volumeTimeout:
		kl.volumesTimedOut(e.UID, e.Pass)
	case retryStatus:
		kl.statusDue(e.UID)
	case mirrorGone:
		kl.mirrorDue(e)
	case runtimePoll:
		kl.askRuntime()
	case registerAgain:
		kl.register()
	case deadline:
		if w := kl.Workers[e.UID]; w != nil && w.Phase == syncing {
			kl.requestSyncNow(w)
		}
	case hookDone:
		if w := kl.Workers[e.UID]; w != nil {
			kl.hookEnded(w, e.Container, e.Seq, "")
		}
	case wire.Answer:
		kl.answered(e)
	case csi.Response:
		kl.driverAnswered(e)
	case cri.Response:
		kl.responded(e)
	case cri.ContainerEvent:
		kl.containerEvent(e)
	case network.Result:
		kl.reached(e)
	case fault.Changed:
		// The board was looked at already, above.
	case network.Request:
		if a := kl.serveCall(e.ID, e.Call); a != nil {
			kl.reply(e.ID, *a)
		}
	}
}

func (kl *Kubelet) address() string { return net.JoinHostPort(kl.cfg.IP, strconv.Itoa(kubeletPort)) }

func (kl *Kubelet) reply(id uint64, a answer) {
	kl.k.Send(network.Self, 0, network.Answer{ID: id, Code: a.Code, Body: a.Body})
}

// stop drops what is under way: absence is the only symptom.
func (kl *Kubelet) stop() {
	if kl.Stopped {
		return
	}
	kl.Stopped = true
	kl.net.Unlisten(kl.address())
	kl.pods.Stop()
	kl.node.Stop()
	if kl.Services {
		kl.services.Stop()
	}
	kl.Services, kl.Listed = false, false
	kl.Pulls = nil
	clear(kl.Asked)
	clear(kl.Serving)
	for _, w := range kl.Workers {
		w.abort()
	}
}

// resume begins again as a restarted kubelet does: it lists its Pods and asks the
// runtime what runs.
func (kl *Kubelet) resume() {
	kl.Stopped = false
	kl.Began = kl.k.Now()
	kl.net.Listen(kl.address(), kl.self)
	kl.startNode()
	kl.pods.Start()
	if kl.cfg.Kwok {
		return
	}
	kl.ask(asked{What: askRecover}, cri.ListContainers{})
	for _, w := range kl.sorted() {
		kl.startProbes(w)
	}
}

// Snapshot implements kernel.State.
func (kl *Kubelet) Snapshot() any {
	return snapshot{kl.state.clone(), kl.pods.Snapshot(), kl.node.Snapshot(), kl.services.Snapshot(), kl.recorder.Snapshot()}
}

// Restore implements kernel.State.
func (kl *Kubelet) Restore(snap any) {
	s := snap.(snapshot)
	kl.state = s.State.clone()
	kl.pods.Restore(s.Pods)
	kl.node.Restore(s.Node)
	kl.services.Restore(s.Services)
	kl.recorder.Restore(s.Recorder)
}

type snapshot struct {
	State                          state
	Pods, Node, Services, Recorder any
}
