package framework

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"podwalk/engine/kube"
)

// PodInfo is a Pod with what the scheduler works out about it once. Immutable.
type PodInfo struct {
	Pod      *corev1.Pod
	Key      string // namespace/name
	Request  Resource
	NonZero  Resource
	Ports    []HostPort
	Affinity *PodAffinity // nil for a Pod without pod (anti-)affinity
	Priority int32
}

// NewPodInfo works out a Pod's requests, host ports and affinity terms.
func NewPodInfo(pod *corev1.Pod) *PodInfo {
	return &PodInfo{
		Pod: pod, Key: kube.Key(pod.Namespace, pod.Name),
		Request: PodRequests(pod), NonZero: NonZeroRequests(pod),
		Ports: HostPorts(pod), Affinity: newPodAffinity(pod), Priority: corev1helpers.PodPriority(pod),
	}
}

// WithPod returns the PodInfo of a new version of the same Pod. What was worked out stays
// unless the spec has changed, which the generation tells.
func (p *PodInfo) WithPod(pod *corev1.Pod) *PodInfo {
	if p == nil || pod.Generation == 0 || pod.Generation != p.Pod.Generation || pod.UID != p.Pod.UID || resized(p.Pod, pod) {
		return NewPodInfo(pod)
	}
	out := *p
	out.Pod = pod
	return &out
}

// resized reports whether the requests that the kubelet reports may have changed.
func resized(old, pod *corev1.Pod) bool {
	reported := func(p *corev1.Pod) int {
		n := 0
		for i := range p.Status.ContainerStatuses {
			st := &p.Status.ContainerStatuses[i]
			if st.AllocatedResources != nil || st.Resources != nil && st.Resources.Requests != nil {
				n++
			}
		}
		return n
	}
	return reported(old) > 0 || reported(pod) > 0
}

// UID returns the Pod's uid.
func (p *PodInfo) UID() types.UID { return p.Pod.UID }

// HostPort is a port that a Pod takes on its node.
type HostPort struct {
	IP       string
	Protocol corev1.Protocol
	Port     int32
}

const anyIP = "0.0.0.0"

// HostPorts returns the host ports of a Pod's containers and sidecars.
func HostPorts(pod *corev1.Pod) []HostPort {
	var out []HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			h := HostPort{p.HostIP, p.Protocol, p.HostPort}
			if h.IP == "" {
				h.IP = anyIP
			}
			if h.Protocol == "" {
				h.Protocol = corev1.ProtocolTCP
			}
			out = append(out, h)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return out
}

// PortsConflict reports whether any wanted port is in use.
func PortsConflict(want, used []HostPort) bool {
	for _, w := range want {
		for _, u := range used {
			if w.Port == u.Port && w.Protocol == u.Protocol && (w.IP == u.IP || w.IP == anyIP || u.IP == anyIP) {
				return true
			}
		}
	}
	return false
}

// NodeInfo is a node with the Pods that are on it, assumed ones included, and the sums
// that filters and scores ask for. Immutable: With… methods return a changed copy.
type NodeInfo struct {
	Name        string
	Node        *corev1.Node // nil while only Pods that name the node are known
	Pods        []*PodInfo
	Requested   Resource
	NonZero     Resource // CPU and memory only
	Allocatable Resource
	Ports       []HostPort
	// Images maps each name of an image on the node to its size.
	Images map[string]int64
	// WithAffinity and WithAntiAffinity are the Pods that have any pod (anti-)affinity, and
	// those that have required anti-affinity.
	WithAffinity, WithAntiAffinity []*PodInfo
}

// WithNode returns n for a new version of the node object, nil for a node that is gone.
func (n *NodeInfo) WithNode(node *corev1.Node) *NodeInfo {
	out := *n
	out.Node = node
	if node == nil {
		out.Allocatable, out.Images = Resource{}, nil
		return &out
	}
	out.Name = node.Name
	if n.Node != nil && sameAllocatable(n.Node, node) {
		out.Allocatable = n.Allocatable
	} else {
		out.Allocatable = NewResource(node.Status.Allocatable)
	}
	if n.Node == nil || !sameImages(n.Node, node) {
		out.Images = make(map[string]int64, len(node.Status.Images))
		for _, im := range node.Status.Images {
			for _, name := range im.Names {
				out.Images[name] = im.SizeBytes
			}
		}
	}
	return &out
}

