package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"podwalk/engine/kernel"
)

// serialised returns a time as it is kept in an object: whole seconds.
func serialised(t kernel.Time) metav1.Time { return metav1.NewTime(t.Wall()).Rfc3339Copy() }

// generateStatus is upstream's generateAPIPodStatus: what the runtime's state amounts to.
// over tells that the containers will not be started again.
func (kl *Kubelet) generateStatus(w *worker, over bool) *corev1.PodStatus {
	pod := w.Pod
	old := w.Status
	if old == nil {
		old = &pod.Status
	}
	if w.Rejected {
		return w.Status
	}
	s := &corev1.PodStatus{ObservedGeneration: pod.Generation, QOSClass: qos.GetPodQOS(pod)}
	if w.PodIP != "" && w.anyEver() || pod.Spec.HostNetwork {
		ip := w.PodIP
		if pod.Spec.HostNetwork {
			ip = kl.cfg.IP
		}
		s.PodIP, s.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	} else if old.PodIP != "" {
		s.PodIP, s.PodIPs = old.PodIP, old.PodIPs
	}
	hasInit := len(pod.Spec.InitContainers) > 0
	s.ContainerStatuses = kl.containerStatuses(w, pod.Spec.Containers, old.ContainerStatuses, hasInit, false)
	s.InitContainerStatuses = kl.containerStatuses(w, pod.Spec.InitContainers, old.InitContainerStatuses, hasInit, true)
	s.Resources, s.AllocatedResources = podResources(pod)
	all := append(append([]corev1.ContainerStatus{}, s.ContainerStatuses...), s.InitContainerStatuses...)
	s.Phase = phaseOf(pod, all, over, w.activeStarted())
	for _, was := range []corev1.PodPhase{old.Phase, pod.Status.Phase} {
		if !terminal(s.Phase) && terminal(was) {
			s.Phase = was
		}
	}
	if s.Phase == old.Phase {
		s.Reason, s.Message = old.Reason, old.Message
	}
	if w.Deadline {
		// Upstream asks its deadline handler, which tells of it, at each status that it makes.
		kl.recorder.Event(pod, corev1.EventTypeNormal, "DeadlineExceeded", deadlineMessage)
		s.Phase, s.Reason, s.Message = corev1.PodFailed, "DeadlineExceeded", deadlineMessage
	}
	kl.setProbeResults(w, s, true)
	all = append(append([]corev1.ContainerStatus{}, s.InitContainerStatuses...), s.ContainerStatuses...)
	s.Conditions = kl.conditions(w, old, s, all)
	s.HostIP, s.HostIPs = kl.cfg.IP, []corev1.HostIP{{IP: kl.cfg.IP}}
	return s
}

// anyEver reports whether any container was ever created: upstream learns the Pod's IP
// from the runtime at the first sync that follows.
func (w *worker) anyEver() bool {
	for _, c := range w.Containers {
		if c.Current.ID != "" || c.Reason != "" {
			return true
		}
	}
	return false
}

// podResources are the Pod's own, of all its containers together.
func podResources(pod *corev1.Pod) (*corev1.ResourceRequirements, corev1.ResourceList) {
	r := &corev1.ResourceRequirements{}
	if pod.Spec.Resources != nil {
		r = pod.Spec.Resources.DeepCopy()
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	r.Requests, r.Limits = requests, resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	if len(r.Requests) == 0 {
		r.Requests = nil
	}
	if len(r.Limits) == 0 {
		r.Limits = nil
	}
	if len(requests) == 0 {
		requests = nil
	}
	return r, requests
}

// containerStatuses is upstream's convertToAPIContainerStatuses. Regular containers are
// ordered by name, init containers as in the spec.
func (kl *Kubelet) containerStatuses(w *worker, specs []corev1.Container, old []corev1.ContainerStatus, hasInit, init bool) []corev1.ContainerStatus {
	if len(specs) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, 0, len(specs))
	for i := range specs {
		spec := &specs[i]
		st := kl.containerStatus(w, spec, hasInit)
		if was, ok := podutil.GetContainerStatus(old, spec.Name); ok && w.Containers[spec.Name] == nil {
			if was.State.Terminated != nil || was.RestartCount > 0 {
				st = *was.DeepCopy() // known from before the kubelet began
			}
		}
		kl.waitingAgain(w, spec, &st, init)
		out = append(out, st)
	}
	if !init {
		sortByName(out)
	}
	return out
}

