package engine

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// DeadlineDefault is how long, in virtual time, a run may take until what was asked for
// must have come true.
const DeadlineDefault = 10 * time.Minute

// Verdict says how a run ended.
type Verdict struct {
	Ready bool
	// Stage is that of the first thing that did not happen, absence included. Empty when
	// ready.
	Stage stage.ID
	// Reason and Message are the literal words of the deciding hop, where there is one.
	Reason, Message string
	// Object is what did not come true.
	Object trace.Ref
	// Hop is the deciding hop, 0 where nothing at all happened.
	Hop uint64
	// Silence says, where nobody did, what there is and who did not act.
	Silence string
}

// String is "ready", or the stage with the reason and message of the deciding hop.
func (v Verdict) String() string {
	if v.Ready {
		return "ready"
	}
	s := string(v.Stage)
	switch {
	case v.Reason != "" && v.Message != "":
		s += " (" + v.Reason + ": " + v.Message + ")"
	case v.Reason+v.Message != "":
		s += " (" + v.Reason + v.Message + ")"
	case v.Silence != "":
		s += " (" + v.Silence + ")"
	}
	return s
}

// Settle lets time pass until everything that was asked for is true and stays so for a
// moment, or the deadline (counted from the last thing that somebody did) has passed, and
// returns the verdict.
func (e *Engine) Settle(deadline time.Duration) Verdict {
	return e.settle(deadline, func() bool { return true })
}

// settle is Settle; tick is called now and then and stops it with false.
func (e *Engine) settle(deadline time.Duration, tick func() bool) Verdict {
	if deadline <= 0 {
		deadline = DeadlineDefault
	}
	end := e.acted.Add(deadline)
	for e.k.Err() == nil {
		if v := e.Verdict(); v.Ready {
			// Let what is under way end (status reports, endpoint slices), and look again.
			on := e.pass(e.k.Now().Add(e.quiet()), tick)
			if v := e.Verdict(); v.Ready || !on {
				return v
			}
			continue
		}
		if len(e.refused) > 0 && len(e.asked) == 0 {
			break // nothing was accepted: nothing will come
		}
		if e.k.Now() >= end || !e.pass(min(end, e.k.Now().Add(500*time.Millisecond)), tick) {
			break
		}
	}
	return e.Verdict()
}

// tickTurns is how many events lie between two ticks.
const tickTurns = 256

// pass lets time pass, and reports false when tick has stopped it.
func (e *Engine) pass(until kernel.Time, tick func() bool) bool {
	for n := 0; ; n++ {
		if n%tickTurns == 0 && !tick() {
			return false
		}
		if at, ok := e.k.Next(); !ok || at > until || !e.k.Step() {
			break
		}
	}
	if e.k.Err() == nil {
		e.k.AdvanceTo(until)
	}
	return true
}

// Verdict judges the run as it stands.
func (e *Engine) Verdict() Verdict {
	if len(e.refused) > 0 {
		h, _ := e.log.Get(e.refused[0])
		return verdictOf(h, h.Object)
	}
	// Services come last: one without endpoints is a consequence where its Pods are not Ready.
	for _, services := range []bool{false, true} {
		for _, ref := range e.asked {
			if (ref.Kind == "Service") != services {
				continue
			}
			if v, bad := e.judge(ref); bad {
				return v
			}
		}
	}
	return Verdict{Ready: true}
}

func verdictOf(h trace.Hop, about trace.Ref) Verdict {
	return Verdict{Stage: h.Stage, Reason: h.Reason, Message: h.Message, Object: about, Hop: h.Seq}
}

