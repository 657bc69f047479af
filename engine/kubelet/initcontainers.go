package kubelet

import (
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// initActions is upstream's computeInitContainerActions: which init container comes
// next, which sidecars start again, and whether the others may start.
func (kl *Kubelet) initActions(w *worker) (ops []op, initialized bool) {
	list := w.Pod.Spec.InitContainers
	if len(list) == 0 {
		return nil, true
	}
	initialized = w.activeStarted()
	before := initialized
	var starts, kills []op
	start := func(i int) {
		c := w.Containers[list[i].Name]
		killed := c != nil && c.Current.State == stateRunning
		starts = append([]op{{Kind: opStart, Container: list[i].Name, Killed: killed}}, starts...)
	}
	for i := len(list) - 1; i >= 0; i-- {
		s := &list[i]
		sidecar := podutil.IsRestartableInitContainer(s)
		c := w.Containers[s.Name]
		if c == nil || c.Current.ID == "" || c.Current.Sandbox != w.SandboxID {
			if before && sidecar {
				start(i)
			}
			continue
		}
		if before && !sidecar {
			continue
		}
		switch {
		case c.Current.State == stateCreated:
			start(i)
		case c.Current.State == stateRunning && !sidecar:
		case c.Current.State == stateRunning:
			message, reason := probeVerdict(c, "Init container "+s.Name)
			if message != "" {
				kills = append(kills, op{Kind: opKill, Container: s.Name, Message: message, Reason: reason})
				start(i)
			}
			if s.StartupProbe != nil && c.Current.Startup != success {
				break // not started yet: what comes after it waits
			}
			if i == len(list)-1 {
				initialized = true
			} else if !before {
				start(i + 1)
			}
		case sidecar:
			start(i)
		case c.Current.ExitCode != 0:
			if !w.shouldRestart(s) {
				return kl.killPodOps(w), false
			}
			start(i)
		case i == len(list)-1:
			initialized = true
		default:
			start(i + 1)
		}
		before = true
	}
	if !before {
		start(0)
	}
	return append(kills, starts...), initialized
}