func (kl *Kubelet) containerStatus(w *worker, spec *corev1.Container, hasInit bool) corev1.ContainerStatus {
	waiting := "ContainerCreating"
	if hasInit {
		waiting = "PodInitializing"
	}
	st := corev1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, VolumeMounts: mountStatuses(spec),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}},
	}
	c := w.Containers[spec.Name]
	if c == nil || c.Current.ID == "" {
		return st
	}
	in := &c.Current
	st.ContainerID, st.Image, st.ImageID, st.RestartCount = "containerd://"+in.ID, in.Image, in.ImageID, in.Restarts
	st.State = stateOf(in)
	if c.Previous.ID != "" {
		st.LastTerminationState = stateOf(&c.Previous)
	}
	st.Resources = spec.Resources.DeepCopy()
	st.AllocatedResources = spec.Resources.Requests.DeepCopy()
	st.User = &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: in.UID, GID: in.GID, SupplementalGroups: groupsOf(w.Pod, in.GID)}}
	if spec.Lifecycle != nil && spec.Lifecycle.StopSignal != nil {
		sig := *spec.Lifecycle.StopSignal
		st.StopSignal = &sig
	}
	return st
}

func stateOf(in *instance) corev1.ContainerState {
	switch in.State {
	case stateRunning:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: serialised(in.StartedAt)}}
	case stateExited:
		t := &corev1.ContainerStateTerminated{
			ExitCode: in.ExitCode, Reason: in.Reason, Message: in.Message, ContainerID: "containerd://" + in.ID,
			StartedAt: serialised(in.StartedAt), FinishedAt: serialised(in.FinishedAt),
		}
		if in.NotStarted {
			t.StartedAt = metav1.Unix(0, 0) // as the runtime reports a process that never was
		}
		return corev1.ContainerState{Terminated: t}
	}
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
}

func groupsOf(pod *corev1.Pod, gid int64) []int64 {
	groups := []int64{gid}
	if sc := pod.Spec.SecurityContext; sc != nil {
		if sc.FSGroup != nil && *sc.FSGroup != gid {
			groups = append(groups, *sc.FSGroup)
		}
		groups = append(groups, sc.SupplementalGroups...)
	}
	return groups
}

func mountStatuses(spec *corev1.Container) []corev1.VolumeMountStatus {
	var out []corev1.VolumeMountStatus
	for _, m := range spec.VolumeMounts {
		s := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if m.RecursiveReadOnly != nil && (*m.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled || *m.RecursiveReadOnly == corev1.RecursiveReadOnlyIfPossible) {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		out = append(out, s)
	}
	return out
}

// waitingAgain turns a container that should run, and that could not be started at the
// last try, into a waiting one.
func (kl *Kubelet) waitingAgain(w *worker, spec *corev1.Container, st *corev1.ContainerStatus, init bool) {
	c := w.Containers[spec.Name]
	if c == nil || c.Reason == "" || !w.shouldRestart(spec) {
		return
	}
	if init && c.Current.State == stateExited && c.Current.ExitCode == 0 && !podutil.IsRestartableInitContainer(spec) {
		return
	}
	if st.State.Terminated != nil {
		st.LastTerminationState = st.State
	}
	st.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: c.Reason, Message: c.Message}}
}

func sortByName(list []corev1.ContainerStatus) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && list[j].Name < list[j-1].Name; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// setStatus is the status manager's SetPodStatus: it keeps the times of what did not
// change, and patches when something did.
func (kl *Kubelet) setStatus(w *worker, s *corev1.PodStatus) {
	old := w.Status
	if old == nil {
		old = &w.Pod.Status
	}
	now := serialised(kl.k.Now())
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if !ownCondition(c.Type) {
			continue
		}
		c.LastTransitionTime = now
		if _, was := podutil.GetPodConditionFromList(old.Conditions, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	if s.StartTime == nil {
		s.StartTime = old.StartTime
		if s.StartTime == nil {
			s.StartTime = &now
		}
	}
	if w.Status != nil && equality.Semantic.DeepEqual(w.Status, s) {
		return
	}
	w.Status = s
	w.Version++
	kl.patchStatus(w)
}

// ownCondition reports whether the kubelet owns a condition type.
func ownCondition(t corev1.PodConditionType) bool {
	switch t {
	case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReadyToStartContainers:
		return true
	}
	return false
}

// conditions returns those of others and then the kubelet's own, in upstream's order.
func (kl *Kubelet) conditions(w *worker, old, s *corev1.PodStatus, all []corev1.ContainerStatus) []corev1.PodCondition {
	out := make([]corev1.PodCondition, 0, len(w.Pod.Status.Conditions)+5)
	for _, c := range w.Pod.Status.Conditions {
		if !ownCondition(c.Type) {
			out = append(out, c)
		}
	}
	gen := w.Pod.Generation
	add := func(t corev1.PodConditionType, ok bool, reason, message string) {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: gen}
		if ok {
			c.Status = corev1.ConditionTrue
		}
		out = append(out, c)
	}
	ok, reason, message := w.readyToStart()
	add(corev1.PodReadyToStartContainers, ok, reason, message)
	ok, reason, message = w.initialized(all, s.Phase, old)
	add(corev1.PodInitialized, ok, reason, message)
	ready, readyReason, readyMessage := containersReady(w.Pod, all, s.Phase)
	podReady, podReason, podMessage := ready, readyReason, readyMessage
	if ready {
		podReady, podReason, podMessage = gatesReady(w.Pod, out)
	}
	add(corev1.PodReady, podReady, podReason, podMessage)
	add(corev1.ContainersReady, ready, readyReason, readyMessage)
	add(corev1.PodScheduled, true, "", "")
	return out
}

