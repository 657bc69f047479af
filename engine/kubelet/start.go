package kubelet

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/cri"
	"podwalk/engine/kernel"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// The steps of opStart; each waits for an answer.
const (
	stepInspect = iota // is the image on the node?
	stepVerify         // may the Pod use it?
	stepPull
	stepConfig // the ConfigMaps and Secrets of the environment
	stepCreate
	stepStart
	stepHook
)

// The waiting reasons of a container that could not be started.
const (
	crashLoopBackOff     = "CrashLoopBackOff"
	createContainerError = "CreateContainerError"
	createConfigError    = "CreateContainerConfigError"
	runContainerError    = "RunContainerError"
	postStartHookError   = "PostStartHookError"
)

func (kl *Kubelet) containerd() stage.Component { return stage.On(stage.Containerd, kl.cfg.Node) }

// startContainer begins the operation: back-off first, then image, create, start, hook.
func (kl *Kubelet) startContainer(w *worker) {
	c := w.container(w.Op.Container)
	now := kl.k.Now()
	// The back-off counts from the last instance that had ended when the pass began.
	last := &c.Current
	if w.Op.Killed {
		last = &c.Previous
	}
	if last.State == stateExited {
		ended := last.FinishedAt
		if c.Crash.On && now.Sub(ended) <= 2*kl.cfg.CrashMax && now.Sub(ended) < c.Crash.Delay {
			kl.crashLooping(w, c, last, ended.Add(c.Crash.Delay))
			return
		}
		c.Crash.next(now, kl.cfg.CrashInitial, kl.cfg.CrashMax)
	}
	kl.ensureImage(w)
}

func (kl *Kubelet) crashLooping(w *worker, c *container, last *instance, until kernel.Time) {
	event := fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.Name, podName(w.Pod))
	kl.event(w, c.Name, corev1.EventTypeWarning, "BackOff", event)
	h := trace.Hop{Stage: stage.Start, From: kl.me, To: kl.me, Verb: "back-off", Outcome: trace.Retry, Reason: crashLoopBackOff, Message: event}
	if last.KilledFor != "" {
		h.Stage, h.Outcome = stage.Probes, trace.Waiting // the probe is what is wrong, not the start
	}
	kl.hop(w, h)
	c.Reason = crashLoopBackOff
	c.Message = fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", c.Crash.Delay, c.Name, podName(w.Pod))
	w.Failed = true
	if w.Until == 0 || until < w.Until {
		w.Until = until
	}
	kl.nextOp(w)
}

// startFailed ends the operation; reason becomes the container's waiting reason.
func (kl *Kubelet) startFailed(w *worker, reason, message string) {
	c := w.container(w.Op.Container)
	c.Reason, c.Message = reason, message
	w.Failed = true
	// A pass with one plain error is tried again after the plain back-off.
	kl.nextOp(w)
}

func (kl *Kubelet) startAnswered(w *worker, r cri.Response) {
	switch w.Op.Step {
	case stepInspect:
		kl.imageInspected(w, r)
	case stepCreate:
		kl.created(w, r)
	case stepStart:
		kl.started(w, r)
	case stepHook:
		spec, _ := w.spec(w.Op.Container)
		kl.postStarted(w, execHookFailure(w.Pod, spec.Name, spec.Lifecycle.PostStart.Exec.Command, r))
	}
}

// execHookFailure is what upstream says to a hook's end, "" where it went well.
func execHookFailure(pod *corev1.Pod, container string, command []string, r cri.Response) string {
	err := r.Err
	switch {
	case r.TimedOut:
		err = "context deadline exceeded"
	case err == "" && r.ExitCode != 0:
		err = fmt.Sprintf("command '%s' exited with %d: %s", strings.Join(command, " "), r.ExitCode, r.Stderr)
	case err == "":
		return ""
	}
	return fmt.Sprintf("Exec lifecycle hook (%v) for Container %q in Pod %q failed - error: %s, message: %q",
		command, container, podName(pod), err, string(r.Stdout)+string(r.Stderr))
}

// configure fetches what the environment names; createContainer follows.
func (kl *Kubelet) configure(w *worker) {
	w.Op.Step = stepConfig
	spec, _ := w.spec(w.Op.Container)
	kl.needServices()
	if !w.Static && !kl.Listed {
		w.Stage = "services"
		return
	}
	w.Stage = "runtime"
	kl.fetchForEnv(w, spec)
}

// servicesCame lets workers go on that waited for the list of Services.
func (kl *Kubelet) servicesCame() {
	if kl.Listed || !kl.services.Synced() {
		return
	}
	kl.Listed = true
	for _, w := range kl.sorted() {
		if w.Running && w.Stage == "services" {
			kl.configure(w)
		}
	}
}

