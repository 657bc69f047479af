package kubelet

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/cri"
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// The states of a container in the runtime.
const (
	stateCreated = "created"
	stateRunning = "running"
	stateExited  = "exited"
)

// container is one container of a Pod, with the instances of it that ran.
type container struct {
	Name     string
	Current  instance
	Previous instance
	// Why it could not be started at the last try: the waiting state that is reported.
	Reason, Message string
	Crash           backoff
	Pull            backoff
	PullImage       string // what the back-off of pulls is about
	PullError       string // of the last failed pull
	Kill            kill
}

// instance is one container as the runtime knows it; ID is empty where there is none.
type instance struct {
	ID                    string
	Removed               bool // the runtime was told to forget it
	State                 string
	Restarts              int32
	Sandbox               string
	Wanted                string // the image that the Pod asked for
	Image, ImageID        string
	UID                   int64
	GID                   int64
	StartedAt, FinishedAt kernel.Time
	NotStarted            bool // its process never began
	ExitCode              int32
	Reason, Message       string
	KilledFor             string // "liveness", "startup": the probe that had it killed
	Startup               verdict
	Liveness              verdict
	Readiness             verdict
}

// backoff is client-go's flowcontrol.Backoff of one key.
type backoff struct {
	Delay time.Duration
	Since kernel.Time
	On    bool
}

// next doubles the delay; an entry that was not used for long begins anew.
func (b *backoff) next(now kernel.Time, initial, limit time.Duration) {
	if !b.On || now.Sub(b.Since) > 2*limit {
		*b = backoff{Delay: initial, Since: now, On: true}
		return
	}
	b.Delay = min(2*b.Delay, limit)
	b.Since = now
}

// kill is a container's being stopped.
type kill struct {
	Stage string // "", "hook", "stop"
	Seq   uint64
	Grace int64
	Began kernel.Time
}

func (w *worker) container(name string) *container {
	c := w.Containers[name]
	if c == nil {
		c = &container{Name: name}
		w.Containers[name] = c
	}
	return c
}

// spec returns a container of the Pod's spec, and whether it is an init container.
func (w *worker) spec(name string) (spec *corev1.Container, init bool) {
	for i := range w.Pod.Spec.Containers {
		if c := &w.Pod.Spec.Containers[i]; c.Name == name {
			return c, false
		}
	}
	for i := range w.Pod.Spec.InitContainers {
		if c := &w.Pod.Spec.InitContainers[i]; c.Name == name {
			return c, true
		}
	}
	return nil, false
}

// event writes an Event about one container.
func (kl *Kubelet) event(w *worker, name, eventType, reason, message string) {
	path := "spec.containers{" + name + "}"
	if _, init := w.spec(name); init {
		path = "spec.initContainers{" + name + "}"
	}
	kl.recorder.EventAt(w.Pod, path, eventType, reason, message)
}

// podName is how the kubelet names a Pod in messages: name_namespace(uid).
func podName(p *corev1.Pod) string { return fmt.Sprintf("%s_%s(%s)", p.Name, p.Namespace, p.UID) }

// shouldRestart is upstream's ShouldContainerBeRestarted.
func (w *worker) shouldRestart(spec *corev1.Container) bool {
	if w.Pod.DeletionTimestamp != nil {
		return false
	}
	c := w.Containers[spec.Name]
	if c == nil || c.Current.ID == "" || c.Current.State == stateCreated {
		return true
	}
	if c.Current.State == stateRunning {
		return false
	}
	return podutil.ContainerShouldRestart(*spec, w.Pod.Spec, c.Current.ExitCode)
}

// syncPod is one pass of a Pod that should run.
func (kl *Kubelet) syncPod(w *worker) {
	kl.checkDeadline(w)
	st := kl.generateStatus(w, false)
	kl.setStatus(w, st)
	if terminal(st.Phase) {
		w.Phase = terminating
		kl.endPass(w)
		return
	}
	if msg := kl.Node.networkError(); msg != "" && !w.Pod.Spec.HostNetwork {
		message := "network is not ready: " + msg
		kl.recorder.Event(w.Pod, corev1.EventTypeWarning, "NetworkNotReady", message)
		kl.hop(w, trace.Hop{Stage: stage.Sandbox, From: kl.me, To: stage.On(stage.Containerd, kl.cfg.Node), Verb: "RunPodSandbox", Outcome: trace.Retry, Reason: "NetworkNotReady", Message: message})
		w.Failed, w.Network = true, true
		kl.endPass(w)
		return
	}
	if w.Static {
		kl.keepMirror(w)
	}
	kl.waitForVolumes(w)
}

