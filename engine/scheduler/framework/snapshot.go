package framework

import "podwalk/engine/kube"

// chunkSize is how many nodes share one chunk of a Nodes list.
const chunkSize = 64

// Nodes is a list of NodeInfos of which every version can be kept: Set copies one chunk
// and the short list of chunks, so that a change among 5,000 nodes costs about as much as
// one among 50.
type Nodes struct {
	chunks []*[chunkSize]*NodeInfo
	n      int
}

// NewNodes returns a list of these nodes.
func NewNodes(infos []*NodeInfo) Nodes {
	l := Nodes{n: len(infos)}
	for len(infos) > 0 {
		var c [chunkSize]*NodeInfo
		infos = infos[copy(c[:], infos):]
		l.chunks = append(l.chunks, &c)
	}
	return l
}

// Len returns the number of nodes.
func (l Nodes) Len() int { return l.n }

// At returns the node at a position.
func (l Nodes) At(i int) *NodeInfo { return l.chunks[i/chunkSize][i%chunkSize] }

// With returns the list with another version of the node at a position.
func (l Nodes) With(i int, n *NodeInfo) Nodes {
	chunks := make([]*[chunkSize]*NodeInfo, len(l.chunks))
	copy(chunks, l.chunks)
	c := *chunks[i/chunkSize]
	c[i%chunkSize] = n
	chunks[i/chunkSize] = &c
	l.chunks = chunks
	return l
}

// Snapshot is what one scheduling cycle sees of the cluster; it does not change while
// the cycle runs.
type Snapshot struct {
	Nodes Nodes
	// Index gives the position of a node by name. Never changed.
	Index map[string]int
	// ImageNodes counts the nodes that have an image, by its name. Never changed.
	ImageNodes map[string]int
	// WithAffinity and WithAntiAffinity count the nodes that hold Pods with pod affinity
	// (or anti-affinity), so that clusters without any pay nothing for it.
	WithAffinity, WithAntiAffinity int
	// Nominated are the Pods for which preemption made room, by node. Never changed.
	Nominated map[string][]*PodInfo
	// Objects are the other kinds that plugins look up.
	Objects Lister
}

// Get returns a node by name, nil if there is none.
func (s *Snapshot) Get(name string) *NodeInfo {
	i, ok := s.Index[name]
	if !ok {
		return nil
	}
	return s.Nodes.At(i)
}

// Lister looks up objects of the kinds that the scheduler watches besides Pods and nodes.
type Lister interface {
	// Object returns the object of the type of kind, by namespace ("" for cluster-wide
	// kinds) and name.
	Object(kind kube.Object, namespace, name string) (kube.Object, bool)
	// Each calls f for the objects of a kind in a namespace ("" for all) in the order of
	// their keys until it returns false.
	Each(kind kube.Object, namespace string, f func(kube.Object) bool)
}