// inert are the kinds that are stored, checked and shown, and that nothing acts on.
var inert = kindSet("Job", "CronJob", "ReplicationController", "PodTemplate", "PersistentVolume",
	"PersistentVolumeClaim", "StorageClass", "VolumeAttachment", "NetworkPolicy", "Ingress",
	"IngressClass", "HorizontalPodAutoscaler", "CertificateSigningRequest", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")

// trueOnceStored are the kinds of which nothing has to become: they are what they are for
// as soon as they are stored.
var trueOnceStored = kindSet("Namespace", "Node", "Endpoints", "ConfigMap", "Secret", "ServiceAccount", "LimitRange", "ResourceQuota",
	"Event", "ControllerRevision", "EndpointSlice", "Lease", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
	"PriorityClass", "CSINode", "CSIDriver", "RuntimeClass", "PodDisruptionBudget")

func kindSet(kinds ...string) map[string]bool {
	m := map[string]bool{}
	for _, k := range kinds {
		m[k] = true
	}
	return m
}

// Inert returns the objects that were asked for and that nothing acts on.
func (e *Engine) Inert() []trace.Ref {
	var out []trace.Ref
	for _, ref := range e.asked {
		if inert[ref.Kind] {
			out = append(out, ref)
		}
	}
	return out
}

// judges are the kinds of which something has to become.
var judges = map[string]func(*Engine, trace.Ref) (Verdict, bool){
	"Pod":         (*Engine).judgePod,
	"Deployment":  (*Engine).judgeDeployment,
	"ReplicaSet":  (*Engine).judgeReplicaSet,
	"StatefulSet": (*Engine).judgeStatefulSet,
	"DaemonSet":   (*Engine).judgeDaemonSet,
	"Service":     (*Engine).judgeService,
}

// judge looks at one object that was asked for. bad is false when it is as it should be, or
// gone. A kind that is in no list is never well: somebody has to say what becomes of it.
func (e *Engine) judge(ref trace.Ref) (v Verdict, bad bool) {
	if inert[ref.Kind] || trueOnceStored[ref.Kind] {
		return Verdict{}, false
	}
	if judge, ok := judges[ref.Kind]; ok {
		return judge(e, ref)
	}
	return Verdict{Stage: stage.ControlPlane, Object: ref}, true
}

func (e *Engine) judgeReplicaSet(ref trace.Ref) (Verdict, bool) {
	o, ok := e.Get(kube.ReplicaSets, ref.Namespace, ref.Name)
	if !ok {
		return Verdict{}, false
	}
	rs := o.(*appsv1.ReplicaSet)
	return e.judgeOwned(ref, rs.UID, replicas(rs.Spec.Replicas))
}

func (e *Engine) judgeStatefulSet(ref trace.Ref) (Verdict, bool) {
	o, ok := e.Get(kube.StatefulSets, ref.Namespace, ref.Name)
	if !ok {
		return Verdict{}, false
	}
	s := o.(*appsv1.StatefulSet)
	return e.judgeOwned(ref, s.UID, replicas(s.Spec.Replicas))
}

// judgeDaemonSet asks for as many Pods as the controller found nodes for.
func (e *Engine) judgeDaemonSet(ref trace.Ref) (Verdict, bool) {
	o, ok := e.Get(kube.DaemonSets, ref.Namespace, ref.Name)
	if !ok {
		return Verdict{}, false
	}
	ds := o.(*appsv1.DaemonSet)
	if ds.Status.ObservedGeneration < ds.Generation {
		if h, found := e.lastBad(ref); found {
			return verdictOf(h, ref), true
		}
		return Verdict{Stage: stage.ControlPlane, Object: ref}, true // no controller has looked at it
	}
	return e.judgeOwned(ref, ds.UID, int(ds.Status.DesiredNumberScheduled))
}

func replicas(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

func (e *Engine) judgePod(ref trace.Ref) (Verdict, bool) {
	o, ok := e.Get(kube.Pods, ref.Namespace, ref.Name)
	if !ok {
		return e.judgeGone(ref)
	}
	pod := o.(*corev1.Pod)
	if ready(pod) && e.stable(pod) {
		return Verdict{}, false
	}
	return e.blame(ref, pod), true
}

// judgeGone judges a Pod that was asked for and is not there any more: nothing is wrong
// where somebody outside deleted it, or its namespace.
func (e *Engine) judgeGone(ref trace.Ref) (Verdict, bool) {
	if slices.Contains(e.taken, ref) || slices.Contains(e.taken, trace.Ref{Kind: "Namespace", Name: ref.Namespace}) {
		return Verdict{}, false
	}
	for _, match := range []func(trace.Hop) bool{
		func(h trace.Hop) bool { return h.Step() == "L" && (h.Bad() || h.Outcome == trace.Retry) },
		func(h trace.Hop) bool { return h.Reason != "" && stage.Order(h.Stage) > stage.Order(stage.Persist) },
		func(trace.Hop) bool { return true },
	} {
		if h, found := e.last(ref, match); found {
			return verdictOf(h, ref), true
		}
	}
	return Verdict{Stage: stage.NodeLifecycle, Object: ref, Silence: fmt.Sprintf("Pod %s is gone, and nobody outside of the cluster deleted it", ref.Name)}, true
}

func ready(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded {
		return pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	}
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// watched is how long a running container is looked at before it counts as stable: until
// its liveness probe could have ended it, and a little more.
func watched(pod *corev1.Pod) time.Duration {
	d := 5 * time.Second
	grace := 30 * time.Second
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.StartupProbe} {
			if p != nil {
				d = max(d, grace+time.Duration(p.InitialDelaySeconds+(p.FailureThreshold+1)*p.PeriodSeconds)*time.Second)
			}
		}
	}
	return d
}

// quiet is how long a run that looks well is watched before it is believed.
func (e *Engine) quiet() time.Duration {
	d := 2 * time.Second
	for _, o := range e.List(kube.Pods, "") {
		if pod := o.(*corev1.Pod); pod.Namespace != "kube-system" {
			d = max(d, watched(pod))
		}
	}
	return d
}

// stable reports whether a Pod's containers stay up: one that has been restarted must
// have run for a while.
func (e *Engine) stable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.RestartCount > 0 && c.State.Running != nil && e.k.Now().Wall().Sub(c.State.Running.StartedAt.Time) < watched(pod) {
			return false
		}
	}
	return true
}