// runtimePass works out what the runtime has to do, and does it.
func (kl *Kubelet) runtimePass(w *worker) {
	kl.startProbes(w)
	w.Stage = "runtime"
	w.Ops = kl.computeActions(w)
	kl.nextOp(w)
}

// computeActions is upstream's computePodActions.
func (kl *Kubelet) computeActions(w *worker) []op {
	spec := &w.Pod.Spec
	if !w.SandboxReady {
		return kl.startFromSandbox(w)
	}
	ops, ready := kl.initActions(w)
	if !ready {
		return ops
	}
	kept, restarting := 0, 0
	var starts []op
	for i := range spec.Containers {
		s := &spec.Containers[i]
		c := w.Containers[s.Name]
		if c == nil || c.Current.State != stateRunning {
			if w.shouldRestart(s) {
				starts = append(starts, op{Kind: opStart, Container: s.Name})
				restarting++
			}
			continue
		}
		message, reason := probeVerdict(c, "Container "+s.Name)
		changed := c.Current.Wanted != s.Image
		if changed {
			message, reason, c.Crash = "Container "+s.Name+" definition changed", "", backoff{}
		}
		if message == "" {
			kept++
			continue
		}
		if changed || w.restartPolicyOf(s) != corev1.RestartPolicyNever {
			message += ", will be restarted"
			starts = append(starts, op{Kind: opStart, Container: s.Name, Killed: true})
			restarting++
		}
		ops = append(ops, op{Kind: opKill, Container: s.Name, Message: message, Reason: reason})
	}
	if kept == 0 && restarting == 0 {
		return kl.killPodOps(w)
	}
	return append(ops, starts...)
}

func probeVerdict(c *container, who string) (message, reason string) {
	switch {
	case c.Current.Liveness == failure:
		return who + " failed liveness probe", "liveness"
	case c.Current.Startup == failure:
		return who + " failed startup probe", "startup"
	}
	return "", ""
}

func (w *worker) restartPolicyOf(s *corev1.Container) corev1.RestartPolicy {
	if s.RestartPolicy != nil {
		return corev1.RestartPolicy(*s.RestartPolicy)
	}
	return w.Pod.Spec.RestartPolicy
}

// startFromSandbox begins a Pod, or begins it again after its sandbox was lost.
func (kl *Kubelet) startFromSandbox(w *worker) []op {
	spec := &w.Pod.Spec
	var starts []op
	for i := range spec.Containers {
		s := &spec.Containers[i]
		c := w.Containers[s.Name]
		done := c != nil && c.Current.State == stateExited && c.Current.ExitCode == 0
		if w.restartPolicyOf(s) == corev1.RestartPolicyOnFailure && done {
			continue
		}
		starts = append(starts, op{Kind: opStart, Container: s.Name})
	}
	begun := w.anyCreated()
	if (spec.RestartPolicy == corev1.RestartPolicyNever && w.Attempt > 0 && begun) || (len(starts) == 0 && begun) {
		return kl.killPodOps(w)
	}
	if len(spec.InitContainers) > 0 {
		starts = []op{{Kind: opStart, Container: spec.InitContainers[0].Name}}
	}
	return append(append(kl.killPodOps(w), op{Kind: opSandbox}), starts...)
}

// killPodOps stops every running container and the sandbox: first all but the sidecars,
// side by side, then the sidecars, the last one first.
func (kl *Kubelet) killPodOps(w *worker) []op {
	var ops, sidecars []op
	for _, name := range w.names() {
		c := w.Containers[name]
		if c == nil || c.Current.State != stateRunning {
			continue
		}
		if spec, init := w.spec(name); init && podutil.IsRestartableInitContainer(spec) {
			sidecars = append([]op{{Kind: opKill, Container: name, Alone: true}}, sidecars...)
		} else {
			ops = append(ops, op{Kind: opKill, Container: name})
		}
	}
	ops = append(ops, sidecars...)
	if w.SandboxReady {
		ops = append(ops, op{Kind: opStopSandbox})
	}
	return ops
}

// names returns the names of all containers, init containers first.
func (w *worker) names() []string {
	var out []string
	for i := range w.Pod.Spec.InitContainers {
		out = append(out, w.Pod.Spec.InitContainers[i].Name)
	}
	for i := range w.Pod.Spec.Containers {
		out = append(out, w.Pod.Spec.Containers[i].Name)
	}
	return out
}

func (w *worker) anyCreated() bool {
	for i := range w.Pod.Spec.Containers {
		if c := w.Containers[w.Pod.Spec.Containers[i].Name]; c != nil && c.Current.ID != "" {
			return true
		}
	}
	return false
}

