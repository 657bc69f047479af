package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/cri"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// kill stops one container of the pass that is under way: event, preStop hook, then
// StopContainer with what is left of the grace period.
func (kl *Kubelet) kill(w *worker, name, message, reason string) {
	spec, _ := w.spec(name)
	c := w.container(name)
	if message == "" {
		message = "Stopping container " + name
	}
	kl.event(w, name, corev1.EventTypeNormal, "Killing", message)
	grace := graceOf(w.Pod)
	if w.Pod.DeletionGracePeriodSeconds == nil && spec != nil {
		if p := spec.LivenessProbe; reason == "liveness" && p != nil && p.TerminationGracePeriodSeconds != nil {
			grace = *p.TerminationGracePeriodSeconds
		}
		if p := spec.StartupProbe; reason == "startup" && p != nil && p.TerminationGracePeriodSeconds != nil {
			grace = *p.TerminationGracePeriodSeconds
		}
	}
	kl.hop(w, trace.Hop{Stage: killStage(reason), From: kl.me, To: kl.containerd(), Verb: "StopContainer", Reason: "Killing", Message: message})
	if reason == "liveness" || reason == "startup" {
		c.Current.KilledFor = reason
	}
	kl.Seq++
	c.Kill = kill{Stage: "hook", Seq: kl.Seq, Grace: grace, Began: kl.k.Now()}
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PreStop == nil || grace <= 0 {
		kl.stopContainer(w, c)
		return
	}
	h := spec.Lifecycle.PreStop
	switch {
	case h.Exec != nil:
		kl.ask(asked{What: askHook, UID: w.UID, Container: name, Seq: c.Kill.Seq},
			cri.ExecSync{ContainerID: c.Current.ID, Command: h.Exec.Command, Timeout: seconds(grace)})
	case h.HTTPGet != nil:
		kl.httpHook(w, spec, h.HTTPGet, hookTag{UID: w.UID, Container: name, Seq: c.Kill.Seq})
	case h.Sleep != nil:
		kl.k.Send(kl.self, min(seconds(h.Sleep.Seconds), seconds(grace)), hookDone{w.UID, name, c.Kill.Seq})
	default:
		kl.stopContainer(w, c)
	}
}

func killStage(reason string) stage.ID {
	switch reason {
	case "liveness", "startup":
		return stage.Probes
	case "FailedPostStartHook":
		return stage.Start
	}
	return stage.Termination
}

// preStopped has the end of an exec hook.
func (kl *Kubelet) preStopped(w *worker, a asked, r cri.Response) {
	failed := r.Err
	if spec, _ := w.spec(a.Container); spec != nil {
		failed = execHookFailure(w.Pod, a.Container, spec.Lifecycle.PreStop.Exec.Command, r)
	}
	kl.hookEnded(w, a.Container, a.Seq, failed)
}

