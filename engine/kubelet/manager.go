package kubelet

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// The tags of requests to the API server.
type (
	statusTag struct {
		UID     types.UID
		Version int
	}
	retryStatus struct{ UID types.UID }
	deleteTag   struct{ UID types.UID }
)

// patchStatus sends the newest status, one patch at a time.
func (kl *Kubelet) patchStatus(w *worker) {
	if w.Status == nil || w.Patching || w.Patched >= w.Version || w.Gone {
		return
	}
	if w.Static && w.Mirror == "" {
		return // there is no mirror to show it on yet
	}
	w.Patching = true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Pod.Namespace, Name: w.Pod.Name, UID: w.UID},
		Status:     *w.Status,
	}
	if w.Static {
		pod.UID = w.Mirror
	}
	kl.c.Do(wire.Request{
		Verb: wire.Patch, Resource: kube.Pods, Subresource: "status", Namespace: pod.Namespace, Name: pod.Name,
		Object: pod, Tag: statusTag{w.UID, w.Version}, Background: true,
	})
}

// sandboxReported tells as soon as the sandbox is up that containers may start; the rest
// of the status stays as it was.
func (kl *Kubelet) sandboxReported(w *worker) {
	if w.Status == nil {
		return
	}
	s := w.Status.DeepCopy()
	if i, c := podutil.GetPodConditionFromList(s.Conditions, corev1.PodReadyToStartContainers); c != nil {
		s.Conditions[i].Status, s.Conditions[i].Reason, s.Conditions[i].Message = corev1.ConditionTrue, "", ""
	}
	kl.setStatus(w, s)
}

// statusPatched has the answer to a patch of a Pod's status.
func (kl *Kubelet) statusPatched(t statusTag, a wire.Answer) {
	w := kl.Workers[t.UID]
	if w == nil {
		return
	}
	w.Patching = false
	err := a.Err()
	h := trace.Hop{Stage: stage.Status, From: kl.me, To: stage.APIServer, Verb: "PATCH status", Revision: a.Revision}
	switch {
	case err == nil:
		w.Patched, w.Untold = max(w.Patched, t.Version), false
		h.Message = summary(w.Status)
		if terminal(w.Status.Phase) && w.Status.Phase == corev1.PodFailed {
			h.Reason = w.Status.Reason
		}
		kl.hop(w, h)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		w.Patched = max(w.Patched, t.Version) // the Pod is gone, or another one has its name
	default:
		h.Outcome, h.Reason, h.Message = trace.Retry, string(apierrors.ReasonForError(err)), err.Error()
		h.Background, w.Untold = w.Untold, true // once is enough
		kl.hop(w, h)
		kl.k.Send(kl.self, kl.cfg.BackOff, retryStatus{w.UID})
		return
	}
	kl.patchStatus(w)
	if w.Phase == finished {
		kl.finalDelete(w)
	}
}

// summary says in a line what a status amounts to: its phase, its containers, and
// whether it is Ready.
func summary(s *corev1.PodStatus) string {
	parts := []string{"phase " + string(s.Phase)}
	if s.Reason != "" {
		parts = append(parts, s.Reason)
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			parts = append(parts, list[i].Name+" "+stateWord(&list[i]))
		}
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodReady} {
		if _, c := podutil.GetPodConditionFromList(s.Conditions, t); c != nil {
			parts = append(parts, fmt.Sprintf("%s=%s", t, c.Status))
		}
	}
	return strings.Join(parts, ", ")
}

func stateWord(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Running != nil:
		return "Running"
	case c.State.Terminated != nil:
		return c.State.Terminated.Reason
	case c.State.Waiting != nil && c.State.Waiting.Reason != "":
		return c.State.Waiting.Reason
	}
	return "Waiting"
}

// answered takes the API server's answers.
func (kl *Kubelet) answered(a wire.Answer) {
	switch t := a.Tag.(type) {
	case statusTag:
		kl.statusPatched(t, a)
	case deleteTag:
		if w := kl.Workers[t.UID]; w != nil && a.Err() != nil && !apierrors.IsNotFound(a.Err()) {
			w.Deleting = false
			kl.k.Send(kl.self, kl.cfg.BackOff, retryStatus(t))
		}
	case fetchTag:
		kl.fetchedOne(t, a)
	case volumeTag:
		kl.volumeFetched(t, a)
	case mirrorTag:
		kl.mirrorMade(t, a)
	case kwokTag:
		kl.kwokPatched(t, a)
	case nodeTag:
		kl.nodeAnswered(t, a)
	case leaseTag:
		kl.leaseAnswered(t, a)
	}
}

func (kl *Kubelet) statusDue(uid types.UID) {
	if w := kl.Workers[uid]; w != nil {
		kl.patchStatus(w)
		kl.finalDelete(w)
	}
}

func revisionOf(pod *corev1.Pod) int64 {
	n, _ := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	return n
}
