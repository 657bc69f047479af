// Package stage is the one vocabulary of the project for "where in the life of a Pod":
// the numbered steps, the stages inside them, and the ids of the components that act.
// The trace, the diagrams, the lessons, the exercises and the diagnosis all use it.
// Ids never change; what they are called on the screen is in assets/i18n.
package stage

// Step is a badge on the timeline: "0" to "10", "C" for controllers, "L" for later.
type Step string

// ID names a stage.
type ID string

// Component names who acts: "kube-apiserver", "etcd", or, for what runs on each node,
// "kubelet/node01".
type Component string

// The stages, in the order of first arrival of a Pod that somebody creates by hand.
const (
	Client              ID = "client"
	Request             ID = "request"
	Authentication      ID = "authentication"
	Authorization       ID = "authorization"
	Decode              ID = "decode"
	MutatingAdmission   ID = "mutating-admission"
	SchemaValidation    ID = "schema-validation"
	ValidatingAdmission ID = "validating-admission"
	Persist             ID = "persist"
	Controllers         ID = "controllers"
	PreEnqueue          ID = "pre-enqueue"
	QueueSort           ID = "queue-sort"
	PreFilter           ID = "pre-filter"
	Filter              ID = "filter"
	PostFilter          ID = "post-filter"
	PreScore            ID = "pre-score"
	Score               ID = "score"
	Reserve             ID = "reserve"
	Permit              ID = "permit"
	PreBind             ID = "pre-bind"
	Bind                ID = "bind"
	BindingSaved        ID = "binding-saved"
	PostBind            ID = "post-bind"
	NodeWatch           ID = "node-watch"
	NodeAdmission       ID = "node-admission"
	Volumes             ID = "volumes"
	Sandbox             ID = "sandbox"
	Image               ID = "image"
	Create              ID = "create"
	Start               ID = "start"
	Probes              ID = "probes"
	Status              ID = "status"
	Routing             ID = "routing"
	Termination         ID = "termination"
	Eviction            ID = "eviction"
	NodeLifecycle       ID = "node-lifecycle"
	ControlPlane        ID = "control-plane"
)

// The components that exist once; those of a node are made by On.
const (
	Kubectl           Component = "kubectl"
	APIServer         Component = "kube-apiserver"
	Etcd              Component = "etcd"
	Scheduler         Component = "kube-scheduler"
	ControllerManager Component = "kube-controller-manager"
	Registry          Component = "registry"
)

// The kinds of component that every node has.
const (
	Kubelet    Component = "kubelet"
	Containerd Component = "containerd"
	CNI        Component = "cni"
	CSI        Component = "csi"
	KubeProxy  Component = "kube-proxy"
)

// On names a node's own component: On(Kubelet, "node01") is "kubelet/node01".
func On(c Component, node string) Component { return c + "/" + Component(node) }

// Split takes "kubelet/node01" apart; node is empty for a component that exists once.
func (c Component) Split() (kind Component, node string) {
	for i := range len(c) {
		if c[i] == '/' {
			return c[:i], string(c[i+1:])
		}
	}
	return c, ""
}

// Stage is one row of the table.
type Stage struct {
	ID        ID
	Step      Step
	Component Component // the kind that acts here
	Visible   bool      // something can visibly fail here: it has faults
}

// table is in the order of first arrival; controllers and the later stages stand where
// their step badge stands.
var table = []Stage{
	{Client, "0", Kubectl, true},
	{Request, "1", APIServer, true},
	{Authentication, "2", APIServer, true},
	{Authorization, "2", APIServer, true},
	{Decode, "3", APIServer, true},
	{MutatingAdmission, "3", APIServer, true},
	{SchemaValidation, "3", APIServer, true},
	{ValidatingAdmission, "3", APIServer, true},
	{Persist, "4", Etcd, true},
	{Controllers, "C", ControllerManager, true},
	{PreEnqueue, "5", Scheduler, true},
	{QueueSort, "5", Scheduler, false},
	{PreFilter, "5", Scheduler, true},
	{Filter, "5", Scheduler, true},
	{PostFilter, "5", Scheduler, true},
	{PreScore, "5", Scheduler, false},
	{Score, "5", Scheduler, false},
	{Reserve, "5", Scheduler, true},
	{Permit, "5", Scheduler, true},
	{PreBind, "5", Scheduler, true},
	{Bind, "5", Scheduler, true},
	{BindingSaved, "6", Etcd, true},
	{PostBind, "6", Scheduler, false},
	{NodeWatch, "7", Kubelet, true},
	{NodeAdmission, "7", Kubelet, true},
	{Volumes, "8", Kubelet, true},
	{Sandbox, "8", Containerd, true},
	{Image, "8", Containerd, true},
	{Create, "9", Containerd, true},
	{Start, "9", Containerd, true},
	{Probes, "10", Kubelet, true},
	{Status, "10", Kubelet, true},
	{Routing, "10", KubeProxy, true},
	{Termination, "L", Kubelet, true},
	{Eviction, "L", Kubelet, true},
	{NodeLifecycle, "L", ControllerManager, true},
	{ControlPlane, "L", APIServer, true},
}

var byID = func() map[ID]int {
	m := make(map[ID]int, len(table))
	for i, s := range table {
		m[s.ID] = i
	}
	return m
}()

// All returns every stage in order.
func All() []Stage { return append([]Stage(nil), table...) }

// Steps returns the badges in the order of the timeline.
func Steps() []Step {
	return []Step{"0", "1", "2", "3", "4", "C", "5", "6", "7", "8", "9", "10", "L"}
}

// Get returns the row of a stage, and false for an id that does not exist.
func Get(id ID) (Stage, bool) {
	i, ok := byID[id]
	if !ok {
		return Stage{}, false
	}
	return table[i], true
}

// StepOf returns the badge of a stage, "" for an unknown id.
func StepOf(id ID) Step {
	s, _ := Get(id)
	return s.Step
}

// Order returns the position of a stage in the table, -1 for an unknown id.
func Order(id ID) int {
	if i, ok := byID[id]; ok {
		return i
	}
	return -1
}

// Distance counts the stages between two ids: 0 for the same one. Exercises give
// partial credit by it.
func Distance(a, b ID) int {
	d := Order(a) - Order(b)
	if d < 0 {
		d = -d
	}
	return d
}
