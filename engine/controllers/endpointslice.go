package controllers

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	endpointsliceutil "k8s.io/endpointslice/util"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

const (
	endpointSliceManager = "endpointslice-controller.k8s.io"
	maxEndpointsPerSlice = 100
)

// endpointSlices is the EndpointSlice controller: for every Service with a selector it
// writes down which Pods are behind it. Upstream: pkg/controller/endpointslice and
// k8s.io/endpointslice.
//
// Left out: topology hints.
type endpointSlices struct {
	a        *actor
	services *client.Cache[*corev1.Service]
	pods     *client.Cache[*corev1.Pod]
	nodes    *client.Cache[*corev1.Node]
	slices   *client.Cache[*discoveryv1.EndpointSlice]
	// triggers is what the last-change-trigger-time annotation is computed from, by
	// Service.
	triggers map[string]triggerTimes
}

type triggerTimes struct {
	Service time.Time
	Pods    map[string]time.Time // by name; never changed once it is here
}

func newEndpointSlices(a *actor) logic {
	c := &endpointSlices{a: a, triggers: map[string]triggerTimes{}}
	c.services = watch(a, func(ch client.Change[*corev1.Service]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.pods = watch(a, func(ch client.Change[*corev1.Pod]) { enqueueServices(a, c.services, ch) })
	c.nodes = watch(a, quiet[*corev1.Node])
	c.slices = watch(a, c.sliceChanged)
	return c
}

// enqueueServices puts the Services in line for which a change of a Pod matters.
func enqueueServices(a *actor, services *client.Cache[*corev1.Service], ch client.Change[*corev1.Pod]) {
	if ch.Type == wire.Modified && reflect.DeepEqual(ch.Old.Labels, ch.New.Labels) && !endpointChanged(ch.Old, ch.New) {
		return
	}
	services.Each(ch.Object().Namespace, func(s *corev1.Service) bool {
		if len(s.Spec.Selector) == 0 {
			return true
		}
		sel := labels.SelectorFromSet(s.Spec.Selector)
		if ch.New != nil && sel.Matches(labels.Set(ch.New.Labels)) || ch.Old != nil && sel.Matches(labels.Set(ch.Old.Labels)) {
			a.q.add(kube.KeyOf(s))
		}
		return true
	})
}

func endpointChanged(old, pod *corev1.Pod) bool {
	return endpointsliceutil.ShouldPodBeInEndpoints(old, true) != endpointsliceutil.ShouldPodBeInEndpoints(pod, true) ||
		endpointsliceutil.IsPodReady(old) != endpointsliceutil.IsPodReady(pod) ||
		(old.DeletionTimestamp != nil) != (pod.DeletionTimestamp != nil) ||
		old.Spec.NodeName != pod.Spec.NodeName || !reflect.DeepEqual(old.Status.PodIPs, pod.Status.PodIPs)
}

// sliceChanged looks again at a Service whose slice somebody else changed.
func (c *endpointSlices) sliceChanged(ch client.Change[*discoveryv1.EndpointSlice]) {
	o := ch.Object()
	service := o.Labels[discoveryv1.LabelServiceName]
	if service == "" || o.Labels[discoveryv1.LabelManagedBy] != endpointSliceManager {
		return
	}
	if ch.Type == wire.Modified && ch.Old.Generation == ch.New.Generation && reflect.DeepEqual(ch.Old.Labels, ch.New.Labels) {
		return
	}
	c.a.q.add(kube.Key(o.Namespace, service))
}

// endpointSliceInput is what a sync of one Service looks at.
type endpointSliceInput struct {
	Service *corev1.Service
	Pods    []*corev1.Pod
	Nodes   map[string]*corev1.Node
	Slices  []*discoveryv1.EndpointSlice
	Trigger time.Time
}

func (c *endpointSlices) gather(key string) any {
	ns, name := split(key)
	s, ok := c.services.Get(ns, name)
	if !ok {
		delete(c.triggers, key) // the slices go by garbage collection
		return nil
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.Selector == nil {
		return nil
	}
	in := endpointSliceInput{Service: s, Nodes: map[string]*corev1.Node{}}
	in.Pods = selected(c.pods, s)
	for _, p := range in.Pods {
		if n, ok := c.nodes.Get("", p.Spec.NodeName); ok {
			in.Nodes[n.Name] = n
		}
	}
	c.slices.Each(ns, func(e *discoveryv1.EndpointSlice) bool {
		if e.Labels[discoveryv1.LabelServiceName] == name && e.Labels[discoveryv1.LabelManagedBy] == endpointSliceManager && e.DeletionTimestamp == nil {
			in.Slices = append(in.Slices, e)
		}
		return true
	})
	in.Trigger = c.triggerTime(key, s, in.Pods)
	return in
}

// selected returns the Pods that a Service selects.
func selected(pods *client.Cache[*corev1.Pod], s *corev1.Service) []*corev1.Pod {
	var out []*corev1.Pod
	sel := labels.SelectorFromSet(s.Spec.Selector)
	pods.Each(s.Namespace, func(p *corev1.Pod) bool {
		if sel.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
		return true
	})
	return out
}

// triggerTime is the earliest of the changes since the last sync; zero where none has a
// time.
func (c *endpointSlices) triggerTime(key string, s *corev1.Service, pods []*corev1.Pod) time.Time {
	last, known := c.triggers[key]
	now := triggerTimes{Service: s.CreationTimestamp.Time, Pods: map[string]time.Time{}}
	var earliest time.Time
	changed := func(was, is time.Time) {
		if is.After(was) && (earliest.IsZero() || is.Before(earliest)) {
			earliest = is
		}
	}
	for _, p := range pods {
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady && !cond.LastTransitionTime.IsZero() {
				now.Pods[p.Name] = cond.LastTransitionTime.Time
				changed(last.Pods[p.Name], cond.LastTransitionTime.Time)
			}
		}
	}
	changed(last.Service, now.Service)
	c.triggers[key] = now
	if !known {
		return now.Service
	}
	return earliest
}

func (c *endpointSlices) forget() { c.triggers = map[string]triggerTimes{} }

func (c *endpointSlices) snapshot() any { return maps.Clone(c.triggers) }

func (c *endpointSlices) restore(s any) { c.triggers = maps.Clone(s.(map[string]triggerTimes)) }

// slicePlan is what has to be written for one Service.
type slicePlan struct {
	create, update []*discoveryv1.EndpointSlice
	remove         []*discoveryv1.EndpointSlice
}

func (c *endpointSlices) sync(r *run, input any) error {
	in := input.(endpointSliceInput)
	var plan slicePlan
	types := addressTypes(in.Service)
	existing := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	for _, e := range in.Slices {
		if slices.Contains(types, e.AddressType) {
			existing[e.AddressType] = append(existing[e.AddressType], e)
		} else {
			plan.remove = append(plan.remove, e)
		}
	}
	var missing error
	for _, t := range types {
		if err := planSlices(&plan, in, t, existing[t]); err != nil {
			missing = err
		}
	}
	if err := c.write(r, in, plan); err != nil {
		return err
	}
	return missing
}

func addressTypes(s *corev1.Service) []discoveryv1.AddressType {
	var out []discoveryv1.AddressType
	for _, f := range s.Spec.IPFamilies {
		if f == corev1.IPv6Protocol {
			out = append(out, discoveryv1.AddressTypeIPv6)
		} else {
			out = append(out, discoveryv1.AddressTypeIPv4)
		}
	}
	if len(out) == 0 {
		out = append(out, discoveryv1.AddressTypeIPv4)
	}
	return out
}

// write sends the requests of a plan. A slice that would be deleted is used again for
// one that would be created, as upstream does: the first real endpoints take the place
// of the empty placeholder under the same name.
func (c *endpointSlices) write(r *run, in endpointSliceInput, plan slicePlan) error {
	for i := 0; i < len(plan.remove) && len(plan.create) > 0; {
		old, fresh := plan.remove[i], plan.create[len(plan.create)-1]
		if old.AddressType != fresh.AddressType || !metav1.IsControlledBy(old, in.Service) {
			i++
			continue
		}
		fresh.Name, fresh.ResourceVersion, fresh.UID = old.Name, old.ResourceVersion, old.UID
		plan.create = plan.create[:len(plan.create)-1]
		plan.update = append(plan.update, fresh)
		plan.remove = slices.Delete(slices.Clone(plan.remove), i, i+1)
	}
	var reqs []wire.Request
	if in.Service.DeletionTimestamp == nil {
		for _, e := range plan.create {
			reqs = append(reqs, c.announce(r, in, create(e), e))
		}
	}
	for _, e := range plan.update {
		reqs = append(reqs, c.announce(r, in, update(e), e))
	}
	for _, e := range plan.remove {
		req := remove(e, metav1.DeleteOptions{})
		req.Background = true
		reqs = append(reqs, req)
	}
	for _, req := range reqs {
		if _, err := r.do(req); err != nil && !terminating(err) {
			return fmt.Errorf("failed to %s %s EndpointSlice for Service %s/%s: %v", req.Verb, req.Name, in.Service.Namespace, in.Service.Name, err)
		}
	}
	return nil
}

// announce tells what a slice will say and returns the request, which itself stays in
// the background.
func (c *endpointSlices) announce(r *run, in endpointSliceInput, req wire.Request, e *discoveryv1.EndpointSlice) wire.Request {
	if in.Trigger.IsZero() {
		delete(e.Annotations, corev1.EndpointsLastChangeTriggerTime)
	} else {
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[corev1.EndpointsLastChangeTriggerTime] = in.Trigger.UTC().Format(time.RFC3339Nano)
	}
	r.hop(trace.Hop{
		Stage: stage.Routing, Verb: fmt.Sprintf("%s EndpointSlice", req.Verb), Object: ref("Service", in.Service),
		Message: fmt.Sprintf("Service %s selects %s: %s", in.Service.Name, labels.Set(in.Service.Spec.Selector), describeEndpoints(in, e)),
	})
	req.Background = true
	return req
}

func describeEndpoints(in endpointSliceInput, e *discoveryv1.EndpointSlice) string {
	if len(in.Pods) == 0 {
		return "no Pod matches, no endpoints"
	}
	if len(e.Endpoints) == 0 {
		return fmt.Sprintf("%s selected, none with an IP address yet", count(len(in.Pods), "Pod"))
	}
	parts := make([]string, len(e.Endpoints))
	for i, ep := range e.Endpoints {
		state := "not ready"
		switch {
		case *ep.Conditions.Ready:
			state = "ready"
		case *ep.Conditions.Terminating:
			state = "terminating"
		}
		parts[i] = fmt.Sprintf("%s (%s) %s", ep.Addresses[0], ep.TargetRef.Name, state)
	}
	if len(e.Ports) == 0 {
		return strings.Join(parts, ", ") + "; no container port matches the Service's targetPort"
	}
	return strings.Join(parts, ", ")
}