func (w *worker) readyToStart() (bool, string, string) {
	if w.SandboxReady {
		return true, "", ""
	}
	if w.SandboxID == "" {
		return false, "PodSandboxNotReady", "no pod sandbox exists"
	}
	return false, "PodSandboxNotReady", "pod sandbox is not ready"
}

func (w *worker) initialized(all []corev1.ContainerStatus, phase corev1.PodPhase, old *corev1.PodStatus) (bool, string, string) {
	var unknown, incomplete []string
	for i := range w.Pod.Spec.InitContainers {
		c := &w.Pod.Spec.InitContainers[i]
		st, ok := podutil.GetContainerStatus(all, c.Name)
		switch {
		case !ok:
			unknown = append(unknown, c.Name)
		case podutil.IsRestartableInitContainer(c) && (st.Started == nil || !*st.Started),
			!podutil.IsRestartableInitContainer(c) && !st.Ready:
			incomplete = append(incomplete, c.Name)
		}
	}
	if phase == corev1.PodSucceeded && len(unknown) == 0 {
		return true, "PodCompleted", ""
	}
	if regularStarted(w.Pod, all) || len(unknown)+len(incomplete) == 0 {
		return true, "", ""
	}
	if _, c := podutil.GetPodConditionFromList(old.Conditions, corev1.PodInitialized); c != nil && c.Status == corev1.ConditionTrue {
		return true, "", ""
	}
	return false, "ContainersNotInitialized", joinUnready(unknown, incomplete, "containers with incomplete status: %s")
}

func regularStarted(pod *corev1.Pod, all []corev1.ContainerStatus) bool {
	for i := range pod.Spec.Containers {
		if st, ok := podutil.GetContainerStatus(all, pod.Spec.Containers[i].Name); ok {
			if st.State.Running != nil || st.State.Terminated != nil || st.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

func joinUnready(unknown, unready []string, format string) string {
	var parts []string
	if len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("containers with unknown status: %s", unknown))
	}
	if len(unready) > 0 {
		parts = append(parts, fmt.Sprintf(format, unready))
	}
	return strings.Join(parts, ", ")
}

func containersReady(pod *corev1.Pod, all []corev1.ContainerStatus, phase corev1.PodPhase) (bool, string, string) {
	var unknown, unready []string
	check := func(name string) {
		if st, ok := podutil.GetContainerStatus(all, name); !ok {
			unknown = append(unknown, name)
		} else if !st.Ready {
			unready = append(unready, name)
		}
	}
	for i := range pod.Spec.InitContainers {
		if podutil.IsRestartableInitContainer(&pod.Spec.InitContainers[i]) {
			check(pod.Spec.InitContainers[i].Name)
		}
	}
	for i := range pod.Spec.Containers {
		check(pod.Spec.Containers[i].Name)
	}
	switch {
	case phase == corev1.PodSucceeded && len(unknown) == 0:
		return false, "PodCompleted", ""
	case phase == corev1.PodFailed:
		return false, "PodFailed", ""
	case len(unknown)+len(unready) > 0:
		return false, "ContainersNotReady", joinUnready(unknown, unready, "containers with unready status: %s")
	}
	return true, "", ""
}

func gatesReady(pod *corev1.Pod, conditions []corev1.PodCondition) (bool, string, string) {
	var messages []string
	for _, g := range pod.Spec.ReadinessGates {
		_, c := podutil.GetPodConditionFromList(conditions, g.ConditionType)
		switch {
		case c == nil:
			messages = append(messages, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", string(g.ConditionType)))
		case c.Status != corev1.ConditionTrue:
			messages = append(messages, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", string(g.ConditionType), c.Status))
		}
	}
	if len(messages) > 0 {
		return false, "ReadinessGatesNotReady", strings.Join(messages, ", ")
	}
	return true, "", ""
}
