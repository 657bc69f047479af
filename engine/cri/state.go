package cri

import (
	"maps"
	"slices"

	"podwalk/engine/kernel"
	"podwalk/engine/process"
)

// state is what time travel carries along.
type state struct {
	Sandboxes  map[string]sandbox
	Containers map[string]*container
	Images     map[string]local
	Layers     map[string]bool
	Volumes    map[string]map[string]string // by Pod uid and volume: the files; replaced, never changed
	Ports      map[string]string            // address → container
	Execs      map[string]*execution
}

type sandbox struct {
	ID, PodUID, Namespace, Name, Hostname, IP string
	HostNetwork, Ready                        bool
}

type container struct {
	PodUID, SandboxID, Name string
	Attempt                 int
	ReplyTo                 kernel.ActorID // the kubelet
	Image                   ImageInfo
	Spec                    process.Spec
	StopSignal              string
	Files                   map[string]string // its root file system; replaced, never changed
	State                   string            // created, running, exited
	Proc                    *process.Process  // replaced before it is changed
	Timer, Kill             kernel.Timer
	Listens                 []string
	Waiting                 []waiting
	Log                     []LogLine
	Partial                 bool   // the last line of Log has not ended yet
	Refused                 string // why runc will not start it
	CreatedAt               kernel.Time
	StartedAt, FinishedAt   kernel.Time
	ExitCode                int32
	Reason, Message         string
}

// waiting is somebody who has asked for a container to stop.
type waiting struct {
	ReplyTo kernel.ActorID
	Tag     any
}

func newState() state {
	return state{map[string]sandbox{}, map[string]*container{}, map[string]local{}, map[string]bool{}, map[string]map[string]string{}, map[string]string{}, map[string]*execution{}}
}

func (s state) clone() state {
	c := state{
		maps.Clone(s.Sandboxes), make(map[string]*container, len(s.Containers)), maps.Clone(s.Images), maps.Clone(s.Layers),
		maps.Clone(s.Volumes), maps.Clone(s.Ports), make(map[string]*execution, len(s.Execs)),
	}
	for id, was := range s.Execs {
		now := *was
		c.Execs[id] = &now
	}
	for id, was := range s.Containers {
		now := *was
		now.Log = was.Log[:len(was.Log):len(was.Log)]
		c.Containers[id] = &now
	}
	return c
}

// Snapshot implements kernel.State.
func (r *Runtime) Snapshot() any { return r.state.clone() }

// Restore implements kernel.State.
func (r *Runtime) Restore(snap any) { r.state = snap.(state).clone() }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
