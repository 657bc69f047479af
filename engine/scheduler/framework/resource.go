package framework

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// What a container without requests counts as when nodes are scored, so that many of
// them do not all go to one node.
const (
	DefaultMilliCPURequest int64 = 100
	DefaultMemoryRequest   int64 = 200 * 1024 * 1024
)

// Resource is an amount of each resource, in numbers.
type Resource struct {
	MilliCPU         int64
	Memory           int64
	EphemeralStorage int64
	AllowedPodNumber int
	Scalar           map[corev1.ResourceName]int64 // nil where there is none; never changed in place
}

// NewResource converts a resource list.
func NewResource(rl corev1.ResourceList) Resource {
	var r Resource
	for name, q := range rl {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = q.MilliValue()
		case corev1.ResourceMemory:
			r.Memory = q.Value()
		case corev1.ResourcePods:
			r.AllowedPodNumber = int(q.Value())
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = q.Value()
		default:
			if IsScalarResourceName(name) {
				if r.Scalar == nil {
					r.Scalar = map[corev1.ResourceName]int64{}
				}
				r.Scalar[name] = q.Value()
			}
		}
	}
	return r
}

// Plus returns r with sign times o added, for sign 1 or -1.
func (r Resource) Plus(o Resource, sign int64) Resource {
	r.MilliCPU += sign * o.MilliCPU
	r.Memory += sign * o.Memory
	r.EphemeralStorage += sign * o.EphemeralStorage
	if len(o.Scalar) > 0 {
		if r.Scalar = maps.Clone(r.Scalar); r.Scalar == nil {
			r.Scalar = map[corev1.ResourceName]int64{}
		}
		for name, n := range o.Scalar {
			r.Scalar[name] += sign * n
		}
	}
	return r
}

// IsScalarResourceName reports whether a resource is counted like an extended one:
// extended resources, huge pages, attachable volumes, prefixed native ones.
func IsScalarResourceName(name corev1.ResourceName) bool {
	s := string(name)
	return IsExtendedResourceName(name) || strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) ||
		strings.Contains(s, corev1.ResourceDefaultNamespacePrefix) || strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix)
}

// IsExtendedResourceName reports whether a resource lies outside of Kubernetes' own names.
func IsExtendedResourceName(name corev1.ResourceName) bool {
	s := string(name)
	native := !strings.Contains(s, "/") || strings.Contains(s, corev1.ResourceDefaultNamespacePrefix)
	return !native && !strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix)
}

// PodRequests returns what a Pod asks for, in total: containers, init containers, sidecars
// and overhead as upstream adds them up.
func PodRequests(pod *corev1.Pod) Resource {
	return NewResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true}))
}

var nonMissing = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(DefaultMilliCPURequest, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(DefaultMemoryRequest, resource.DecimalSI),
}

// NonZeroRequests is PodRequests with the defaults in place of a container's missing cpu
// or memory request.
func NonZeroRequests(pod *corev1.Pod) Resource {
	return NewResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, NonMissingContainerRequests: nonMissing,
	}))
}