func (kl *Kubelet) needServices() {
	if !kl.Services {
		kl.Services = true
		kl.services.Start()
	}
}

// configured has all that the environment needs.
func (kl *Kubelet) configured(w *worker) {
	spec, _ := w.spec(w.Op.Container)
	req, err := kl.containerConfig(w, spec)
	if err != nil {
		reason := createConfigError
		if _, sent := err.(tooLarge); sent { // it is no mistake to the kubelet
			reason = createContainerError
		}
		kl.event(w, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+err.Error())
		kl.hop(w, trace.Hop{Stage: stage.Create, From: kl.me, To: kl.containerd(), Verb: "CreateContainer", Outcome: trace.Retry, Reason: reason, Message: err.Error()})
		kl.startFailed(w, reason, err.Error())
		return
	}
	w.Op.Step = stepCreate
	kl.hop(w, trace.Hop{Stage: stage.Create, From: kl.me, To: kl.containerd(), Verb: "CreateContainer"})
	kl.askFor(w, req)
}

func (kl *Kubelet) containerConfig(w *worker, spec *corev1.Container) (cri.CreateContainer, error) {
	if err := verifyNonRoot(w.Pod, spec, w.Op.User); err != nil {
		return cri.CreateContainer{}, err
	}
	env, err := kl.environment(w, spec)
	if err != nil {
		return cri.CreateContainer{}, err
	}
	mounts, err := kl.mounts(w, spec, env)
	if err != nil {
		return cri.CreateContainer{}, err
	}
	c := w.container(spec.Name)
	var size messageSize
	expand := size.bound(mappingOf(env))
	req := cri.CreateContainer{
		SandboxID: w.SandboxID, PodUID: string(w.UID), Name: spec.Name, Attempt: int(c.nextRestarts()),
		Image: w.Op.Image, Command: expandAll(spec.Command, expand), Args: expandAll(spec.Args, expand), WorkingDir: spec.WorkingDir,
		Env: env, Mounts: mounts,
		MemoryLimit: spec.Resources.Limits.Memory().Value(), CPULimitMilli: spec.Resources.Limits.Cpu().MilliValue(),
	}
	if err := size.err(); err != nil {
		return cri.CreateContainer{}, err
	}
	for _, p := range spec.Ports {
		if p.Protocol != corev1.ProtocolUDP {
			req.Ports = append(req.Ports, p.ContainerPort)
		}
	}
	if uid, _, given := userOf(w.Pod, spec, ""); given {
		req.User = strconv.FormatInt(uid, 10)
	}
	if sc := spec.SecurityContext; sc != nil {
		req.ReadOnlyRootFS = sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem
		req.Privileged = sc.Privileged != nil && *sc.Privileged
	}
	if spec.Lifecycle != nil && spec.Lifecycle.StopSignal != nil {
		req.StopSignal = string(*spec.Lifecycle.StopSignal)
	}
	return req, nil
}

// nextRestarts is the restart count of the instance that comes next.
func (c *container) nextRestarts() int32 {
	if c.Current.ID == "" {
		return 0
	}
	return c.Current.Restarts + 1
}

func (kl *Kubelet) created(w *worker, r cri.Response) {
	spec, _ := w.spec(w.Op.Container)
	if r.Err != "" {
		message := plainError(r.Err)
		kl.event(w, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+message)
		kl.hop(w, trace.Hop{Stage: stage.Create, From: kl.containerd(), To: kl.me, Verb: "CreateContainer", Outcome: trace.Retry, Reason: createContainerError, Message: message})
		kl.startFailed(w, createContainerError, message)
		return
	}
	c := w.container(spec.Name)
	next := instance{ID: r.ContainerID, State: stateCreated, Restarts: c.nextRestarts(), Sandbox: w.SandboxID, Wanted: spec.Image, Image: w.Op.Ref, ImageID: w.Op.ImageID}
	next.UID, next.GID, _ = userOf(w.Pod, spec, w.Op.User)
	kl.removeOlder(w, c)
	if c.Current.ID != "" {
		c.Previous = c.Current
	}
	c.Current = next
	kl.event(w, spec.Name, corev1.EventTypeNormal, "Created", "Container created")
	kl.hop(w, trace.Hop{Stage: stage.Create, From: kl.containerd(), To: kl.me, Verb: "CreateContainer", Reason: "Created", Message: "Container created"})
	w.Op.Step = stepStart
	w.Did, w.Changed = true, true
	kl.hop(w, trace.Hop{Stage: stage.Start, From: kl.me, To: kl.containerd(), Verb: "StartContainer"})
	kl.askFor(w, cri.StartContainer{ContainerID: r.ContainerID})
}

