package kubelet

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/cri"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// nodeState is what the kubelet knows of its own node.
type nodeState struct {
	Registered  bool
	Registering bool
	UID         types.UID
	Patching    bool
	Reported    kernel.Time // of the last patch of the status
	Told        string      // the last Ready status that an event told of

	RuntimeSeen  kernel.Time // the runtime's last answer
	RuntimeAsked bool
	Checked      bool // the runtime has answered at least once
	NetworkError string

	Images      []cri.ImageInfo
	ImagesStale bool

	Lease    *coordinationv1.Lease
	Renewing bool
}

type (
	nodeTag  struct{ What string }
	leaseTag struct{ Create bool }
)

// networkError is why Pods without the host's network cannot start, "" where they can.
func (n *nodeState) networkError() string { return n.NetworkError }

// startNode looks at the runtime first; the node registers with what it finds.
func (kl *Kubelet) startNode() {
	kl.Node.Registered, kl.Node.Registering, kl.Node.Patching, kl.Node.RuntimeAsked, kl.Node.Renewing = false, false, false, false, false
	kl.Node.RuntimeSeen = kl.k.Now()
	kl.Node.Told = ""
	if kl.cfg.Kwok {
		kl.register()
		return
	}
	kl.Node.ImagesStale = true
	kl.nodeEvent(corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	kl.askRuntime()
}

func (kl *Kubelet) askRuntime() {
	if kl.Node.RuntimeAsked {
		return
	}
	kl.Node.RuntimeAsked = true
	kl.ask(asked{What: askStatus}, cri.Status{})
}

// runtimeStatus is upstream's updateRuntimeUp.
func (kl *Kubelet) runtimeStatus(r cri.Response) {
	n := &kl.Node
	n.RuntimeAsked = false
	if r.Err != "" {
		kl.breakOff()
		kl.k.Send(kl.self, kl.cfg.LeasePeriod/2, runtimePoll{})
	} else {
		n.Checked, n.RuntimeSeen, n.NetworkError = true, kl.k.Now(), ""
		if !r.NetworkReady {
			message := r.NetworkMessage
			if message == "" {
				message = "Network plugin returns error: cni plugin not initialized"
			}
			n.NetworkError = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:" + message
		}
	}
	if !n.Registered {
		kl.register()
		return
	}
	if n.ImagesStale && r.Err == "" {
		n.ImagesStale = false
		kl.ask(asked{What: askImages}, cri.ListImages{})
		return
	}
	kl.syncNode()
}

// runtimePoll looks at a runtime that is down more often than at one that is up.
type runtimePoll struct{}

func (kl *Kubelet) imagesListed(r cri.Response) {
	if r.Err == "" {
		kl.Node.Images = r.Images
	}
	kl.syncNode()
}

// register creates the Node object, as the kubelet does with --register-node.
func (kl *Kubelet) register() {
	if kl.Node.Registering {
		return
	}
	kl.Node.Registering = true
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: kl.cfg.Node, Labels: kl.nodeLabels()}}
	node.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	node.Spec.Taints = slices.Clone(kl.cfg.Taints)
	if kl.cfg.PodCIDR != "" {
		node.Spec.PodCIDR, node.Spec.PodCIDRs = kl.cfg.PodCIDR, []string{kl.cfg.PodCIDR}
	}
	if kl.cfg.Kwok {
		node.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"}
	}
	node.Status = kl.nodeStatus(nil)
	kl.hopNode(trace.Hop{Verb: "POST", Message: "registers the node"})
	kl.c.Do(wire.Request{Verb: wire.Create, Resource: kube.Nodes, Name: node.Name, Object: node, Tag: nodeTag{"create"}, Background: true})
}

func (kl *Kubelet) nodeLabels() map[string]string {
	labels := map[string]string{
		"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: kl.cfg.Node,
	}
	maps.Copy(labels, kl.cfg.Labels)
	return labels
}

// nodeStatus is the status as it should be now; old is the one that is there.
func (kl *Kubelet) nodeStatus(old *corev1.NodeStatus) corev1.NodeStatus {
	s := corev1.NodeStatus{
		Capacity: kl.cfg.Capacity.DeepCopy(), Allocatable: kl.cfg.Allocatable.DeepCopy(),
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: kl.cfg.IP}, {Type: corev1.NodeHostName, Address: kl.cfg.Node}},
		NodeInfo: corev1.NodeSystemInfo{
			KernelVersion: "6.1.0-40-amd64", OSImage: "Debian GNU/Linux 12 (bookworm)", ContainerRuntimeVersion: "containerd://2.4.2",
			KubeletVersion: kube.Version, OperatingSystem: "linux", Architecture: "amd64",
		},
	}
	if !kl.cfg.Kwok {
		s.NodeInfo.MachineID = kl.machineID("machine")[:32]
		s.NodeInfo.SystemUUID = s.NodeInfo.MachineID
		s.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
		s.Images = kl.nodeImages()
		yes := true
		s.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes}
	}
	s.Conditions = kl.nodeConditions(old)
	return s
}

const kubeletPort = 10250

