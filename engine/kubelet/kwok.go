package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// kwokPod plays a kubelet as kwok does: a bound Pod is Running and Ready at once, a
// deleted one is gone at once, and there are no events.
func (kl *Kubelet) kwokPod(ch client.Change[*corev1.Pod]) {
	pod := ch.Object()
	if ch.Type == wire.Deleted {
		return
	}
	if pod.DeletionTimestamp != nil {
		if ch.Type == wire.Modified && ch.Old.DeletionTimestamp != nil && ch.Old.UID == pod.UID {
			return // asked for already
		}
		var now int64
		uid := pod.UID
		kl.kwokHop(pod, trace.Hop{Stage: stage.Termination, Verb: "DELETE", Message: "gracePeriodSeconds=0"})
		kl.c.Do(wire.Request{
			Verb: wire.Delete, Resource: kube.Pods, Namespace: pod.Namespace, Name: pod.Name, Background: true, Tag: kwokTag{},
			Options: wire.Options{Delete: &metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}}},
		})
		return
	}
	if pod.Status.PodIP != "" || terminal(pod.Status.Phase) {
		return
	}
	kl.kwokHop(pod, trace.Hop{Stage: stage.NodeWatch, Verb: "watch", Revision: revisionOf(pod)})
	kl.c.Do(wire.Request{
		Verb: wire.Patch, Resource: kube.Pods, Subresource: "status", Namespace: pod.Namespace, Name: pod.Name, Background: true,
		Tag:    kwokTag{trace.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}},
		Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, Status: kl.kwokStatus(pod)},
	})
}

// kwokTag is the tag of a status patch.
type kwokTag struct{ Pod trace.Ref }

func (kl *Kubelet) kwokPatched(t kwokTag, a wire.Answer) {
	if a.Err() != nil || t.Pod.Name == "" {
		return
	}
	kl.log.Record(trace.Hop{
		Stage: stage.Status, From: kl.me, To: stage.APIServer, Verb: "PATCH status", Object: t.Pod, Revision: a.Revision,
		Message: "phase Running, Ready=True", Background: t.Pod.Namespace == metav1.NamespaceSystem,
	})
}

func (kl *Kubelet) kwokHop(pod *corev1.Pod, h trace.Hop) {
	h.From, h.To = kl.me, stage.APIServer
	if h.Stage == stage.NodeWatch {
		h.From, h.To = stage.APIServer, kl.me
		h.Message = "ADDED, spec.nodeName is " + kl.cfg.Node
	}
	h.Object = trace.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	h.Background = pod.Namespace == metav1.NamespaceSystem
	kl.log.Record(h)
}

// kwokStatus is the status that kwok's stage pod-ready gives.
func (kl *Kubelet) kwokStatus(pod *corev1.Pod) corev1.PodStatus {
	now := serialised(kl.k.Now())
	s := *pod.Status.DeepCopy()
	s.Phase, s.HostIP, s.HostIPs = corev1.PodRunning, kl.cfg.IP, []corev1.HostIP{{IP: kl.cfg.IP}}
	s.PodIP = kl.cfg.IP
	if !pod.Spec.HostNetwork {
		s.PodIP = kl.kwokIP()
	}
	s.PodIPs, s.StartTime = []corev1.PodIP{{IP: s.PodIP}}, &now
	var conditions []corev1.PodCondition
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		conditions = append(conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, g := range pod.Spec.ReadinessGates {
		conditions = append(conditions, corev1.PodCondition{Type: g.ConditionType, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range s.Conditions {
		if _, have := podutil.GetPodConditionFromList(conditions, c.Type); have == nil {
			conditions = append(conditions, c)
		}
	}
	s.Conditions = conditions
	s.ContainerStatuses, s.InitContainerStatuses = nil, nil
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}},
		})
	}
	return s
}

// kwokIP takes the next address of the node's Pod network.
func (kl *Kubelet) kwokIP() string {
	cidr := kl.cfg.PodCIDR
	if n, ok := kl.node.Get("", kl.cfg.Node); ok && n.Spec.PodCIDR != "" {
		cidr = n.Spec.PodCIDR
	}
	if cidr == "" {
		cidr = "10.244.250.0/24"
	}
	last := kl.NextIP%254 + 1
	kl.NextIP++
	prefix := cidr[:strings.LastIndex(cidr[:strings.Index(cidr, "/")], ".")]
	return fmt.Sprintf("%s.%d", prefix, last)
}