func (kl *Kubelet) started(w *worker, r cri.Response) {
	spec, _ := w.spec(w.Op.Container)
	c := w.container(spec.Name)
	if r.Err != "" {
		message := plainError(r.Err)
		if c.Current.State == stateCreated {
			c.Current.State, c.Current.ExitCode, c.Current.Reason, c.Current.Message = stateExited, 128, "StartError", message
			c.Current.FinishedAt, c.Current.NotStarted = kl.k.Now(), true
			kl.removeOlder(w, c)
		}
		kl.event(w, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+message)
		outcome := trace.Retry
		if w.restartPolicyOf(spec) == corev1.RestartPolicyNever {
			outcome = trace.Failed
		}
		kl.hop(w, trace.Hop{Stage: stage.Start, From: kl.containerd(), To: kl.me, Verb: "StartContainer", Outcome: outcome, Reason: runContainerError, Message: message})
		kl.startFailed(w, runContainerError, message)
		return
	}
	if c.Current.StartedAt == 0 {
		c.Current.StartedAt = kl.k.Now()
	}
	if c.Current.State == stateCreated {
		c.Current.State = stateRunning
	}
	kl.event(w, spec.Name, corev1.EventTypeNormal, "Started", "Container started")
	kl.hop(w, trace.Hop{Stage: stage.Start, From: kl.containerd(), To: kl.me, Verb: "StartContainer", Reason: "Started", Message: "Container started"})
	if spec.Lifecycle != nil && spec.Lifecycle.PostStart != nil {
		kl.postStart(w, spec)
		return
	}
	kl.startSucceeded(w, c)
}

func (kl *Kubelet) startSucceeded(w *worker, c *container) {
	c.Reason, c.Message = "", ""
	w.Did = true
	kl.nextOp(w)
}

// postStart runs the hook; the pass waits for it, and so does the container's being Running.
func (kl *Kubelet) postStart(w *worker, spec *corev1.Container) {
	w.Op.Step = stepHook
	h := spec.Lifecycle.PostStart
	switch {
	case h.Exec != nil:
		kl.askFor(w, cri.ExecSync{ContainerID: w.container(spec.Name).Current.ID, Command: h.Exec.Command})
	case h.HTTPGet != nil:
		kl.httpHook(w, spec, h.HTTPGet, hookTag{UID: w.UID, Container: spec.Name, Pass: w.Pass})
	case h.Sleep != nil:
		kl.k.Send(kl.self, seconds(h.Sleep.Seconds), hookDone{w.UID, spec.Name, 0})
	default:
		kl.startSucceeded(w, w.container(spec.Name))
	}
}

// hookTag comes back with the answer to an HTTP hook.
type hookTag struct {
	UID       types.UID
	Container string
	Pass      uint64 // of a postStart hook
	Seq       uint64 // of a preStop hook
}

func (kl *Kubelet) httpHook(w *worker, spec *corev1.Container, get *corev1.HTTPGetAction, tag hookTag) {
	port, err := resolvePort(get.Port, spec)
	if err != nil {
		kl.k.Send(kl.self, 0, network.Result{Tag: tag, Err: err.Error()})
		return
	}
	kl.net.Do(kl.self, httpCall(tag, get, w.PodIP, port, kl.cfg.IP, "kube-lifecycle/"+shortVersion, 0))
}

// postStarted goes on after the hook; failed is its error, "" where there is none.
func (kl *Kubelet) postStarted(w *worker, failed string) {
	c := w.container(w.Op.Container)
	if failed == "" {
		kl.startSucceeded(w, c)
		return
	}
	kl.event(w, c.Name, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	kl.hop(w, trace.Hop{Stage: stage.Start, From: kl.containerd(), To: kl.me, Verb: "postStart", Outcome: trace.Retry, Reason: "FailedPostStartHook", Message: failed})
	c.Reason, c.Message = postStartHookError, failed
	w.Failed = true
	kl.kill(w, c.Name, "FailedPostStartHook", "FailedPostStartHook")
}

// plainError is what the kubelet prints of a runtime's error: the gRPC status without
// its code, as it wraps every error of the Unknown kind.
func plainError(err string) string {
	if _, rest, ok := strings.Cut(err, "rpc error: code = "); ok {
		if _, desc, ok := strings.Cut(rest, " desc = "); ok {
			return desc
		}
	}
	return err
}