// activeStarted reports whether a regular container has started in the current sandbox.
func (w *worker) activeStarted() bool {
	for i := range w.Pod.Spec.Containers {
		c := w.Containers[w.Pod.Spec.Containers[i].Name]
		if c != nil && c.Current.Sandbox == w.SandboxID && (c.Current.State == stateRunning || c.Current.State == stateExited) {
			return true
		}
	}
	return false
}

// nextOp goes on with the pass.
func (kl *Kubelet) nextOp(w *worker) {
	if len(w.Ops) == 0 {
		kl.passDone(w)
		return
	}
	w.Op, w.Ops = w.Ops[0], w.Ops[1:]
	switch w.Op.Kind {
	case opKill:
		kl.kill(w, w.Op.Container, w.Op.Message, w.Op.Reason)
		// Kills run side by side; what comes after them waits for all of them.
		for len(w.Ops) > 0 && w.Ops[0].Kind == opKill && !w.Ops[0].Alone {
			kl.kill(w, w.Ops[0].Container, w.Ops[0].Message, w.Ops[0].Reason)
			w.Ops = w.Ops[1:]
		}
	case opStopSandbox:
		kl.askFor(w, cri.StopPodSandbox{SandboxID: w.SandboxID})
	case opSandbox:
		kl.runSandbox(w)
	case opStart:
		kl.startContainer(w)
	}
}

func (kl *Kubelet) passDone(w *worker) {
	switch w.At {
	case terminating:
		kl.allStopped(w)
	default:
		kl.endPass(w)
	}
}

// opAnswered goes on with the operation that waited for the runtime.
func (kl *Kubelet) opAnswered(w *worker, r cri.Response) {
	switch w.Op.Kind {
	case opStopSandbox:
		if r.Err != "" {
			w.Failed = true
			w.Ops = nil
			kl.nextOp(w)
			return
		}
		w.SandboxReady, w.Did = false, true
		kl.nextOp(w)
	case opSandbox:
		kl.sandboxAnswered(w, r)
	case opStart:
		kl.startAnswered(w, r)
	}
}

func (kl *Kubelet) runSandbox(w *worker) {
	kl.hop(w, trace.Hop{Stage: stage.Sandbox, From: kl.me, To: stage.On(stage.Containerd, kl.cfg.Node), Verb: "RunPodSandbox"})
	req := cri.RunPodSandbox{
		PodUID: string(w.UID), Namespace: w.Pod.Namespace, Name: w.Pod.Name, Attempt: w.Attempt,
		HostNetwork: w.Pod.Spec.HostNetwork, Hostname: hostname(w.Pod), MemoryLimitBytes: smallestMemoryLimit(w.Pod),
	}
	if w.Pod.Spec.RuntimeClassName != nil {
		req.RuntimeHandler = *w.Pod.Spec.RuntimeClassName
	}
	for i := range w.Pod.Spec.Containers {
		for _, p := range w.Pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				req.HostPorts = append(req.HostPorts, cri.HostPort{HostIP: p.HostIP, Port: p.HostPort, Protocol: string(p.Protocol)})
			}
		}
	}
	w.Attempt++
	kl.askFor(w, req)
}

func (kl *Kubelet) sandboxAnswered(w *worker, r cri.Response) {
	if r.Err != "" {
		message := "Failed to create pod sandbox: " + r.Err
		kl.recorder.Event(w.Pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", message)
		kl.hop(w, trace.Hop{Stage: stage.Sandbox, From: stage.On(stage.Containerd, kl.cfg.Node), To: kl.me, Verb: "RunPodSandbox", Outcome: trace.Retry, Reason: "FailedCreatePodSandBox", Message: message})
		w.Failed, w.Ops = true, nil
		kl.nextOp(w)
		return
	}
	w.SandboxID, w.SandboxReady, w.PodIP, w.Did, w.Changed = r.SandboxID, true, r.PodIP, true, true
	if w.Pod.Spec.HostNetwork {
		w.PodIP = kl.cfg.IP
	}
	kl.sandboxReported(w)
	kl.nextOp(w)
}

func (kl *Kubelet) removeSandbox(w *worker) {
	kl.ask(asked{What: askRemove, UID: w.UID}, cri.RemovePodSandbox{SandboxID: w.SandboxID})
}

// hostname is the Pod's name as its containers see it.
func hostname(pod *corev1.Pod) string {
	name := pod.Name
	if pod.Spec.Hostname != "" {
		name = pod.Spec.Hostname
	}
	if pod.Spec.HostnameOverride != nil {
		name = *pod.Spec.HostnameOverride
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}

func smallestMemoryLimit(pod *corev1.Pod) int64 {
	var least int64
	for i := range pod.Spec.Containers {
		if m := pod.Spec.Containers[i].Resources.Limits.Memory().Value(); m > 0 && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}
