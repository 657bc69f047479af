package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// tally counts the states of a Pod's containers, as upstream's getPhase does.
type tally struct {
	pendingInit, pendingSidecar, initFailed              int
	unknown, running, waiting, stopped, final, succeeded int
}

// phaseOf is upstream's getPhase.
func phaseOf(pod *corev1.Pod, info []corev1.ContainerStatus, over, initialized bool) corev1.PodPhase {
	var t tally
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		st, ok := podutil.GetContainerStatus(info, c.Name)
		if podutil.IsRestartableInitContainer(c) {
			t.sidecar(st, ok)
		} else {
			t.init(pod, c, st, ok)
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st, ok := podutil.GetContainerStatus(info, c.Name)
		t.regular(pod, c, st, ok)
	}
	switch {
	case t.initFailed > 0:
		return corev1.PodFailed
	case t.pendingInit > 0, t.pendingSidecar > 0 && !initialized, t.waiting > 0:
		return corev1.PodPending
	case t.running > 0 && t.unknown == 0:
		return corev1.PodRunning
	case t.running == 0 && t.stopped > 0 && t.unknown == 0:
		return t.allStopped(over && !isStatic(pod))
	}
	return corev1.PodPending
}

func (t *tally) allStopped(over bool) corev1.PodPhase {
	switch {
	case !over && t.stopped != t.final:
		return corev1.PodRunning // some will be started again
	case t.stopped == t.succeeded:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

func (t *tally) init(pod *corev1.Pod, c *corev1.Container, st corev1.ContainerStatus, ok bool) {
	end := st.State.Terminated
	if st.State.Waiting != nil {
		end = st.LastTerminationState.Terminated
	}
	switch {
	case !ok, st.State.Running != nil, end == nil:
		t.pendingInit++
	case end.ExitCode != 0 && !podutil.ContainerShouldRestart(*c, pod.Spec, end.ExitCode):
		t.initFailed++
	case end.ExitCode != 0:
		// Upstream leaves it out of every count: the regular containers wait anyway.
	}
}

func (t *tally) sidecar(st corev1.ContainerStatus, ok bool) {
	switch {
	case !ok:
		t.unknown++
	case st.State.Running != nil:
		if st.Started == nil || !*st.Started {
			t.pendingSidecar++
		}
		t.running++
	case st.State.Terminated != nil, st.State.Waiting != nil && st.LastTerminationState.Terminated != nil:
	case st.State.Waiting != nil:
		t.pendingSidecar++
		t.waiting++
	default:
		t.pendingSidecar++
		t.unknown++
	}
}

func (t *tally) regular(pod *corev1.Pod, c *corev1.Container, st corev1.ContainerStatus, ok bool) {
	end := st.State.Terminated
	if st.State.Waiting != nil {
		end = st.LastTerminationState.Terminated
	}
	switch {
	case !ok:
		t.unknown++
	case st.State.Running != nil:
		t.running++
	case end != nil:
		t.stopped++
		if !podutil.ContainerShouldRestart(*c, pod.Spec, end.ExitCode) {
			t.final++
		}
		if end.ExitCode == 0 && st.State.Terminated != nil {
			t.succeeded++
		}
	case st.State.Waiting != nil:
		t.waiting++
	default:
		t.unknown++
	}
}

func isStatic(pod *corev1.Pod) bool {
	return pod.Annotations["kubernetes.io/config.source"] == "file"
}