// hookEnded goes on after a hook; seq 0 means a postStart hook of the running pass.
func (kl *Kubelet) hookEnded(w *worker, name string, seq uint64, failed string) {
	if seq == 0 {
		if w.Running && w.Op.Kind == opStart && w.Op.Container == name && w.Op.Step == stepHook {
			kl.postStarted(w, failed)
		}
		return
	}
	c := w.container(name)
	if c.Kill.Seq != seq || c.Kill.Stage != "hook" {
		return
	}
	if failed != "" {
		kl.event(w, name, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
		kl.hop(w, trace.Hop{Stage: stage.Termination, From: kl.containerd(), To: kl.me, Verb: "preStop", Outcome: trace.Retry, Reason: "FailedPreStopHook", Message: failed})
	}
	kl.stopContainer(w, c)
}

func (kl *Kubelet) stopContainer(w *worker, c *container) {
	c.Kill.Stage = "stop"
	left := c.Kill.Grace - int64(kl.k.Now().Sub(c.Kill.Began)/time.Second)
	kl.ask(asked{What: askStop, UID: w.UID, Container: c.Name, Seq: c.Kill.Seq},
		cri.StopContainer{ContainerID: c.Current.ID, Timeout: seconds(max(left, minGrace))})
}

// stopped has the end of a container that was to be stopped.
func (kl *Kubelet) stopped(w *worker, a asked, r cri.Response) {
	c := w.container(a.Container)
	if c.Kill.Seq != a.Seq {
		return
	}
	c.Kill = kill{}
	if r.Err != "" {
		w.Failed = true
	} else {
		if c.Current.State == stateRunning { // the event has not come yet
			c.Current.State, c.Current.ExitCode, c.Current.FinishedAt = stateExited, r.ExitCode, kl.k.Now()
			c.Current.Reason = "Error"
			if r.ExitCode == 0 {
				c.Current.Reason = "Completed"
			}
		}
		w.Did, w.Changed = true, true
	}
	for _, other := range w.Containers {
		if other.Kill.Stage != "" {
			return
		}
	}
	if w.Running {
		kl.nextOp(w)
	}
}

// syncTerminating is the pass that stops everything.
func (kl *Kubelet) syncTerminating(w *worker) {
	if !w.Gone {
		kl.setStatus(w, kl.generateStatus(w, false))
	}
	kl.stopProbes(w, false)
	w.Stage = "runtime"
	w.Ops = kl.killPodOps(w)
	kl.nextOp(w)
}

// allStopped ends that pass: the status gets what the containers ended with.
func (kl *Kubelet) allStopped(w *worker) {
	if w.Failed {
		message := "error killing pod: " + socketMissing
		kl.recorder.Event(w.Pod, corev1.EventTypeWarning, "FailedKillPod", message)
		kl.endPass(w)
		return
	}
	kl.stopProbes(w, true)
	kl.setStatus(w, kl.generateStatus(w, true))
	w.Phase = terminated
	kl.endPass(w)
}

// syncTerminated is the last pass: volumes are gone, the status is final.
func (kl *Kubelet) syncTerminated(w *worker) {
	kl.setStatus(w, kl.generateStatus(w, true))
	w.Volumes = map[string]*volume{}
	w.Phase = finished
	kl.endPass(w)
	if w.Static {
		kl.staticEnded(w)
		return
	}
	if w.Gone {
		kl.forget(w)
		return
	}
	kl.finalDelete(w)
}

// finalDelete takes a Pod that has ended, and that somebody has deleted, out of the API
// once its last status is there.
func (kl *Kubelet) finalDelete(w *worker) {
	if w.Pod.DeletionTimestamp == nil || w.Deleting || w.Static || w.Phase != finished || w.Patching || w.Patched < w.Version {
		return
	}
	w.Deleting = true
	var now int64
	uid := w.UID
	kl.c.Do(wire.Request{
		Verb: wire.Delete, Resource: kube.Pods, Namespace: w.Pod.Namespace, Name: w.Pod.Name, Background: true,
		Tag:     deleteTag{w.UID},
		Options: wire.Options{Delete: &metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}}},
	})
	kl.hop(w, trace.Hop{Stage: stage.Termination, From: kl.me, To: stage.APIServer, Verb: "DELETE", Message: fmt.Sprintf("gracePeriodSeconds=0, uid %s", w.UID)})
}

// checkDeadline fails a Pod that has been active for longer than it may.
func (kl *Kubelet) checkDeadline(w *worker) {
	limit := w.Pod.Spec.ActiveDeadlineSeconds
	if limit == nil || w.Deadline || w.Status == nil || w.Status.StartTime == nil {
		return
	}
	left := w.Status.StartTime.Add(seconds(*limit)).Sub(kl.k.Now().Wall())
	if left > 0 {
		if left < kl.cfg.Resync {
			// The kubelet's loop looks once a second; a pass at the right time is the same.
			kl.k.Send(kl.self, left, deadline{w.UID})
		}
		return
	}
	w.Deadline = true
	kl.hop(w, trace.Hop{Stage: stage.Termination, From: kl.me, To: kl.me, Verb: "activeDeadlineSeconds", Outcome: trace.Failed, Reason: "DeadlineExceeded", Message: deadlineMessage})
}

type deadline struct{ UID types.UID }

const deadlineMessage = "Pod was active on the node longer than the specified deadline"
