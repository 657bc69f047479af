package kubelet

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/cri"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// verdict is a probe's result, once its threshold was reached.
type verdict string

const (
	unknown verdict = ""
	success verdict = "success"
	failure verdict = "failure"
)

// shortVersion is how probes name the kubelet in their user agent.
const shortVersion = "1.37"

// probeKey names one probe of a Pod.
type probeKey struct {
	Container string
	Kind      string // "Startup", "Liveness", "Readiness"
}

// probe is upstream's probe worker.
type probe struct {
	Gen       int    // of its timer; older ticks are stale
	ID        string // the container instance that was probed last
	OnHold    bool   // until there is a new instance
	Last      verdict
	Run       int // results of that kind in a row
	Asking    int // the attempt that is under way, 0 for none
	Errors    int
	Triggered bool // somebody wants it to run now
	Resting   bool // waits for a share of its period after the kubelet's start
	Try       int
}

// probeTag comes back with the answer to a network probe.
type probeTag struct {
	UID types.UID
	Key probeKey
	Try int
}

const probeErrorsMax = 3 // tries of a probe that cannot even be carried out

func probeSpec(c *corev1.Container, kind string) *corev1.Probe {
	switch kind {
	case "Startup":
		return c.StartupProbe
	case "Liveness":
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// startProbes adds the probes of a Pod that have no worker yet.
func (kl *Kubelet) startProbes(w *worker) {
	if w.Phase != syncing {
		return
	}
	for _, name := range w.names() {
		spec, init := w.spec(name)
		if init && !podutil.IsRestartableInitContainer(spec) {
			continue
		}
		for _, kind := range []string{"Startup", "Readiness", "Liveness"} {
			p := probeSpec(spec, kind)
			key := probeKey{name, kind}
			if p == nil || w.Probes[key] != nil && !kl.justBegan() {
				continue
			}
			st := w.Probes[key]
			if st == nil {
				st = &probe{}
				w.Probes[key] = st
			}
			period := time.Duration(p.PeriodSeconds) * time.Second
			var rest time.Duration
			if kl.k.Now().Sub(kl.Began) < period && kl.Began > 0 {
				// After a restart the probes of all Pods would begin at once.
				rest = time.Duration(kl.rand.IntN(1000)) * period / 1000
				st.Resting = true
			}
			kl.probeIn(w, key, st, rest)
		}
	}
}

// justBegan reports whether this is the instant at which the kubelet came back.
func (kl *Kubelet) justBegan() bool { return kl.Began > 0 && kl.Began == kl.k.Now() }

func (kl *Kubelet) probeIn(w *worker, key probeKey, st *probe, d time.Duration) {
	st.Gen++
	kl.k.Send(kl.self, d, probeTick{w.UID, key, st.Gen})
}

// stopProbes ends the probes: liveness and startup as soon as a Pod terminates, all of
// them when its containers have stopped.
func (kl *Kubelet) stopProbes(w *worker, all bool) {
	for key := range w.Probes {
		if all || key.Kind != "Readiness" {
			delete(w.Probes, key)
		}
	}
}

// probeDue is one tick of a probe worker.
func (kl *Kubelet) probeDue(w *worker, key probeKey, gen int) {
	st := w.Probes[key]
	spec, _ := w.spec(key.Container)
	if st == nil || spec == nil || st.Gen != gen {
		return
	}
	st.Resting = false
	if st.Asking != 0 {
		return // its period begins again when the answer is there
	}
	if !kl.probeOnce(w, key, st, spec) {
		kl.nextProbe(w, key, st)
	}
}

func (kl *Kubelet) nextProbe(w *worker, key probeKey, st *probe) {
	spec, _ := w.spec(key.Container)
	if w.Status != nil && terminal(w.Status.Phase) || spec == nil {
		return
	}
	d := time.Duration(probeSpec(spec, key.Kind).PeriodSeconds) * time.Second
	if st.Triggered {
		d = 0
	}
	st.Triggered = false
	kl.probeIn(w, key, st, d)
}

// probeOnce is upstream's doProbe; it reports whether an answer is waited for.
func (kl *Kubelet) probeOnce(w *worker, key probeKey, st *probe, spec *corev1.Container) bool {
	p := probeSpec(spec, key.Kind)
	status := kl.reported(w, key.Container)
	c := w.Containers[key.Container]
	if status == nil || status.ContainerID == "" || c == nil {
		return false
	}
	if st.ID != status.ContainerID {
		st.ID, st.OnHold = status.ContainerID, false
		if c.Current.statusID() == status.ContainerID {
			c.Current.set(key.Kind, map[string]verdict{"Startup": unknown, "Liveness": success, "Readiness": failure}[key.Kind])
		}
	}
	if st.OnHold {
		return false
	}
	if status.State.Running == nil {
		if c.Current.statusID() == status.ContainerID {
			c.Current.set(key.Kind, failure)
		}
		return false
	}
	if kl.k.Now().Wall().Sub(status.State.Running.StartedAt.Time) < time.Duration(p.InitialDelaySeconds)*time.Second {
		return false
	}
	started := status.Started != nil && *status.Started
	if started == (key.Kind == "Startup") {
		return false
	}
	st.Errors = 0
	kl.runProbe(w, key, st, spec)
	return true
}

// statusID is the instance as a status names it.
func (in *instance) statusID() string { return "containerd://" + in.ID }

func (in *instance) set(kind string, v verdict) {
	switch kind {
	case "Startup":
		in.Startup = v
	case "Liveness":
		in.Liveness = v
	default:
		in.Readiness = v
	}
}

// reported is a container's status as the status manager has it.
func (kl *Kubelet) reported(w *worker, name string) *corev1.ContainerStatus {
	if w.Status == nil {
		return nil
	}
	for _, list := range [][]corev1.ContainerStatus{w.Status.ContainerStatuses, w.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// runProbe carries a probe out; the answer comes later.
func (kl *Kubelet) runProbe(w *worker, key probeKey, st *probe, spec *corev1.Container) {
	p := probeSpec(spec, key.Kind)
	timeout := time.Duration(p.TimeoutSeconds) * time.Second
	st.Try++
	st.Asking = st.Try
	tag := probeTag{w.UID, key, st.Try}
	host := w.PodIP
	switch {
	case p.Exec != nil:
		kl.ask(asked{What: askProbe, UID: w.UID, Probe: key, Seq: uint64(st.Try)},
			cri.ExecSync{ContainerID: w.container(key.Container).Current.ID, Command: p.Exec.Command, Timeout: timeout})
	case p.HTTPGet != nil:
		port, err := resolvePort(p.HTTPGet.Port, spec)
		if err != nil {
			kl.probeErrored(w, key, err.Error())
			return
		}
		kl.net.Do(kl.self, httpCall(tag, p.HTTPGet, host, port, kl.cfg.IP, "kube-probe/"+shortVersion, timeout))
	case p.TCPSocket != nil:
		port, err := resolvePort(p.TCPSocket.Port, spec)
		if err != nil {
			kl.probeErrored(w, key, err.Error())
			return
		}
		kl.net.Do(kl.self, network.Call{Tag: tag, From: kl.cfg.IP, To: net.JoinHostPort(cmp.Or(p.TCPSocket.Host, host), strconv.Itoa(port)), Protocol: network.TCP, Timeout: timeout})
	case p.GRPC != nil:
		path := "/grpc.health.v1.Health/Check"
		service := ""
		if p.GRPC.Service != nil {
			service = *p.GRPC.Service
		}
		kl.net.Do(kl.self, network.Call{
			Tag: tag, From: kl.cfg.IP, To: net.JoinHostPort(host, strconv.Itoa(int(p.GRPC.Port))), Protocol: network.GRPC,
			Path: path, Timeout: timeout, Body: []byte(service),
		})
	default:
		kl.probeErrored(w, key, fmt.Sprintf("missing probe handler for %s:%s", podName(w.Pod), spec.Name))
	}
}

// execProbed has the answer to an exec probe.
func (kl *Kubelet) execProbed(w *worker, a asked, r cri.Response) {
	st := w.Probes[a.Probe]
	if st == nil || uint64(st.Asking) != a.Seq {
		return
	}
	spec, _ := w.spec(a.Probe.Container)
	p := probeSpec(spec, a.Probe.Kind)
	switch {
	case r.TimedOut:
		kl.probed(w, a.Probe, false, fmt.Sprintf("command timed out: %q timed out after %ds", strings.Join(p.Exec.Command, " "), p.TimeoutSeconds))
	case r.Err != "":
		kl.probeErrored(w, a.Probe, r.Err)
	default:
		kl.probed(w, a.Probe, r.ExitCode == 0, string(r.Stdout)+string(r.Stderr))
	}
}

// probeErrored tries again at once, up to a limit; then the result is thrown away.
func (kl *Kubelet) probeErrored(w *worker, key probeKey, reason string) {
	st := w.Probes[key]
	spec, _ := w.spec(key.Container)
	if st.Errors++; st.Errors < probeErrorsMax && probeSpec(spec, key.Kind).Exec != nil {
		kl.runProbe(w, key, st, spec)
		return
	}
	st.Asking = 0
	message := fmt.Sprintf("%s probe errored and resulted in unknown state: %s", key.Kind, reason)
	kl.event(w, key.Container, corev1.EventTypeWarning, "Unhealthy", message)
	kl.hop(w, trace.Hop{Stage: stage.Probes, From: kl.me, To: kl.containerd(), Verb: strings.ToLower(key.Kind), Outcome: trace.Retry, Reason: "Unhealthy", Message: message})
	kl.nextProbe(w, key, st)
}

// probed has one result: counts it, and acts once a threshold is reached.
func (kl *Kubelet) probed(w *worker, key probeKey, ok bool, output string) {
	st := w.Probes[key]
	spec, _ := w.spec(key.Container)
	p := probeSpec(spec, key.Kind)
	st.Asking = 0
	got := failure
	if ok {
		got = success
	}
	if st.Last == got {
		st.Run++
	} else {
		st.Last, st.Run = got, 1
	}
	if !ok {
		kl.event(w, key.Container, corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %s", key.Kind, output))
	}
	threshold := int(p.FailureThreshold)
	if ok {
		threshold = int(p.SuccessThreshold)
	}
	c := w.container(key.Container)
	before := c.Current.get(key.Kind)
	reached := st.Run >= threshold
	if reached && c.Current.statusID() == st.ID {
		c.Current.set(key.Kind, got)
	}
	changed := reached && before != got
	kl.probeHop(w, key, st, ok, changed, threshold, output)
	if reached && (key.Kind == "Liveness" && !ok || key.Kind == "Startup") {
		st.OnHold, st.Run = true, 0
	}
	if changed {
		kl.probeChanged(w, key, ok)
	}
	kl.nextProbe(w, key, st)
}

// probeHop tells failures, and successes that change something. A probe that goes on
// failing beyond its threshold says nothing new: those hops stay in the background.
func (kl *Kubelet) probeHop(w *worker, key probeKey, st *probe, ok, changed bool, threshold int, output string) {
	if ok && !changed {
		return
	}
	h := trace.Hop{
		Stage: stage.Probes, From: kl.me, To: kl.containerd(), Verb: strings.ToLower(key.Kind),
		Detail: trace.Probe{Kind: strings.ToLower(key.Kind), Container: key.Container, Success: ok, Failures: st.Run, Threshold: threshold, Output: output},
	}
	if ok {
		h.Message = key.Kind + " probe succeeded"
	} else {
		h.Reason, h.Message, h.Outcome = "Unhealthy", fmt.Sprintf("%s probe failed: %s", key.Kind, output), trace.Retry
		if st.Run >= threshold {
			h.Outcome = trace.Failed
		}
		h.Background = st.Run > threshold
	}
	kl.hop(w, h)
}

func (in *instance) get(kind string) verdict {
	switch kind {
	case "Startup":
		return in.Startup
	case "Liveness":
		return in.Liveness
	}
	return in.Readiness
}

// probeChanged reports readiness at once; a container that must be killed needs a pass.
func (kl *Kubelet) probeChanged(w *worker, key probeKey, ok bool) {
	if w.Status == nil || terminal(w.Status.Phase) {
		return
	}
	if key.Kind != "Liveness" {
		kl.refreshReadiness(w, key)
	}
	if key.Kind == "Liveness" && ok || w.Phase != syncing {
		return
	}
	kl.requestSyncNow(w)
}

// refreshReadiness is the status manager's SetContainerReadiness and SetContainerStartup:
// it changes the one container's flags and the conditions that follow, nothing else.
func (kl *Kubelet) refreshReadiness(w *worker, key probeKey) {
	s := w.Status.DeepCopy()
	kl.setProbeResults(w, s, false)
	all := append(append([]corev1.ContainerStatus{}, s.InitContainerStatuses...), s.ContainerStatuses...)
	s.Conditions = kl.conditions(w, w.Status, s, all)
	kl.setStatus(w, s)
}

// requestSyncNow asks for a pass without waiting for a relist: probe results go straight
// to the kubelet's loop.
func (kl *Kubelet) requestSyncNow(w *worker) {
	if w.Running {
		w.Again = true
		return
	}
	kl.schedule(w, kl.k.Now().Add(kl.cfg.SyncDelay))
}

// setProbeResults is upstream's UpdatePodStatus: started and ready, by the probes. With
// trigger, readiness probes of containers that are not ready run at once.
func (kl *Kubelet) setProbeResults(w *worker, s *corev1.PodStatus, trigger bool) {
	for i := range s.ContainerStatuses {
		st := &s.ContainerStatuses[i]
		spec, _ := w.spec(st.Name)
		started := kl.isStarted(w, spec, st)
		st.Started = &started
		st.Ready = started && kl.isReady(w, spec, st, trigger)
	}
	for i := range s.InitContainerStatuses {
		st := &s.InitContainerStatuses[i]
		spec, _ := w.spec(st.Name)
		started := kl.isStarted(w, spec, st)
		st.Started = &started
		if spec != nil && podutil.IsRestartableInitContainer(spec) {
			st.Ready = started && kl.isReady(w, spec, st, trigger)
		} else {
			st.Ready = st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
		}
	}
}

func (kl *Kubelet) isStarted(w *worker, spec *corev1.Container, st *corev1.ContainerStatus) bool {
	if st.State.Running == nil || spec == nil {
		return false
	}
	c := w.Containers[st.Name]
	if spec.StartupProbe == nil || c == nil || w.Probes[probeKey{st.Name, "Startup"}] == nil {
		return true
	}
	return c.Current.Startup == success
}

func (kl *Kubelet) isReady(w *worker, spec *corev1.Container, st *corev1.ContainerStatus, trigger bool) bool {
	c := w.Containers[st.Name]
	if st.State.Running == nil || c == nil || spec == nil {
		return false
	}
	if spec.ReadinessProbe == nil || c.Current.Readiness == success {
		return true
	}
	key := probeKey{st.Name, "Readiness"}
	if p := w.Probes[key]; p != nil && trigger {
		kl.triggerProbe(w, key, p)
	}
	return false
}

func (kl *Kubelet) triggerProbe(w *worker, key probeKey, p *probe) {
	if p.Asking != 0 || p.Resting {
		p.Triggered = true
		return
	}
	kl.probeIn(w, key, p, kl.cfg.SyncDelay)
}
