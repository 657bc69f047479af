package controllers

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	netutils "k8s.io/utils/net"
)

// terminating reports whether a request failed because its namespace is going away.
func terminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// portGroup is the endpoints that share one list of ports: one slice holds only those.
type portGroup struct {
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint // by Pod name
	existing  []*discoveryv1.EndpointSlice
}

// planSlices compares the Pods of a Service with its slices of one address type. It does
// what upstream's reconcileByAddressType does, in an order that does not depend on chance.
func planSlices(plan *slicePlan, in endpointSliceInput, t discoveryv1.AddressType, existing []*discoveryv1.EndpointSlice) error {
	groups := map[endpointsliceutil.PortMapKey]*portGroup{}
	missing := fillGroups(groups, in, t)
	var doomed []*discoveryv1.EndpointSlice
	for _, e := range existing {
		g := groups[endpointsliceutil.NewPortMapKey(e.Ports)]
		if g == nil || !metav1.IsControlledBy(e, in.Service) {
			doomed = append(doomed, e)
			continue
		}
		g.existing = append(g.existing, e)
	}
	creates := len(plan.create)
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		doomed = append(doomed, planGroup(plan, in, t, groups[key])...)
	}
	// Without any endpoint there still is one slice, an empty one.
	if len(doomed) == len(existing) && len(plan.create) == creates {
		empty := newSlice(in.Service, t, nil)
		if len(doomed) == 1 && isPlaceholder(doomed[0], empty) {
			doomed = nil
		} else {
			plan.create = append(plan.create, empty)
		}
	}
	plan.remove = append(plan.remove, doomed...)
	return missing
}

func fillGroups(groups map[endpointsliceutil.PortMapKey]*portGroup, in endpointSliceInput, t discoveryv1.AddressType) error {
	var missing error
	for _, p := range in.Pods {
		if !endpointsliceutil.ShouldPodBeInEndpoints(p, true) {
			continue
		}
		ports := endpointPorts(in.Service, p)
		key := endpointsliceutil.NewPortMapKey(ports)
		if groups[key] == nil {
			groups[key] = &portGroup{ports: ports}
		}
		if in.Nodes[p.Spec.NodeName] == nil && !in.Service.Spec.PublishNotReadyAddresses {
			missing = fmt.Errorf("skipping Pod %s for Service %s/%s: Node %s Not Found", p.Name, in.Service.Namespace, in.Service.Name, p.Spec.NodeName)
			continue
		}
		if ep := podEndpoint(in.Service, p, in.Nodes[p.Spec.NodeName], t); len(ep.Addresses) > 0 {
			groups[key].endpoints = append(groups[key].endpoints, ep)
		}
	}
	return missing
}

// planGroup fits one group's endpoints into its slices; it returns those that end up
// with none.
func planGroup(plan *slicePlan, in endpointSliceInput, t discoveryv1.AddressType, g *portGroup) (doomed []*discoveryv1.EndpointSlice) {
	left := slices.Clone(g.endpoints)
	take := func(uid discoveryv1.Endpoint) (discoveryv1.Endpoint, bool) {
		i := slices.IndexFunc(left, func(e discoveryv1.Endpoint) bool { return sameEndpoint(e, uid) })
		if i < 0 {
			return discoveryv1.Endpoint{}, false
		}
		e := left[i]
		left = slices.Delete(left, i, i+1)
		return e, true
	}
	var open []*discoveryv1.EndpointSlice // slices that are kept; those that change are copies
	changed := map[string]bool{}
	for _, e := range g.existing {
		fresh := e.DeepCopy()
		fresh.Endpoints = nil
		for _, ep := range e.Endpoints {
			now, wanted := take(ep)
			if !wanted {
				changed[e.Name] = true
				continue
			}
			fresh.Endpoints = append(fresh.Endpoints, now)
			if !endpointsliceutil.EndpointsEqualBeyondHash(&now, &ep) {
				changed[e.Name] = true
			}
		}
		if len(e.Endpoints) > 0 && len(fresh.Endpoints) == 0 {
			doomed = append(doomed, e)
			continue
		}
		fresh.Labels = sliceLabels(in.Service)
		if !equality.Semantic.DeepEqual(fresh.Labels, e.Labels) {
			changed[e.Name] = true
		}
		open = append(open, fresh)
	}
	fill := func(e *discoveryv1.EndpointSlice) {
		for len(left) > 0 && len(e.Endpoints) < maxEndpointsPerSlice {
			e.Endpoints, left = append(e.Endpoints, left[0]), left[1:]
			changed[e.Name] = true
		}
	}
	// Slices that change anyway are filled first, so that few have to be written.
	for _, first := range []bool{true, false} {
		for _, e := range open {
			if changed[e.Name] == first {
				fill(e)
			}
		}
	}
	for _, e := range open {
		if changed[e.Name] {
			plan.update = append(plan.update, e)
		}
	}
	for len(left) > 0 {
		e := newSlice(in.Service, t, g.ports)
		fill(e)
		plan.create = append(plan.create, e)
	}
	return doomed
}