// machineID is a number that is the node's own and stays the same.
func (kl *Kubelet) machineID(what string) string {
	return hashOf(what + "/" + kl.cfg.Node)
}

// nodeConditions keeps the transition times of what did not change.
func (kl *Kubelet) nodeConditions(old *corev1.NodeStatus) []corev1.NodeCondition {
	now := serialised(kl.k.Now())
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if message := kl.notReady(); message != "" {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", message
	}
	out := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		ready,
	}
	if kl.cfg.Kwok {
		out = append([]corev1.NodeCondition{ready}, out[:3]...)
		out = append(out, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "RouteCreated", Message: "RouteController created a route"})
	}
	for i := range out {
		c := &out[i]
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		if old == nil {
			continue
		}
		for _, was := range old.Conditions {
			if was.Type == c.Type && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
	if old != nil { // conditions of others stay
		for _, was := range old.Conditions {
			if !slices.ContainsFunc(out, func(c corev1.NodeCondition) bool { return c.Type == was.Type }) {
				out = append([]corev1.NodeCondition{was}, out...)
			}
		}
	}
	return out
}

// notReady is why the node is not Ready, "" where it is.
func (kl *Kubelet) notReady() string {
	switch {
	case kl.cfg.Kwok:
		return ""
	case !kl.Node.Checked:
		return "container runtime status check may not have completed yet"
	case kl.k.Now().Sub(kl.Node.RuntimeSeen) >= kl.cfg.RuntimeTimeout:
		return "container runtime is down"
	}
	return kl.Node.NetworkError
}

func (kl *Kubelet) nodeImages() []corev1.ContainerImage {
	var out []corev1.ContainerImage
	at := map[string]int{}
	for _, im := range kl.Node.Images {
		if i, ok := at[im.ID]; ok && im.ID != "" {
			out[i].Names = append(out[i].Names, im.Ref)
			continue
		}
		at[im.ID] = len(out)
		names := []string{im.ID, im.Ref}
		if im.ID == "" || im.ID == im.Ref {
			names = []string{im.Ref}
		}
		out = append(out, corev1.ContainerImage{Names: names, SizeBytes: im.SizeBytes})
	}
	slices.SortStableFunc(out, func(a, b corev1.ContainerImage) int { return int(min(max(b.SizeBytes-a.SizeBytes, -1), 1)) })
	if len(out) > 50 { // --node-status-max-images
		out = out[:50]
	}
	return out
}

// beat is the kubelet's clock: the Lease every time, the node's status where it changed.
func (kl *Kubelet) beat() {
	kl.k.Send(kl.self, kl.cfg.LeasePeriod, heartbeat{})
	if kl.Node.Registered {
		kl.renewLease()
	}
	if kl.cfg.Kwok {
		if !kl.Node.Registered {
			kl.register()
		}
		return
	}
	if kl.Node.RuntimeAsked && kl.k.Now().Sub(kl.Node.RuntimeSeen) >= kl.cfg.LeasePeriod {
		kl.Node.RuntimeAsked = false // no answer is an answer: ask again, and see what is said
		if kl.Node.Registered {
			kl.syncNode()
		} else {
			kl.register()
		}
	}
	kl.askRuntime()
}

// syncNode patches the node's status where it changed, or was not reported for long.
func (kl *Kubelet) syncNode() {
	n := &kl.Node
	node, ok := kl.node.Get("", kl.cfg.Node)
	if !n.Registered || n.Patching || !ok {
		return
	}
	s := kl.nodeStatus(&node.Status)
	if node.Status.VolumesInUse != nil {
		s.VolumesInUse, s.VolumesAttached = node.Status.VolumesInUse, node.Status.VolumesAttached
	}
	kl.tellReady(&node.Status, &s)
	if kl.k.Now().Sub(n.Reported) < kl.cfg.ReportPeriod && !nodeStatusChanged(&node.Status, &s) {
		return
	}
	n.Patching = true
	kl.c.Do(wire.Request{
		Verb: wire.Patch, Resource: kube.Nodes, Subresource: "status", Name: kl.cfg.Node, Tag: nodeTag{"status"}, Background: true,
		Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: kl.cfg.Node, UID: node.UID}, Status: s},
	})
}

// nodeStatusChanged ignores the heartbeat times, as upstream does.
func nodeStatusChanged(a, b *corev1.NodeStatus) bool {
	return !bytes.Equal(withoutHeartbeats(a), withoutHeartbeats(b))
}