// blame finds the stage at which a Pod that is not Ready got stuck: the last refusal or
// failure in its part of the way, or, where nobody refused, whoever did not act.
func (e *Engine) blame(ref trace.Ref, pod *corev1.Pod) Verdict {
	h, found := e.lastBad(ref)
	h = e.rootOf(h)
	switch {
	case found && (pod.Spec.NodeName != "" || stage.StepOf(h.Stage) == "5"):
		return verdictOf(h, ref)
	case pod.Spec.NodeName == "":
		if w, ok := e.last(ref, func(h trace.Hop) bool { return h.Outcome == trace.Waiting }); ok {
			return verdictOf(w, ref)
		}
		return Verdict{Stage: stage.ControlPlane, Object: ref, Silence: fmt.Sprintf(
			"Pod %s has no node and no PodScheduled condition: no scheduler took it up, spec.schedulerName: %s", pod.Name, pod.Spec.SchedulerName)}
	}
	w, ok := e.last(ref, func(h trace.Hop) bool { return stage.Order(h.Stage) >= stage.Order(stage.NodeWatch) })
	if !ok {
		return Verdict{Stage: stage.NodeWatch, Object: ref, Silence: fmt.Sprintf(
			"Pod %s is bound to %s, and no kubelet took it up: %s", pod.Name, pod.Spec.NodeName, e.nodeInWords(pod.Spec.NodeName))}
	}
	return verdictOf(w, ref) // it stands where it was seen last
}

// nodeInWords says how a node is, as kubectl get nodes has it.
func (e *Engine) nodeInWords(name string) string {
	o, ok := e.Get(kube.Nodes, "", name)
	if !ok {
		return fmt.Sprintf("there is no node %q", name)
	}
	for _, c := range o.(*corev1.Node).Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("node %s is NotReady (%s)", name, c.Reason)
		}
	}
	return fmt.Sprintf("node %s is Ready", name)
}

// rootOf goes back from a bad hop to the first one of the same step that led to it: a
// PostFilter that finds no victims is there because Filter found no node.
func (e *Engine) rootOf(h trace.Hop) trace.Hop {
	root := h
	for at := h; at.Cause != 0; {
		c, ok := e.log.Get(at.Cause)
		if !ok || c.Object != h.Object || c.Step() != h.Step() {
			break
		}
		if c.Bad() {
			root = c
		}
		at = c
	}
	if root.Stage != h.Stage || root.Reason == "" {
		root.Reason, root.Message = h.Reason, h.Message // the words that an administrator sees
	}
	return root
}

func (e *Engine) lastBad(ref trace.Ref) (trace.Hop, bool) {
	return e.last(ref, func(h trace.Hop) bool {
		return h.Bad() || h.Outcome == trace.Retry
	})
}

func (e *Engine) last(ref trace.Ref, match func(trace.Hop) bool) (trace.Hop, bool) {
	hops := e.log.Hops()
	for i := len(hops) - 1; i >= 0; i-- {
		if hops[i].Object == ref && match(hops[i]) {
			return hops[i], true
		}
	}
	return trace.Hop{}, false
}

func (e *Engine) judgeDeployment(ref trace.Ref) (Verdict, bool) {
	o, ok := e.Get(kube.Deployments, ref.Namespace, ref.Name)
	if !ok {
		return Verdict{}, false
	}
	d := o.(*appsv1.Deployment)
	var newest *appsv1.ReplicaSet
	for _, o := range e.List(kube.ReplicaSets, ref.Namespace) {
		rs := o.(*appsv1.ReplicaSet)
		if metav1.IsControlledBy(rs, d) && (newest == nil || newest.CreationTimestamp.Before(&rs.CreationTimestamp)) {
			newest = rs
		}
	}
	if newest == nil {
		if replicas(d.Spec.Replicas) == 0 {
			return Verdict{}, false
		}
		if h, found := e.lastBad(ref); found {
			return verdictOf(h, ref), true
		}
		return Verdict{Stage: stage.ControlPlane, Object: ref, Silence: fmt.Sprintf(
			"Deployment %s has no ReplicaSet, status.observedGeneration: %d of %d: no deployment controller took it up", d.Name, d.Status.ObservedGeneration, d.Generation)}, true
	}
	rsRef := trace.Ref{Kind: "ReplicaSet", Namespace: newest.Namespace, Name: newest.Name}
	want := min(replicas(d.Spec.Replicas), replicas(newest.Spec.Replicas))
	if v, bad := e.judgeOwned(rsRef, newest.UID, want); bad {
		return v, true
	}
	if d.Status.ReadyReplicas < int32(replicas(d.Spec.Replicas)) {
		h, _ := e.last(ref, func(trace.Hop) bool { return true })
		v := Verdict{Stage: stage.Controllers, Object: ref, Hop: h.Seq, Silence: fmt.Sprintf(
			"Deployment %s asks for %d replicas and ReplicaSet %s for %d", d.Name, replicas(d.Spec.Replicas), newest.Name, replicas(newest.Spec.Replicas))}
		v.Reason, v.Message = deploymentComplaint(d)
		return v, true
	}
	return Verdict{}, false
}

