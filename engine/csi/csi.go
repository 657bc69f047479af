// Package csi is the storage drivers of a node, as the Container Storage Interface has
// them: the kubelet asks a driver's node plugin to stage a volume (once a node) and to
// publish it (once a Pod). Each node's drivers are one actor, "csi/NODE".
//
// Modelled: registration by name, staging and publishing of volumes that live on the
// node (as rancher's local-path does it), with the calls' errors in gRPC's words. Left
// out: the controller side (CreateVolume, attach and detach), which is the provisioner's
// and the attach-detach controller's; snapshots, cloning, expansion, block volumes.
package csi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
)

// NodeStageVolume makes a volume ready on the node, for all Pods that will use it.
type NodeStageVolume struct {
	ReplyTo  kernel.ActorID
	Tag      any
	Driver   string
	VolumeID string
}

// NodePublishVolume mounts a volume for one Pod.
type NodePublishVolume struct {
	ReplyTo    kernel.ActorID
	Tag        any
	Driver     string
	VolumeID   string
	PodUID     string
	ReadOnly   bool
	Ephemeral  bool // an inline volume: it lives and dies with its Pod
	Attributes map[string]string
}

// NodeUnpublishVolume takes a Pod's mount away.
type NodeUnpublishVolume struct {
	ReplyTo  kernel.ActorID
	Tag      any
	Driver   string
	VolumeID string
	PodUID   string
}

// Response ends a request.
type Response struct {
	Tag  any
	Call string // "NodePublishVolume", …
	Err  string // "rpc error: code = NotFound desc = …", "" where it went well
	// Mount identifies what was mounted: containers of Pods that publish the same volume
	// see the same files.
	Mount string
}

// Config is the drivers of a node and how fast they are.
type Config struct {
	Node    string
	Drivers []string      // names, as in CSIDriver objects
	Stage   time.Duration // of formatting and mounting a device
	Publish time.Duration // of a bind mount
}

// DefaultConfig has one driver that keeps its volumes on the node.
func DefaultConfig() Config {
	return Config{Drivers: []string{LocalPath}, Stage: 40 * time.Millisecond, Publish: 8 * time.Millisecond}
}

// LocalPath is the name of the driver that every cluster of podwalk has.
const LocalPath = "local-path.csi.podwalk.dev"

// Plugin is the node side of all drivers of a node.
type Plugin struct {
	k     *kernel.Kernel
	cfg   Config
	self  kernel.ActorID
	state state
}

type state struct {
	Staged    map[string]bool // by driver/volume
	Published map[string]bool // by driver/volume/pod
}

func (s state) clone() state { return state{maps.Clone(s.Staged), maps.Clone(s.Published)} }

// New makes the node's drivers and registers their actor.
func New(k *kernel.Kernel, cfg Config) *Plugin {
	p := &Plugin{
		k: k, cfg: cfg, self: kernel.ActorID(stage.On(stage.CSI, cfg.Node)),
		state: state{Staged: map[string]bool{}, Published: map[string]bool{}},
	}
	k.Register(p.self, p)
	return p
}

// Handle implements kernel.Actor.
func (p *Plugin) Handle(ev kernel.Event) {
	switch r := ev.(type) {
	case NodeStageVolume:
		err := p.known(r.Driver)
		if err == "" {
			p.state.Staged[key(r.Driver, r.VolumeID)] = true
		}
		p.reply(r.ReplyTo, p.cfg.Stage, Response{Tag: r.Tag, Call: "NodeStageVolume", Err: err})
	case NodePublishVolume:
		p.publish(r)
	case NodeUnpublishVolume:
		delete(p.state.Published, key(r.Driver, r.VolumeID, r.PodUID))
		p.reply(r.ReplyTo, p.cfg.Publish, Response{Tag: r.Tag, Call: "NodeUnpublishVolume"})
	}
}

func (p *Plugin) publish(r NodePublishVolume) {
	res := Response{Tag: r.Tag, Call: "NodePublishVolume", Err: p.known(r.Driver), Mount: key(r.Driver, r.VolumeID)}
	switch {
	case res.Err != "":
	case !r.Ephemeral && !p.state.Staged[res.Mount]:
		res.Err = fmt.Sprintf("rpc error: code = FailedPrecondition desc = volume %s is not staged", r.VolumeID)
	default:
		p.state.Published[key(r.Driver, r.VolumeID, r.PodUID)] = true
	}
	p.reply(r.ReplyTo, p.cfg.Publish, res)
}

func (p *Plugin) known(driver string) string {
	if slices.Contains(p.cfg.Drivers, driver) {
		return ""
	}
	return fmt.Sprintf("rpc error: code = Unavailable desc = no plugin of driver %s on node %s", driver, p.cfg.Node)
}

func key(parts ...string) string { return strings.Join(parts, "/") }

func (p *Plugin) reply(to kernel.ActorID, after time.Duration, r Response) { p.k.Send(to, after, r) }

// Snapshot implements kernel.State.
func (p *Plugin) Snapshot() any { return p.state.clone() }

// Restore implements kernel.State.
func (p *Plugin) Restore(snap any) { p.state = snap.(state).clone() }
