package trace

import "k8s.io/apimachinery/pkg/runtime"

// The Detail types. Objects in them are immutable, as everywhere.

// Admission is the detail of a hop of the mutating or validating phase: what each
// plugin said, in order.
type Admission struct {
	Plugins []PluginVerdict
}

// PluginVerdict is one admission plugin's word.
type PluginVerdict struct {
	Plugin  string
	Verdict string // "ok", "changed", "denied"
	Message string
}

// Change is the detail of a hop that changed an object: before and after. Before is nil
// for a new object, After for one that is gone.
type Change struct {
	Before, After runtime.Object
}

// HTTP is the detail of a request's first hop and of its answer.
type HTTP struct {
	Method string
	Path   string // with query
	User   string // where known
	Code   int    // of the answer; 0 in a request
	Body   []byte // as sent by a client at the HTTP edge; nil for an in-process client
}

// SchedulingCycle is the detail of the filter, score and post-filter hops: the node ×
// plugin table. Every node has one row.
type SchedulingCycle struct {
	Plugins []string // columns, in the order in which they ran
	Nodes   []NodeRow
	Event   string // the one-line message into which the table collapses, if nothing fitted
}

// NodeRow is one node's line of the table.
type NodeRow struct {
	Node    string
	Status  []string    // by plugin: "" passed, "-" not asked (an earlier one refused), else the reason
	Scores  []NodeScore // score hop only
	Total   int64
	Chosen  bool
	Message string // preemption: why no victims here
}

// NodeScore is one score plugin's word on one node.
type NodeScore struct {
	Plugin string
	Raw    int64 // 0–100 after normalising
	Weight int64
}

// Queue is the detail of a scheduling queue hop: who waits where, in order.
type Queue struct {
	Active, Backoff, Unschedulable, Gated []string
}

// Probe is the detail of a probe's result.
type Probe struct {
	Kind      string // startup, readiness, liveness
	Container string
	Success   bool
	Failures  int // in a row
	Threshold int
	Output    string
}

// Pull is the detail of image hops.
type Pull struct {
	Image     string
	Layers    int
	Cached    int
	SizeBytes int64
}

// Network is the detail of a hop of kube-proxy.
type Network struct {
	Rules []string // what it wrote
}
