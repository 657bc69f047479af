package kubelet

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kube"
)

type mirrorTag struct{ UID types.UID }

func hashOf(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// startStatic begins the Pods of the node's manifests: they run whether the API server
// is there or not.
func (kl *Kubelet) startStatic() {
	for _, p := range kl.cfg.StaticPods {
		pod := kl.staticPod(p)
		w := newWorker(pod, kl.k.Now())
		w.Static = true
		kl.Workers[w.UID] = w
		if reason, message := kl.admit(w); reason != "" {
			kl.reject(w, reason, message)
			continue
		}
		kl.schedule(w, kl.k.Now().Add(kl.cfg.SyncDelay))
	}
}

// staticPod is a manifest as the kubelet makes a Pod of it.
func (kl *Kubelet) staticPod(manifest *corev1.Pod) *corev1.Pod {
	pod := manifest.DeepCopy()
	raw, _ := json.Marshal(manifest)
	hash := hashOf(kl.cfg.Node + "\x00" + string(raw))
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Name += "-" + kl.cfg.Node
	pod.UID = types.UID(hash)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["kubernetes.io/config.hash"] = hash
	pod.Annotations["kubernetes.io/config.seen"] = kl.k.Now().Wall().Format(time.RFC3339Nano)
	pod.Annotations["kubernetes.io/config.source"] = "file"
	pod.Spec.NodeName = kl.cfg.Node
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	pod.Status.Phase = corev1.PodPending
	corev1defaults.SetObjectDefaults_Pod(pod)
	return pod
}

// keepMirror makes the mirror Pod where there is none.
func (kl *Kubelet) keepMirror(w *worker) {
	if w.Mirror != "" || w.Making || kl.Node.UID == "" || w.Phase != syncing {
		return
	}
	w.Making = true
	m := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: w.Pod.Name, Namespace: w.Pod.Namespace, Labels: w.Pod.Labels, Annotations: map[string]string{},
	}, Spec: *w.Pod.Spec.DeepCopy()}
	for k, v := range w.Pod.Annotations {
		m.Annotations[k] = v
	}
	m.Annotations[corev1.MirrorPodAnnotationKey] = string(w.UID)
	yes := true
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: kl.cfg.Node, UID: kl.Node.UID, Controller: &yes}}
	kl.c.Do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: m.Namespace, Name: m.Name, Object: m, Tag: mirrorTag{w.UID}, Background: true})
}

func (kl *Kubelet) mirrorMade(t mirrorTag, a wire.Answer) {
	w := kl.Workers[t.UID]
	if w == nil {
		return
	}
	w.Making = false
	if m, ok := a.Object.(*corev1.Pod); ok && a.Err() == nil {
		kl.gotMirror(w, m)
	}
}

func (kl *Kubelet) gotMirror(w *worker, m *corev1.Pod) {
	if w.Mirror == m.UID {
		return
	}
	w.Mirror, w.Patched = m.UID, 0
	kl.patchStatus(w)
}

// mirrorChanged follows the mirror of a static Pod; the Pod itself does not care.
func (kl *Kubelet) mirrorChanged(uid types.UID, ch client.Change[*corev1.Pod]) {
	m := ch.Object()
	w := kl.Workers[uid]
	switch {
	case w == nil || !w.Static:
		if ch.Type != wire.Deleted {
			kl.deleteMirror(m)
		}
	case ch.Type == wire.Deleted:
		if w.Mirror == m.UID {
			w.Mirror = ""
		}
	case m.DeletionTimestamp != nil:
		// It goes, and comes back, at the next pass.
		w.Mirror = m.UID
		kl.k.Send(kl.self, kl.jitter(kl.cfg.Resync), mirrorGone{w.UID, m.UID})
	default:
		kl.gotMirror(w, m)
	}
}

type mirrorGone struct{ UID, Mirror types.UID }

func (kl *Kubelet) mirrorDue(e mirrorGone) {
	w := kl.Workers[e.UID]
	if w == nil || w.Mirror != e.Mirror {
		return
	}
	if m, ok := kl.pods.Get(w.Pod.Namespace, w.Pod.Name); ok && m.UID == e.Mirror {
		kl.deleteMirror(m)
	}
	w.Mirror = ""
	kl.requestSync(w)
}

func (kl *Kubelet) deleteMirror(m *corev1.Pod) {
	var now int64
	uid := m.UID
	kl.c.Do(wire.Request{
		Verb: wire.Delete, Resource: kube.Pods, Namespace: m.Namespace, Name: m.Name, Background: true, Tag: mirrorTag{},
		Options: wire.Options{Delete: &metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}}},
	})
}

// staticEnded drops a static Pod that has come to its end.
func (kl *Kubelet) staticEnded(w *worker) {
	if w.Gone {
		kl.forget(w)
	}
}