// sameAllocatable saves the conversion at each heartbeat.
func sameAllocatable(a, b *corev1.Node) bool {
	x, y := a.Status.Allocatable, b.Status.Allocatable
	if len(x) != len(y) {
		return false
	}
	for name, q := range x {
		p, ok := y[name]
		if !ok || q.Cmp(p) != 0 {
			return false
		}
	}
	return true
}

func sameImages(a, b *corev1.Node) bool {
	return slices.EqualFunc(a.Status.Images, b.Status.Images, func(x, y corev1.ContainerImage) bool {
		return x.SizeBytes == y.SizeBytes && slices.Equal(x.Names, y.Names)
	})
}

// WithPod returns n with one more Pod.
func (n *NodeInfo) WithPod(p *PodInfo) *NodeInfo {
	out := *n
	out.Pods = appendCopy(n.Pods, p)
	out.add(p, 1)
	if len(p.Ports) > 0 {
		out.Ports = append(slices.Clone(n.Ports), p.Ports...)
	}
	if p.Affinity != nil {
		out.WithAffinity = appendCopy(n.WithAffinity, p)
		if len(p.Affinity.RequiredAnti) > 0 {
			out.WithAntiAffinity = appendCopy(n.WithAntiAffinity, p)
		}
	}
	return &out
}

// WithoutPod returns n without the Pod of that uid; n itself if it is not there.
func (n *NodeInfo) WithoutPod(uid types.UID) *NodeInfo {
	i := slices.IndexFunc(n.Pods, func(p *PodInfo) bool { return p.Pod.UID == uid })
	if i < 0 {
		return n
	}
	p := n.Pods[i]
	out := *n
	out.Pods = without(n.Pods, uid)
	out.add(p, -1)
	if len(p.Ports) > 0 {
		out.Ports = nil
		for _, q := range out.Pods {
			out.Ports = append(out.Ports, q.Ports...)
		}
	}
	if p.Affinity != nil {
		out.WithAffinity = without(n.WithAffinity, uid)
		out.WithAntiAffinity = without(n.WithAntiAffinity, uid)
	}
	return &out
}

// Replaced returns n with a newer version of one of its Pods.
func (n *NodeInfo) Replaced(p *PodInfo) *NodeInfo {
	i := slices.IndexFunc(n.Pods, func(q *PodInfo) bool { return q.Pod.UID == p.Pod.UID })
	if i < 0 {
		return n.WithPod(p)
	}
	old := n.Pods[i]
	if p.Affinity != nil || old.Affinity != nil || len(p.Ports)+len(old.Ports) > 0 {
		return n.WithoutPod(p.Pod.UID).WithPod(p)
	}
	out := *n
	out.Pods = slices.Clone(n.Pods)
	out.Pods[i] = p
	out.add(old, -1)
	out.add(p, 1)
	return &out
}

func (n *NodeInfo) add(p *PodInfo, sign int64) {
	n.Requested = n.Requested.Plus(p.Request, sign)
	n.NonZero.MilliCPU += sign * p.NonZero.MilliCPU
	n.NonZero.Memory += sign * p.NonZero.Memory
}

func appendCopy(pods []*PodInfo, p *PodInfo) []*PodInfo {
	out := make([]*PodInfo, len(pods)+1)
	copy(out, pods)
	out[len(pods)] = p
	return out
}

func without(pods []*PodInfo, uid types.UID) []*PodInfo {
	out := make([]*PodInfo, 0, len(pods))
	for _, p := range pods {
		if p.Pod.UID != uid {
			out = append(out, p)
		}
	}
	return out
}