// deploymentComplaint is the condition in which a Deployment says what is wrong.
func deploymentComplaint(d *appsv1.Deployment) (reason, message string) {
	for _, bad := range []struct {
		kind   appsv1.DeploymentConditionType
		status corev1.ConditionStatus
	}{
		{appsv1.DeploymentReplicaFailure, corev1.ConditionTrue},
		{appsv1.DeploymentProgressing, corev1.ConditionFalse},
		{appsv1.DeploymentAvailable, corev1.ConditionFalse},
	} {
		for _, c := range d.Status.Conditions {
			if c.Type == bad.kind && c.Status == bad.status {
				return c.Reason, c.Message
			}
		}
	}
	return "", ""
}

// judgeOwned looks at the Pods that an owner should have.
func (e *Engine) judgeOwned(ref trace.Ref, owner any, want int) (Verdict, bool) {
	n := 0
	for _, o := range e.List(kube.Pods, ref.Namespace) {
		pod := o.(*corev1.Pod)
		c := metav1.GetControllerOf(pod)
		if c == nil || c.UID != owner || pod.DeletionTimestamp != nil {
			continue
		}
		n++
		if !ready(pod) || !e.stable(pod) {
			return e.blame(trace.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, pod), true
		}
	}
	if n >= want {
		return Verdict{}, false
	}
	if h, found := e.refusedFor(ref); found {
		return verdictOf(h, ref), true
	}
	if h, found := e.lastBad(ref); found {
		return verdictOf(h, ref), true
	}
	return Verdict{Stage: stage.ControlPlane, Object: ref, Silence: fmt.Sprintf(
		"%s %s has %d of %d Pods, and nobody says why: no controller went on with it", ref.Kind, ref.Name, n, want)}, true
}

// refusedFor finds the gate that refused a controller's create request on behalf of ref:
// the request descends from a hop about its owner.
func (e *Engine) refusedFor(ref trace.Ref) (trace.Hop, bool) {
	hops := e.log.Hops()
	for i := len(hops) - 1; i >= 0; i-- {
		h := hops[i]
		if h.Outcome != trace.Denied || h.Object.Kind != "Pod" || h.Object.Namespace != ref.Namespace {
			continue
		}
		for _, c := range e.log.Why(h.Seq) {
			if c.Object == ref {
				return h, true
			}
		}
	}
	return trace.Hop{}, false
}

// judgeService asks whether a packet to the Service arrives at a Pod, from wherever in the
// cluster it comes.
func (e *Engine) judgeService(ref trace.Ref) (Verdict, bool) {
	o, ok := e.Get(kube.Services, ref.Namespace, ref.Name)
	if !ok {
		return Verdict{}, false
	}
	svc := o.(*corev1.Service)
	if svc.Spec.Type == corev1.ServiceTypeExternalName || len(svc.Spec.Selector) == 0 {
		return Verdict{}, false
	}
	told := func(h trace.Hop) bool { return h.Stage == stage.Routing }
	if e.hasReadyEndpoint(ref) {
		node, lost := e.lostFrom(svc)
		if !lost {
			return Verdict{}, false
		}
		proxy := stage.On(stage.KubeProxy, node)
		told = func(h trace.Hop) bool { return h.Stage == stage.Routing && h.From == proxy && h.Outcome != trace.OK }
	}
	v := Verdict{Stage: stage.Routing, Object: ref}
	if h, found := e.last(ref, told); found {
		v.Hop, v.Reason, v.Message = h.Seq, h.Reason, h.Message
	}
	return v, true
}

func (e *Engine) hasReadyEndpoint(svc trace.Ref) bool {
	for _, o := range e.List(kube.EndpointSlices, svc.Namespace) {
		s := o.(*discoveryv1.EndpointSlice)
		if s.Labels[discoveryv1.LabelServiceName] != svc.Name || len(s.Ports) == 0 {
			continue
		}
		for _, ep := range s.Endpoints {
			if ep.Conditions.Ready != nil && *ep.Conditions.Ready {
				return true
			}
		}
	}
	return false
}
