package apiserver

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/kube"
)

// allocate gives a Service its cluster IP and node ports. Upstream keeps bitmaps; here
// what is taken is what the stored Services have.
func (s *Server) allocate(f *flight, row *resources.Resource, old runtime.Object) error {
	svc, ok := f.Object.(*corev1.Service)
	if !ok || f.Req.Subresource != "" {
		return nil
	}
	was, isUpdate := old.(*corev1.Service)
	if isUpdate {
		keepAllocated(svc, was)
		followClusterIP(svc, was)
	}
	// On an update an address is only chosen where there was none: that a given one may
	// not change is for validation to say.
	if !isUpdate || !needsIP(was) || !needsIP(svc) {
		if errs := s.allocateClusterIP(svc); len(errs) > 0 {
			return invalid(row.Kind.Kind.GroupKind(), svc.Name, errs)
		}
	}
	if errs := s.allocateNodePorts(svc); len(errs) > 0 {
		return invalid(row.Kind.Kind.GroupKind(), svc.Name, errs)
	}
	return nil
}

// keepAllocated is upstream's patchAllocatedValues: a client that sends a Service back
// without the values that the server chose does not lose them.
func keepAllocated(svc, was *corev1.Service) {
	if needsIP(svc) && needsIP(was) {
		if svc.Spec.ClusterIP == "" {
			svc.Spec.ClusterIP = was.Spec.ClusterIP
		}
		if len(svc.Spec.ClusterIPs) == 0 && svc.Spec.ClusterIP == was.Spec.ClusterIP {
			svc.Spec.ClusterIPs = was.Spec.ClusterIPs
		}
	}
	if needsNodePort(svc) && needsNodePort(was) {
		had := map[string]int32{}
		for _, p := range was.Spec.Ports {
			had[fmt.Sprint(p.Protocol, p.Port)] = p.NodePort
		}
		for i := range svc.Spec.Ports {
			if p := &svc.Spec.Ports[i]; p.NodePort == 0 {
				p.NodePort = had[fmt.Sprint(p.Protocol, p.Port)]
			}
		}
	}
	if !needsNodePort(svc) && needsNodePort(was) {
		for i := range svc.Spec.Ports {
			for _, p := range was.Spec.Ports {
				if svc.Spec.Ports[i].NodePort == p.NodePort {
					svc.Spec.Ports[i].NodePort = 0
				}
			}
		}
	}
}

// followClusterIP is upstream's normalizeClusterIPs for an update: a client that knows
// only the singular field means both.
func followClusterIP(svc, was *corev1.Service) {
	same := slices.Equal(svc.Spec.ClusterIPs, was.Spec.ClusterIPs)
	switch {
	case svc.Spec.ClusterIP == was.Spec.ClusterIP || !same:
	case svc.Spec.ClusterIP == "":
		svc.Spec.ClusterIPs = nil
	default:
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
	}
}

func needsIP(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName }

func needsNodePort(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort ||
		svc.Spec.Type == corev1.ServiceTypeLoadBalancer && (svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts)
}

func (s *Server) allocateClusterIP(svc *corev1.Service) field.ErrorList {
	spec := &svc.Spec
	if !needsIP(svc) {
		spec.ClusterIP, spec.ClusterIPs = "", nil
		return nil
	}
	if spec.IPFamilyPolicy == nil {
		single := corev1.IPFamilyPolicySingleStack
		spec.IPFamilyPolicy = &single
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	taken := map[string]bool{}
	for _, o := range s.List(kube.Services, "") {
		if o := o.(*corev1.Service); o.Namespace != svc.Namespace || o.Name != svc.Name {
			taken[o.Spec.ClusterIP] = true
		}
	}
	cidr := netip.MustParsePrefix(s.cfg.ServiceCIDR)
	if spec.ClusterIP != "" {
		at := field.NewPath("spec", "clusterIPs")
		addr, err := netip.ParseAddr(spec.ClusterIP)
		switch {
		case err != nil:
			return nil // validation says so
		case !cidr.Contains(addr):
			return field.ErrorList{field.Invalid(at, spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: the provided IP (%s) is not in the valid range. The range of valid IPs is %s", addr, addr, s.cfg.ServiceCIDR))}
		case taken[spec.ClusterIP]:
			return field.ErrorList{field.Invalid(at, spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", addr))}
		}
		return nil
	}
	spec.ClusterIP = s.freeIP(cidr, taken)
	spec.ClusterIPs = []string{spec.ClusterIP}
	return nil
}

// freeIP draws from the upper part of the range; the first 256 addresses are kept for
// those who ask for one.
func (s *Server) freeIP(cidr netip.Prefix, taken map[string]bool) string {
	const reserved = 256
	size := 1 << (32 - cidr.Bits())
	base := cidr.Masked().Addr().As4()
	first := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	for {
		n := first + uint32(reserved+s.addrs.IntN(size-reserved-1))
		ip := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
		if !taken[ip] {
			return ip
		}
	}
}

func (s *Server) allocateNodePorts(svc *corev1.Service) field.ErrorList {
	if !needsNodePort(svc) {
		return nil
	}
	taken := map[int32]bool{}
	for _, o := range s.List(kube.Services, "") {
		o := o.(*corev1.Service)
		if o.Namespace == svc.Namespace && o.Name == svc.Name {
			continue
		}
		for _, p := range o.Spec.Ports {
			taken[p.NodePort] = true
		}
	}
	first, last := s.cfg.NodePortFirst, s.cfg.NodePortLast
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		at := field.NewPath("spec", "ports").Index(i).Child("nodePort")
		switch {
		case p.NodePort == 0:
			for p.NodePort == 0 || taken[p.NodePort] {
				p.NodePort = first + int32(s.addrs.IntN(int(last-first+1)))
			}
		case p.NodePort < first || p.NodePort > last:
			return field.ErrorList{field.Invalid(at, p.NodePort, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", first, last))}
		case taken[p.NodePort]:
			return field.ErrorList{field.Invalid(at, p.NodePort, "provided port is already allocated")}
		}
		taken[p.NodePort] = true
	}
	return nil
}
