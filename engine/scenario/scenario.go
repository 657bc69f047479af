// Package scenario is a cluster, and steps on it: pure data and its strict decoding.
// Lessons, exercises, faults, save files and the command line all say with it what
// there is and what somebody does; the engine carries it out.
package scenario

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Cluster is what there is before anybody does anything.
type Cluster struct {
	// Seed of all random streams; 0 means 1.
	Seed  uint64 `json:"seed,omitempty"`
	Nodes []Node `json:"nodes,omitempty"`
	// Bare leaves the control plane's static Pods out: benchmarks and recordings taken on
	// a cluster without them.
	Bare bool `json:"bare,omitempty"`
}

// Node is one machine.
type Node struct {
	Name   string            `json:"name"`
	IP     string            `json:"ip,omitempty"` // default 172.30.0.2 for the first, then .11, .12 …
	Labels map[string]string `json:"labels,omitempty"`
	Taints []corev1.Taint    `json:"taints,omitempty"`
	// ControlPlane nodes carry the label, the taint and the control plane's static Pods.
	ControlPlane bool              `json:"controlPlane,omitempty"`
	CPU          resource.Quantity `json:"cpu,omitempty"`    // default 2
	Memory       resource.Quantity `json:"memory,omitempty"` // default 4Gi
	Pods         int64             `json:"pods,omitempty"`   // default 110
	// Images are on the node from the beginning.
	Images []string `json:"images,omitempty"`
	// Kwok nodes have no kubelet: their Pods turn Running at once, without kubelet events.
	Kwok bool `json:"kwok,omitempty"`
}

// Default is the cluster that every lesson uses unless it says otherwise.
func Default() Cluster {
	return Cluster{Seed: 1, Nodes: []Node{
		{Name: "controlplane", ControlPlane: true},
		{Name: "node01"},
		{Name: "node02"},
	}}
}

// Scenario is a cluster with a story on it.
type Scenario struct {
	Cluster Cluster `json:"cluster,omitempty"`
	// Namespace is that of the kubeconfig's context; "default" where empty.
	Namespace string `json:"namespace,omitempty"`
	// Setup happens before the story: it is not part of the trace's "hop 1 of n".
	Setup []Step `json:"setup,omitempty"`
	// Steps are the story.
	Steps []Step `json:"steps,omitempty"`
	// Deadline by which what was asked for must have come true; 10m where zero.
	Deadline Duration `json:"deadline,omitempty"`
}

// Step is one thing that somebody does. Exactly one field is set.
type Step struct {
	// Kubectl is a command line, with or without the word kubectl.
	Kubectl string `json:"kubectl,omitempty"`
	// Apply is one or more manifests, created as they stand.
	Apply string `json:"apply,omitempty"`
	// Patch changes an object that exists.
	Patch *Patch `json:"patch,omitempty"`
	// Delete removes an object.
	Delete *Target `json:"delete,omitempty"`
	// Switch turns a fault point on or off.
	Switch *Switch `json:"switch,omitempty"`
	// Advance lets virtual time pass.
	Advance Duration `json:"advance,omitempty"`
	// Settle lets time pass until every Pod is Ready or the deadline has passed.
	Settle bool `json:"settle,omitempty"`
}

// Target names an object.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // the scenario's where empty
	Name      string `json:"name"`
}

// Patch is a strategic merge patch (a merge patch for kinds without one).
type Patch struct {
	Target
	// With is the patch, as YAML.
	With string `json:"with"`
	// Replace deletes the object and creates the patched one, as somebody does who edits
	// a manifest and says kubectl replace --force: for fields that are immutable.
	Replace bool `json:"replace,omitempty"`
}

// Switch is one fault point's position.
type Switch struct {
	Point string `json:"point"`
	Value string `json:"value,omitempty"`
	// Clear turns it off.
	Clear bool `json:"clear,omitempty"`
}

// Duration reads and writes "90s".
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is a string such as \"90s\", not %s", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("a duration is a string such as \"90s\", not %q", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// Parse decodes a scenario strictly: an unknown field is an error.
func Parse(data []byte) (Scenario, error) {
	var s Scenario
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return s, err
	}
	return s, s.Validate()
}

// Validate reports what is wrong with a scenario.
func (s Scenario) Validate() error {
	names := map[string]bool{}
	for i, n := range s.Cluster.Nodes {
		if n.Name == "" {
			return fmt.Errorf("cluster.nodes[%d] has no name", i)
		}
		if names[n.Name] {
			return fmt.Errorf("cluster.nodes[%d]: there are two nodes called %q", i, n.Name)
		}
		names[n.Name] = true
	}
	if err := checkSteps("setup", s.Setup); err != nil {
		return err
	}
	return checkSteps("steps", s.Steps)
}

func checkSteps(list string, steps []Step) error {
	for i, st := range steps {
		if n := st.fields(); n != 1 {
			return fmt.Errorf("%s[%d] must say exactly one thing to do, not %d", list, i, n)
		}
	}
	return nil
}

func (st Step) fields() int {
	n := 0
	for _, set := range []bool{st.Kubectl != "", st.Apply != "", st.Patch != nil, st.Delete != nil, st.Switch != nil, st.Advance != 0, st.Settle} {
		if set {
			n++
		}
	}
	return n
}
