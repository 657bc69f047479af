package controllers

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	upstreamendpoints "k8s.io/kubernetes/pkg/api/v1/endpoints"
	netutils "k8s.io/utils/net"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
)

// endpoints is the controller of the old kind Endpoints: deprecated, still written,
// still what `kubectl get endpoints` shows. Nothing in the cluster routes by it. Upstream:
// pkg/controller/endpoint.
//
// Left out: the cut at 1000 addresses, and the annotation with the time of the last
// change.
type endpoints struct {
	a        *actor
	services *client.Cache[*corev1.Service]
	pods     *client.Cache[*corev1.Pod]
	objects  *client.Cache[*corev1.Endpoints]
}

const (
	endpointsManagedBy = "endpoints.kubernetes.io/managed-by"
	endpointsManager   = "endpoint-controller"
)

func newEndpoints(a *actor) logic {
	c := &endpoints{a: a}
	c.services = watch(a, func(ch client.Change[*corev1.Service]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.pods = watch(a, func(ch client.Change[*corev1.Pod]) { enqueueServices(a, c.services, ch) })
	c.objects = watch(a, func(ch client.Change[*corev1.Endpoints]) {
		if ch.Type == wire.Deleted {
			a.q.add(kube.KeyOf(ch.Old))
		}
	})
	return c
}

// endpointsInput is what a sync of one Service looks at.
type endpointsInput struct {
	Key       string
	Service   *corev1.Service // nil where it is gone
	Pods      []*corev1.Pod
	Endpoints *corev1.Endpoints // nil where there are none
}

func (c *endpoints) gather(key string) any {
	ns, name := split(key)
	in := endpointsInput{Key: key}
	in.Service, _ = c.services.Get(ns, name)
	in.Endpoints, _ = c.objects.Get(ns, name)
	switch {
	case in.Service == nil && in.Endpoints == nil:
		return nil
	case in.Service == nil:
		return in
	case in.Service.Spec.Type == corev1.ServiceTypeExternalName || in.Service.Spec.Selector == nil:
		return nil
	}
	in.Pods = selected(c.pods, in.Service)
	return in
}

func (c *endpoints) sync(r *run, input any) error {
	in := input.(endpointsInput)
	if in.Service == nil {
		req := remove(in.Endpoints, metav1.DeleteOptions{})
		req.Background = true
		if _, err := r.do(req); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	fresh := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: in.Service.Namespace, Name: in.Service.Name}}
	if in.Endpoints != nil {
		fresh = in.Endpoints.DeepCopy()
	}
	fresh.Subsets = endpointSubsets(in)
	fresh.Labels = map[string]string{}
	maps.Copy(fresh.Labels, in.Service.Labels)
	delete(fresh.Labels, corev1.IsHeadlessService)
	if in.Service.Spec.ClusterIP == "" || in.Service.Spec.ClusterIP == corev1.ClusterIPNone {
		fresh.Labels[corev1.IsHeadlessService] = ""
	}
	fresh.Labels[endpointsManagedBy] = endpointsManager
	if in.Endpoints != nil && equality.Semantic.DeepEqual(fresh, in.Endpoints) {
		return nil
	}
	req, verb := update(fresh), "update"
	if in.Endpoints == nil {
		req, verb = create(fresh), "create"
	}
	req.Background = true
	_, err := r.do(req)
	if err == nil || terminating(err) {
		return nil
	}
	r.event(fresh, corev1.EventTypeWarning, map[string]string{"create": "FailedToCreateEndpoint", "update": "FailedToUpdateEndpoint"}[verb],
		fmt.Sprintf("Failed to %s endpoint %s: %v", verb, in.Key, err))
	return err
}

// endpointSubsets groups the addresses by their ports, ready and not ready apart.
func endpointSubsets(in endpointsInput) []corev1.EndpointSubset {
	s := in.Service
	var subsets []corev1.EndpointSubset
	for _, p := range in.Pods {
		if !endpointsliceutil.ShouldPodBeInEndpoints(p, s.Spec.PublishNotReadyAddresses) {
			continue
		}
		addr, ok := endpointAddress(s, p)
		if !ok {
			continue
		}
		add := func(ports []corev1.EndpointPort) {
			sub := corev1.EndpointSubset{Ports: ports}
			if s.Spec.PublishNotReadyAddresses || endpointsliceutil.IsPodReady(p) {
				sub.Addresses = []corev1.EndpointAddress{addr}
			} else {
				sub.NotReadyAddresses = []corev1.EndpointAddress{addr}
			}
			subsets = append(subsets, sub)
		}
		if len(s.Spec.Ports) == 0 && s.Spec.ClusterIP == corev1.ClusterIPNone {
			add(nil)
		}
		for i := range s.Spec.Ports {
			sp := &s.Spec.Ports[i]
			if n, err := endpointslice.FindPort(p, sp); err == nil {
				add([]corev1.EndpointPort{{Name: sp.Name, Port: int32(n), Protocol: sp.Protocol, AppProtocol: sp.AppProtocol}})
			}
		}
	}
	return upstreamendpoints.RepackSubsets(subsets)
}

func endpointAddress(s *corev1.Service, p *corev1.Pod) (corev1.EndpointAddress, bool) {
	v6 := len(s.Spec.IPFamilies) > 0 && s.Spec.IPFamilies[0] == corev1.IPv6Protocol
	for _, ip := range p.Status.PodIPs {
		if netutils.IsIPv6String(ip.IP) != v6 {
			continue
		}
		node := p.Spec.NodeName
		a := corev1.EndpointAddress{
			IP: ip.IP, NodeName: &node,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		}
		if endpointsliceutil.ShouldSetHostname(p, s) {
			a.Hostname = p.Spec.Hostname
		}
		return a, true
	}
	return corev1.EndpointAddress{}, false
}