// sameEndpoint compares what upstream hashes: the address and the Pod.
func sameEndpoint(a, b discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) && equality.Semantic.DeepEqual(a.TargetRef, b.TargetRef)
}

func podEndpoint(s *corev1.Service, p *corev1.Pod, n *corev1.Node, t discoveryv1.AddressType) discoveryv1.Endpoint {
	serving, leaving := endpointsliceutil.IsPodReady(p), p.DeletionTimestamp != nil
	ready := s.Spec.PublishNotReadyAddresses || serving && !leaving
	ep := discoveryv1.Endpoint{
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &leaving},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
	for _, ip := range p.Status.PodIPs {
		if netutils.IsIPv6String(ip.IP) == (t == discoveryv1.AddressTypeIPv6) {
			ep.Addresses = append(ep.Addresses, ip.IP)
		}
	}
	if p.Spec.NodeName != "" {
		node := p.Spec.NodeName
		ep.NodeName = &node
	}
	if n != nil && n.Labels[corev1.LabelTopologyZone] != "" {
		zone := n.Labels[corev1.LabelTopologyZone]
		ep.Zone = &zone
	}
	if endpointsliceutil.ShouldSetHostname(p, s) {
		host := p.Spec.Hostname
		ep.Hostname = &host
	}
	return ep
}

// endpointPorts looks the Service's targetPorts up in the Pod; a name that no container
// has gives no port.
func endpointPorts(s *corev1.Service, p *corev1.Pod) []discoveryv1.EndpointPort {
	var ports []discoveryv1.EndpointPort // nil where there are none, as it comes out of etcd
	for i := range s.Spec.Ports {
		sp := s.Spec.Ports[i]
		n, err := endpointslice.FindPort(p, &sp)
		if err != nil {
			continue
		}
		port := int32(n)
		ports = append(ports, discoveryv1.EndpointPort{Name: &sp.Name, Port: &port, Protocol: &sp.Protocol, AppProtocol: sp.AppProtocol})
	}
	return ports
}

func newSlice(s *corev1.Service, t discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	prefix := s.Name + "-"
	if len(validation.NameIsDNSSubdomain(prefix, true)) != 0 {
		prefix = s.Name
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: prefix, Namespace: s.Namespace, Labels: sliceLabels(s),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: t, Ports: ports,
	}
}

// sliceLabels are the Service's own labels and those that tie the slice to it.
func sliceLabels(s *corev1.Service) map[string]string {
	set := map[string]string{}
	maps.Copy(set, s.Labels)
	delete(set, corev1.IsHeadlessService)
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
		set[corev1.IsHeadlessService] = ""
	}
	set[discoveryv1.LabelServiceName] = s.Name
	set[discoveryv1.LabelManagedBy] = endpointSliceManager
	return set
}

func isPlaceholder(e, empty *discoveryv1.EndpointSlice) bool {
	return len(e.Ports) == 0 && len(e.Endpoints) == 0 && maps.Equal(e.Labels, empty.Labels) &&
		equality.Semantic.DeepEqual(e.OwnerReferences, empty.OwnerReferences)
}
