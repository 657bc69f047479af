package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// admit is the node's own look at a Pod that is bound to it: the scheduler may have been
// wrong, or was not asked. It returns the reason of a rejection, "" to admit.
func (kl *Kubelet) admit(w *worker) (reason, message string) {
	pod := w.Pod
	if want := pod.Labels[corev1.LabelOSStable]; want != "" && want != "linux" {
		return "PodOSSelectorNodeLabelDoesNotMatch", "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
	}
	if pod.Spec.OS != nil && pod.Spec.OS.Name != corev1.Linux {
		return "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
	}
	if name := forbiddenSysctl(pod); name != "" {
		return "SysctlForbidden", fmt.Sprintf("forbidden sysctl: %q not allowlisted", name)
	}
	if reason, message := kl.fits(pod); reason != "" {
		return reason, message
	}
	node := kl.ownNode()
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !ok {
		return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	}
	if pod.Spec.NodeName != kl.cfg.Node {
		return "NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"
	}
	if kl.portTaken(w) {
		return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
	}
	if !w.Static && untolerated(node.Spec.Taints, pod.Spec.Tolerations) {
		return "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
	}
	return "", ""
}

// ownNode is the Node object, or what the kubelet would register where it has not come yet.
func (kl *Kubelet) ownNode() *corev1.Node {
	if n, ok := kl.node.Get("", kl.cfg.Node); ok {
		return n
	}
	n := &corev1.Node{}
	n.Name, n.Labels, n.Spec.Taints = kl.cfg.Node, kl.nodeLabels(), kl.cfg.Taints
	return n
}

// active reports whether a worker's Pod takes part of the node's resources.
func (w *worker) active() bool {
	return !w.Rejected && w.Phase != finished && (w.Status == nil || !terminal(w.Status.Phase) || w.Phase != syncing)
}

// fits compares what the Pod requests with what the admitted Pods leave. What those request
// is only added up for a Pod that requests something itself.
func (kl *Kubelet) fits(pod *corev1.Pod) (reason, message string) {
	var others []*worker
	for _, other := range kl.Workers {
		if other.UID != pod.UID && other.active() {
			others = append(others, other)
		}
	}
	allowed, pods := kl.cfg.Allocatable, int64(len(others))
	if limit := allowed.Pods().Value(); pods+1 > limit {
		return "OutOfpods", insufficient(corev1.ResourcePods, 1, pods, limit)
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	if len(requests) == 0 {
		return "", ""
	}
	used := corev1.ResourceList{}
	for _, other := range others {
		for name, q := range resourcehelper.PodRequests(other.Pod, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		want := amount(name, requests[name])
		if want == 0 {
			continue
		}
		have, taken := amount(name, allowed[name]), amount(name, used[name])
		if want > have-taken {
			return "OutOf" + string(name), insufficient(name, want, taken, have)
		}
	}
	return "", ""
}

func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func insufficient(name corev1.ResourceName, requested, used, capacity int64) string {
	return fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity)
}

func hostPorts(pod *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				if p.HostPort > 0 {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func (kl *Kubelet) portTaken(w *worker) bool {
	mine := hostPorts(w.Pod)
	if len(mine) == 0 {
		return false
	}
	any := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	for _, other := range kl.Workers {
		if other.UID == w.UID || !other.active() {
			continue
		}
		for _, a := range mine {
			for _, b := range hostPorts(other.Pod) {
				same := a.HostPort == b.HostPort && protocolOf(a) == protocolOf(b)
				if same && (any(a.HostIP) || any(b.HostIP) || a.HostIP == b.HostIP) {
					return true
				}
			}
		}
	}
	return false
}

func protocolOf(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// untolerated looks at NoExecute taints alone; the others are the scheduler's.
func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) bool {
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectNoExecute {
			continue
		}
		ok := false
		for j := range tolerations {
			ok = ok || tolerates(&tolerations[j], &taints[i])
		}
		if !ok {
			return true
		}
	}
	return false
}

func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	}
	return false
}

// safeSysctls may be set by any Pod.
var safeSysctls = map[string]bool{
	"kernel.shm_rmid_forced": true, "net.ipv4.ip_local_port_range": true, "net.ipv4.tcp_syncookies": true, "net.ipv4.ping_group_range": true,
	"net.ipv4.ip_unprivileged_port_start": true, "net.ipv4.ip_local_reserved_ports": true, "net.ipv4.tcp_keepalive_time": true,
	"net.ipv4.tcp_fin_timeout": true, "net.ipv4.tcp_keepalive_intvl": true, "net.ipv4.tcp_keepalive_probes": true,
	"net.ipv4.tcp_rmem": true, "net.ipv4.tcp_wmem": true,
}

func forbiddenSysctl(pod *corev1.Pod) string {
	if pod.Spec.SecurityContext == nil {
		return ""
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		if !safeSysctls[strings.ReplaceAll(s.Name, "/", ".")] {
			return s.Name
		}
	}
	return ""
}

// reject fails a Pod before anything of it was made.
func (kl *Kubelet) reject(w *worker, reason, message string) {
	kl.recorder.Event(w.Pod, corev1.EventTypeWarning, reason, message)
	kl.hop(w, trace.Hop{Stage: stage.NodeAdmission, From: kl.me, To: kl.me, Verb: "admit", Outcome: trace.Denied, Reason: reason, Message: message})
	w.Rejected, w.Phase = true, finished
	kl.setStatus(w, &corev1.PodStatus{
		ObservedGeneration: w.Pod.Generation, QOSClass: qos.GetPodQOS(w.Pod), Phase: corev1.PodFailed, Reason: reason, Message: "Pod was rejected: " + message,
	})
}