// withoutHeartbeats encodes a status, which is quicker to compare than the status itself:
// every node asks every ten seconds.
func withoutHeartbeats(s *corev1.NodeStatus) []byte {
	c := *s
	c.Conditions = slices.Clone(s.Conditions)
	for i := range c.Conditions {
		c.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	slices.SortFunc(c.Conditions, func(x, y corev1.NodeCondition) int { return strings.Compare(string(x.Type), string(y.Type)) })
	out, err := c.Marshal()
	if err != nil {
		panic("kubelet: a node's status cannot be encoded: " + err.Error())
	}
	return out
}

// tellReady writes the event that goes with a change of the Ready condition, and a hop
// that the learner sees: a node that is not Ready explains Pods that do not start.
func (kl *Kubelet) tellReady(old, s *corev1.NodeStatus) {
	was, is := readyOf(old), readyOf(s)
	if kl.Node.Told == "" {
		kl.Node.Told = string(was.Status)
	}
	if string(is.Status) == kl.Node.Told {
		return
	}
	kl.Node.Told = string(is.Status)
	reason := "NodeReady"
	h := trace.Hop{Stage: stage.NodeLifecycle, From: kl.me, To: stage.APIServer, Verb: "PATCH status", Object: trace.Ref{Kind: "Node", Name: kl.cfg.Node}, Reason: is.Reason, Message: is.Message}
	if is.Status != corev1.ConditionTrue {
		reason = "NodeNotReady"
		h.Outcome = trace.Failed
	}
	kl.nodeEvent(corev1.EventTypeNormal, reason, "Node "+kl.cfg.Node+" status is now: "+reason)
	kl.log.Record(h)
}

func readyOf(s *corev1.NodeStatus) corev1.NodeCondition {
	for _, c := range s.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// nodeEvent writes an event about the node; the kubelet names it as its own uid.
func (kl *Kubelet) nodeEvent(eventType, reason, message string) {
	kl.recorder.EventFor(corev1.ObjectReference{Kind: "Node", Name: kl.cfg.Node, UID: types.UID(kl.cfg.Node)}, eventType, reason, message)
}

func (kl *Kubelet) hopNode(h trace.Hop) {
	h.Stage, h.From, h.To, h.Background = stage.NodeLifecycle, kl.me, stage.APIServer, true
	h.Object = trace.Ref{Kind: "Node", Name: kl.cfg.Node}
	kl.log.Record(h)
}

func (kl *Kubelet) nodeAnswered(t nodeTag, a wire.Answer) {
	n := &kl.Node
	switch t.What {
	case "create":
		n.Registering = false
		if err := a.Err(); err != nil && !apierrors.IsAlreadyExists(err) {
			kl.k.Send(kl.self, time.Second, registerAgain{})
			return
		}
		n.Registered, n.Reported = true, kl.k.Now()
		if node, ok := a.Object.(*corev1.Node); ok && a.Err() == nil {
			n.UID = node.UID
		}
		kl.node.Start()
		kl.renewLease()
		if !kl.cfg.Kwok {
			for _, reason := range []string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"} {
				kl.nodeEvent(corev1.EventTypeNormal, reason, "Node "+kl.cfg.Node+" status is now: "+reason)
			}
			kl.nodeEvent(corev1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
		}
	case "status":
		n.Patching = false
		if a.Err() == nil {
			n.Reported = kl.k.Now()
		}
	}
}

type registerAgain struct{}

// nodeChanged keeps the node's uid, and makes up for a status that somebody else set.
func (kl *Kubelet) nodeChanged(changes []client.Change[*corev1.Node]) {
	for _, ch := range changes {
		if ch.Type == wire.Deleted {
			continue
		}
		first := kl.Node.UID == ""
		kl.Node.UID = ch.New.UID
		if first {
			for _, w := range kl.sorted() {
				if w.Static {
					kl.keepMirror(w)
				}
			}
		}
	}
	if node, ok := kl.node.Get("", kl.cfg.Node); ok && readyOf(&node.Status).Status == corev1.ConditionUnknown {
		kl.syncNode() // the node controller gave it up for lost
	} else if ok && !kl.cfg.Kwok && kl.Node.ImagesStale {
		kl.askRuntime()
	}
}

// renewLease says that the node is alive.
func (kl *Kubelet) renewLease() {
	n := &kl.Node
	if n.Renewing {
		n.Renewing = false // the last one got no answer
	}
	n.Renewing = true
	now := metav1.NewMicroTime(kl.k.Now().Wall().Truncate(time.Microsecond))
	if n.Lease == nil {
		holder, seconds := kl.cfg.Node, int32(40)
		l := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: kl.cfg.Node},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}
		if n.UID != "" {
			l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: kl.cfg.Node, UID: n.UID}}
		}
		kl.c.Do(wire.Request{Verb: wire.Create, Resource: kube.Leases, Namespace: l.Namespace, Name: l.Name, Object: l, Tag: leaseTag{true}, Background: true})
		return
	}
	l := n.Lease.DeepCopy()
	l.Spec.RenewTime = &now
	kl.c.Do(wire.Request{Verb: wire.Update, Resource: kube.Leases, Namespace: l.Namespace, Name: l.Name, Object: l, Tag: leaseTag{false}, Background: true})
}

func (kl *Kubelet) leaseAnswered(t leaseTag, a wire.Answer) {
	n := &kl.Node
	n.Renewing = false
	err := a.Err()
	switch {
	case err == nil:
		if l, ok := a.Object.(*coordinationv1.Lease); ok {
			n.Lease = l
		}
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		kl.c.Get(kube.Leases, corev1.NamespaceNodeLease, kl.cfg.Node, leaseTag{false})
	case apierrors.IsNotFound(err) && !t.Create:
		n.Lease = nil // the next beat makes it anew
	}
}
