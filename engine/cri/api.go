// Package cri is the node's container runtime, as containerd 2.4 behaves: sandboxes,
// containers, images with layers and a cache. The kubelet drives it by requests that are
// named after the calls of the Container Runtime Interface; the runtime calls the CNI
// plugin and pulls from the registry. Each node's runtime is an actor "containerd/NODE".
//
// Left out: shims as processes of their own, snapshots of file systems, permissions of
// files, CPU limits, sizes of what containers write, collecting images. Volumes that outlive
// a Pod are shared by the Pods of one node.
package cri

import (
	"time"

	"podwalk/engine/kernel"
)

// The requests. Every one carries ReplyTo (the kubelet's actor) and a Tag that comes
// back; the runtime answers each with one Response, when it is done.

// RunPodSandbox makes the sandbox: the pause container, its namespaces, its network.
type RunPodSandbox struct {
	ReplyTo                 kernel.ActorID
	Tag                     any
	PodUID, Namespace, Name string
	Attempt                 int
	HostNetwork             bool
	RuntimeHandler          string
	HostPorts               []HostPort
	Hostname                string
	MemoryLimitBytes        int64 // of the whole Pod's smallest container, for "memory limit too low"
}

// HostPort is one port of the node that the sandbox takes.
type HostPort struct {
	HostIP   string
	Port     int32
	Protocol string
}

// StopPodSandbox stops the sandbox's containers and takes its network away.
type StopPodSandbox struct {
	ReplyTo   kernel.ActorID
	Tag       any
	SandboxID string
}

// RemovePodSandbox removes a stopped sandbox with its containers.
type RemovePodSandbox struct {
	ReplyTo   kernel.ActorID
	Tag       any
	SandboxID string
}

// PullImage makes an image present on the node.
type PullImage struct {
	ReplyTo            kernel.ActorID
	Tag                any
	Image              string // as the Pod names it, with ":latest" added where no tag is
	Username, Password string
}

// CreateContainer makes a container from an image in a sandbox.
type CreateContainer struct {
	ReplyTo        kernel.ActorID
	Tag            any
	SandboxID      string
	PodUID         string
	Name           string
	Attempt        int
	Image          string // reference or id
	Command, Args  []string
	WorkingDir     string
	Env            []EnvVar
	Mounts         []Mount
	MemoryLimit    int64 // bytes, 0 for none
	CPULimitMilli  int64
	User           string
	ReadOnlyRootFS bool
	Privileged     bool
	StopSignal     string // "" for the image's
	// Ports are the containerPorts, for images of which nothing else is known: their
	// program listens there.
	Ports []int32
}

// EnvVar is one environment variable.
type EnvVar struct{ Name, Value string }

// Mount is one file system that a container sees. Volume identifies what is shared by
// containers of one Pod: both see the same Files.
type Mount struct {
	Volume   string // "" for one file that is the container's own: its content is Files[""]
	Path     string
	ReadOnly bool
	SubPath  string
	HostPath string            // where the volume is on the node
	Outlives bool              // the volume is not this Pod's alone: Volume is the node's name for it
	Files    map[string]string // relative path → content, for configMap, secret, projected, downwardAPI
	Medium   string            // "Memory" for tmpfs
}

// StartContainer starts a created container.
type StartContainer struct {
	ReplyTo     kernel.ActorID
	Tag         any
	ContainerID string
}

// StopContainer sends the stop signal and, after Timeout, SIGKILL.
type StopContainer struct {
	ReplyTo     kernel.ActorID
	Tag         any
	ContainerID string
	Timeout     time.Duration
}

// RemoveContainer forgets a stopped container and its log.
type RemoveContainer struct {
	ReplyTo     kernel.ActorID
	Tag         any
	ContainerID string
}

// ExecSync runs a command in a container and waits for its end.
type ExecSync struct {
	ReplyTo     kernel.ActorID
	Tag         any
	ContainerID string
	Command     []string
	Stdin       []byte
	Timeout     time.Duration // 0 for none
}

// Status asks whether the runtime and its network plugin are ready: what the kubelet's
// Ready condition is made of.
type Status struct {
	ReplyTo kernel.ActorID
	Tag     any
}

// ImageStatus asks whether an image is on the node; the Response's Image has no ID where
// it is not.
type ImageStatus struct {
	ReplyTo kernel.ActorID
	Tag     any
	Image   string
}

// ListImages asks for every image on the node (Response.Images), largest first.
type ListImages struct {
	ReplyTo kernel.ActorID
	Tag     any
}

// ListContainers asks for every container that the runtime knows (Response.Containers),
// oldest first: a kubelet that begins, or that was cut off, learns the state from it.
type ListContainers struct {
	ReplyTo kernel.ActorID
	Tag     any
}

// ContainerLog asks for what a container wrote (Response.Log), oldest first.
type ContainerLog struct {
	ReplyTo     kernel.ActorID
	Tag         any
	ContainerID string
}

// Response ends a request.
type Response struct {
	Tag  any
	Call string // "RunPodSandbox", "PullImage", …
	// Err is the runtime's literal error text, as the kubelet prints it: for instance
	// `rpc error: code = NotFound desc = failed to pull and unpack image …`.
	Err string

	SandboxID   string
	PodIP       string
	ContainerID string
	Image       ImageInfo
	ExitCode    int32
	Stdout      []byte
	Stderr      []byte
	TimedOut    bool // of ExecSync
	Took        time.Duration

	NetworkReady   bool              // of Status
	NetworkMessage string            // of Status: "Network plugin returns error: cni plugin not initialized"
	Images         []ImageInfo       // of ListImages
	Containers     []ContainerStatus // of ListContainers
	Log            []LogLine         // of ContainerLog
}

// ContainerStatus is what the runtime knows of one container.
type ContainerStatus struct {
	PodUID, SandboxID, ContainerID, Name string
	Attempt                              int
	State                                string // "created", "running", "exited"
	SandboxReady                         bool
	PodIP                                string
	Image                                ImageInfo
	StartedAt, FinishedAt                kernel.Time
	ExitCode                             int32
	Reason, Message                      string
}

// ImageInfo describes an image on the node.
type ImageInfo struct {
	Ref       string // "docker.io/library/nginx:latest"
	ID        string // "docker.io/library/nginx@sha256:…", as status.imageID has it
	SizeBytes int64
	User      string // of the image's config: "", "0", "1000" or a name
	Layers    int
	Cached    int // of Layers, present before the pull
}

// ContainerEvent tells the kubelet that a container changed without being asked to.
type ContainerEvent struct {
	PodUID, SandboxID, ContainerID, Name string
	Type                                 EventType
	ExitCode                             int32
	Reason                               string // "Completed", "Error", "OOMKilled"
	Message                              string // of /dev/termination-log
	At                                   kernel.Time
}

// EventType is what happened to a container.
type EventType string

// The event types.
const (
	Started EventType = "started"
	Stopped EventType = "stopped"
)

// LogLine is one line that a container wrote.
type LogLine struct {
	At     kernel.Time
	Stderr bool
	Text   string
}
