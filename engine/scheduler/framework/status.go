// Package framework is the contract between the scheduler and its plugins, with the names
// that upstream gives them (k8s.io/kube-scheduler/framework): extension points, Status,
// CycleState, NodeInfo, cluster events and queueing hints.
//
// Everything that outlives one call is immutable: a NodeInfo is replaced, never changed,
// so that the cache, the snapshot of a running cycle and a snapshot of the whole run can
// share it.
//
// Left out: extenders, contexts and loggers, Pod groups, waiting on Permit by anything
// but a status.
package framework

import (
	"slices"
	"strings"
)

// Code is the result of a plugin.
type Code int

// The codes, in upstream's order.
const (
	Success Code = iota
	// Error is an internal error: the Pod is retried after a back-off.
	Error
	// Unschedulable is a refusal that the removal of other Pods might lift.
	Unschedulable
	// UnschedulableAndUnresolvable is a refusal that preemption cannot lift.
	UnschedulableAndUnresolvable
	// Skip says that the plugin has nothing to say about this Pod.
	Skip
	// Pending is a refusal until something outside happens.
	Pending
)

var codeNames = [...]string{"Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Skip", "Pending"}

// String returns upstream's name of the code.
func (c Code) String() string { return codeNames[c] }

// Status is what a plugin says. A nil Status is success. It is never changed after it
// was made: plugins share statuses that have a fixed text.
type Status struct {
	Code    Code
	Reasons []string
	Plugin  string
	Err     error // of Error: what went wrong, with its type
}

// NewStatus returns a status with its reasons.
func NewStatus(c Code, plugin string, reasons ...string) *Status {
	return &Status{Code: c, Plugin: plugin, Reasons: reasons}
}

// AsStatus wraps an error.
func AsStatus(plugin string, err error) *Status {
	return &Status{Code: Error, Plugin: plugin, Reasons: []string{err.Error()}, Err: err}
}

// GetCode returns the code; Success for nil.
func (s *Status) GetCode() Code {
	if s == nil {
		return Success
	}
	return s.Code
}

// IsSuccess reports whether s is nil or a success.
func (s *Status) IsSuccess() bool { return s.GetCode() == Success }

// IsSkip reports whether s is a Skip.
func (s *Status) IsSkip() bool { return s.GetCode() == Skip }

// IsRejected reports whether the plugin refused the Pod (and did not fail itself).
func (s *Status) IsRejected() bool {
	c := s.GetCode()
	return c == Unschedulable || c == UnschedulableAndUnresolvable || c == Pending
}

// Message joins the reasons.
func (s *Status) Message() string {
	if s == nil {
		return ""
	}
	return strings.Join(s.Reasons, ", ")
}

// CycleState carries what a plugin's PreFilter and PreScore computed to its later calls
// in the same scheduling cycle, and what all of them may read: the snapshot of the nodes.
// The stored values are immutable; a write replaces.
type CycleState struct {
	Snapshot *Snapshot
	Skip     []string // plugins whose Filter is not run
	NoScore  []string // plugins whose Score is not run

	entries []stateEntry
}

type stateEntry struct {
	key   string
	value any
}

// Write stores a value for later extension points.
func (c *CycleState) Write(key string, value any) {
	for i := range c.entries {
		if c.entries[i].key == key {
			c.entries = slices.Clone(c.entries)
			c.entries[i].value = value
			return
		}
	}
	c.entries = append(c.entries[:len(c.entries):len(c.entries)], stateEntry{key, value})
}

// Read returns a stored value, nil where there is none.
func (c *CycleState) Read(key string) any {
	for i := range c.entries {
		if c.entries[i].key == key {
			return c.entries[i].value
		}
	}
	return nil
}

// Clone returns a copy that can be written to without changing c.
func (c *CycleState) Clone() *CycleState {
	out := *c
	return &out
}
