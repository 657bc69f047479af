package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// PodStatus returns what kubectl get prints in the STATUS column of a Pod.
func PodStatus(p *corev1.Pod) string {
	reason := string(p.Status.Phase)
	if p.Status.Reason != "" {
		reason = p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			reason = corev1.PodReasonSchedulingGated
		}
	}
	if r, initializing := initStatus(p); initializing {
		reason = r
	} else {
		reason = containerStatus(p, reason)
	}
	if p.DeletionTimestamp != nil {
		if p.Status.Reason == "NodeLost" {
			return "Unknown"
		}
		if p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			return "Terminating"
		}
	}
	return reason
}

func initStatus(p *corev1.Pod) (string, bool) {
	for i, c := range p.Status.InitContainerStatuses {
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
			continue
		case c.Started != nil && *c.Started && i < len(p.Spec.InitContainers) && p.Spec.InitContainers[i].RestartPolicy != nil:
			continue
		case c.State.Terminated != nil:
			return "Init:" + Terminated(c.State.Terminated), true
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			return "Init:" + c.State.Waiting.Reason, true
		}
		return fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers)), true
	}
	return "", false
}

func containerStatus(p *corev1.Pod, reason string) string {
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := p.Status.ContainerStatuses[i]
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			reason = Terminated(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
		}
	}
	if reason == "Completed" && running {
		reason = "NotReady"
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				reason = "Running"
			}
		}
	}
	return reason
}

// Terminated is why a container ended, as kubectl get prints it.
func Terminated(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}
