package kubelet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// volume is one volume of a Pod, as the volume manager knows it.
type volume struct {
	Name     string
	Mounted  bool
	Fetching bool
	Try      int // numbers the attempts: late answers to an earlier one are stale
	Wanted   int
	Files    map[string]string // never changed after it was set
	Delay    time.Duration     // back-off of the last failure
	NotUntil kernel.Time
	Err      string
	PVC      bool   // the error is one of processing the Pod's PVCs
	Share    string // of a volume that outlives the Pod: what it is known by
	PV       string // what a claim is bound to: messages name it instead of the volume
	Driver   string // of a CSI volume
	Handle   string
}

// volumeTag is the tag of a request for a volume's content.
type volumeTag struct {
	UID    types.UID
	Volume string
	Try    int
	Key    string
}

// Upstream's exponential back-off of volume operations.
const (
	volumeBackOffInitial = 500 * time.Millisecond
	volumeBackOffMax     = 2*time.Minute + 2*time.Second
)

// usedVolumes returns the volumes that some container mounts, in the order of the spec.
func usedVolumes(pod *corev1.Pod) []*corev1.Volume {
	used := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, m := range list[i].VolumeMounts {
				used[m.Name] = true
			}
		}
	}
	var out []*corev1.Volume
	for i := range pod.Spec.Volumes {
		if used[pod.Spec.Volumes[i].Name] {
			out = append(out, &pod.Spec.Volumes[i])
		}
	}
	return out
}

// waitForVolumes is upstream's WaitForAttachAndMount: the pass goes on at a poll that
// finds everything mounted.
func (kl *Kubelet) waitForVolumes(w *worker) {
	used := usedVolumes(w.Pod)
	fresh := false
	for _, v := range used {
		if w.Volumes[v.Name] == nil {
			w.Volumes[v.Name] = &volume{Name: v.Name}
			fresh = true
		}
	}
	if w.volumesMounted() {
		kl.runtimePass(w)
		return
	}
	w.Stage, w.WaitSince = "volumes", kl.k.Now()
	if fresh {
		kl.k.Send(kl.self, kl.cfg.VolumeDelay, volumeTick{w.UID})
	}
	kl.k.Send(kl.self, kl.cfg.VolumePoll, volumePoll{w.UID, w.Pass})
	kl.k.Send(kl.self, kl.cfg.VolumeTimeout, volumeTimeout{w.UID, w.Pass})
}

type (
	volumePoll struct {
		UID  types.UID
		Pass uint64
	}
	volumeTimeout struct {
		UID  types.UID
		Pass uint64
	}
)

func (w *worker) volumesMounted() bool {
	for _, v := range w.Volumes {
		if !v.Mounted {
			return false
		}
	}
	return true
}

// volumesPolled ends a wait that cannot end well: a volume could not even be looked up.
func (kl *Kubelet) volumesPolled(uid types.UID, pass uint64) {
	w := kl.Workers[uid]
	if w == nil || !w.Running || w.Pass != pass || w.Stage != "volumes" {
		return
	}
	var broken, unmounted []string
	reason := ""
	for _, v := range usedVolumes(w.Pod) {
		st := w.Volumes[v.Name]
		if !st.Mounted {
			unmounted = append(unmounted, v.Name)
		}
		if st.PVC && st.Err != "" {
			broken = append(broken, v.Name)
			if reason == "" {
				reason = st.Err
			}
		}
	}
	if len(broken) == 0 {
		return
	}
	slices.Sort(unmounted)
	message := fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=%v, unattached volumes=[], failed to process volumes=%v: %s", unmounted, broken, reason)
	kl.recorder.Event(w.Pod, corev1.EventTypeWarning, "FailedMount", message)
	kl.hop(w, trace.Hop{Stage: stage.Volumes, From: kl.me, To: kl.me, Verb: "MountVolume", Outcome: trace.Retry, Reason: "FailedMount", Message: message})
	for _, name := range broken {
		st := w.Volumes[name]
		st.Err, st.NotUntil = "", 0
	}
	kl.k.Send(kl.self, kl.cfg.VolumeDelay, volumeTick{w.UID})
	w.Failed = true
	kl.endPass(w)
}

// volumesTimedOut ends a pass that has waited for long enough; the volume manager goes
// on by itself.
func (kl *Kubelet) volumesTimedOut(uid types.UID, pass uint64) {
	w := kl.Workers[uid]
	if w != nil && w.Running && w.Pass == pass && w.Stage == "volumes" {
		w.Failed = true
		kl.endPass(w)
	}
}

// mountVolumes is the reconciler: it begins to set up every volume that is due.
func (kl *Kubelet) mountVolumes(w *worker) {
	if w.Phase != syncing {
		return
	}
	for _, v := range usedVolumes(w.Pod) {
		st := w.Volumes[v.Name]
		if st == nil || st.Mounted || st.Fetching || kl.k.Now() < st.NotUntil {
			continue
		}
		kl.setUp(w, v, st)
	}
}

// setUp asks for what the volume is made from.
func (kl *Kubelet) setUp(w *worker, v *corev1.Volume, st *volume) {
	st.Try++
	keys, token := volumeSources(v)
	st.Fetching, st.Wanted, st.Err, st.PVC = true, len(keys), "", false
	if token != nil {
		st.Wanted++
		kl.requestToken(w, v, st, token)
	}
	for _, key := range keys {
		kl.get(w, key, volumeTag{w.UID, v.Name, st.Try, key})
	}
	if v.CSI != nil {
		kl.publishInline(w, v, st)
	}
	if st.Wanted == 0 {
		kl.volumeReady(w, v, st)
	}
}

// volumeSources lists the objects that a volume is made from.
func volumeSources(v *corev1.Volume) (keys []string, token *corev1.ServiceAccountTokenProjection) {
	switch {
	case v.ConfigMap != nil:
		keys = []string{configMapKey(v.ConfigMap.Name)}
	case v.Secret != nil:
		keys = []string{secretKey(v.Secret.SecretName)}
	case v.PersistentVolumeClaim != nil:
		keys = []string{claimKey(v.PersistentVolumeClaim.ClaimName)}
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			switch {
			case s.ConfigMap != nil:
				keys = append(keys, configMapKey(s.ConfigMap.Name))
			case s.Secret != nil:
				keys = append(keys, secretKey(s.Secret.Name))
			case s.ServiceAccountToken != nil:
				token = s.ServiceAccountToken
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), token
}

func (kl *Kubelet) requestToken(w *worker, v *corev1.Volume, st *volume, p *corev1.ServiceAccountTokenProjection) {
	var audiences []string
	if p.Audience != "" {
		audiences = []string{p.Audience}
	}
	kl.c.Do(wire.Request{
		Verb: wire.Create, Resource: kube.ServiceAccounts, Subresource: "token", Namespace: w.Pod.Namespace, Name: w.Pod.Spec.ServiceAccountName,
		Tag: volumeTag{w.UID, v.Name, st.Try, tokenKey}, Background: true,
		Object: &authenticationv1.TokenRequest{
			ObjectMeta: metav1.ObjectMeta{Name: w.Pod.Spec.ServiceAccountName, Namespace: w.Pod.Namespace},
			Spec: authenticationv1.TokenRequestSpec{
				Audiences: audiences, ExpirationSeconds: p.ExpirationSeconds,
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: w.Pod.Name, UID: w.UID},
			},
		},
	})
}

const tokenKey = "token/"

func (kl *Kubelet) volumeFetched(t volumeTag, a wire.Answer) {
	got := result(t.Key, a)
	if t.Key == tokenKey && got.Err != "" {
		got.Err = fmt.Sprintf("failed to fetch token: %s", a.Err())
	}
	kl.volumeGot(t, got)
}

// volumeGot has one of the things that a volume waits for.
func (kl *Kubelet) volumeGot(t volumeTag, got fetched) {
	w := kl.Workers[t.UID]
	if w == nil {
		return
	}
	st := w.Volumes[t.Volume]
	if st == nil || st.Try != t.Try || !st.Fetching {
		return
	}
	w.Got[t.Volume+"\x00"+t.Key] = got
	switch t.Key {
	case tokenKey:
		h := trace.Hop{Stage: stage.Volumes, From: kl.me, To: stage.APIServer, Verb: "POST token", Message: "serviceaccounts/" + w.Pod.Spec.ServiceAccountName + "/token"}
		if got.Err != "" {
			h.Outcome, h.Message = trace.Retry, got.Err
		}
		kl.hop(w, h)
	case stageKey, publishKey:
	default:
		kl.fetchHop(w, stage.Volumes, t.Key, got)
	}
	for _, v := range usedVolumes(w.Pod) {
		if v.Name != t.Volume {
			continue
		}
		kl.claimStep(w, v, st, t.Key, got)
		if st.Wanted--; st.Wanted == 0 {
			kl.volumeReady(w, v, st)
		}
	}
}

// volumeReady has all that the volume is made from, or the reason why not.
func (kl *Kubelet) volumeReady(w *worker, v *corev1.Volume, st *volume) {
	st.Fetching = false
	files, err := kl.volumeFiles(w, v)
	for _, key := range slices.Sorted(maps.Keys(w.Got)) {
		if strings.HasPrefix(key, v.Name+"\x00") {
			delete(w.Got, key)
		}
	}
	if err != nil {
		kl.mountFailed(w, v, st, err)
		return
	}
	st.Files, st.Mounted, st.Err = files, true, ""
	kl.hop(w, trace.Hop{Stage: stage.Volumes, From: kl.me, To: kl.mounter(v), Verb: "MountVolume.SetUp", Message: fmt.Sprintf("MountVolume.SetUp succeeded for volume %q", cmp.Or(st.PV, v.Name))})
	if !w.volumesMounted() || w.Stage != "volumes" {
		return
	}
	// The waiting pass looks again at its next poll.
	waited := kl.k.Now().Sub(w.WaitSince)
	polls := (waited + kl.cfg.VolumePoll - 1) / kl.cfg.VolumePoll
	kl.k.Send(kl.self, polls*kl.cfg.VolumePoll-waited, volumesUp{w.UID, w.Pass})
}

// mounter is who mounts the volume: the CSI driver, or the kubelet itself.
func (kl *Kubelet) mounter(v *corev1.Volume) stage.Component {
	if v.CSI != nil || v.PersistentVolumeClaim != nil {
		return stage.On(stage.CSI, kl.cfg.Node)
	}
	return kl.me
}

func (kl *Kubelet) mountFailed(w *worker, v *corev1.Volume, st *volume, err error) {
	reason := err.Error()
	st.Err = reason
	if _, claim := err.(claimUnusable); claim {
		st.PVC, st.NotUntil = true, kl.k.Now().Add(volumeBackOffMax)
		return // told by the pass that waits for it
	}
	if st.Delay == 0 {
		st.Delay = volumeBackOffInitial
	} else {
		st.Delay = min(2*st.Delay, volumeBackOffMax)
	}
	st.NotUntil = kl.k.Now().Add(st.Delay)
	message := fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", cmp.Or(st.PV, v.Name), reason)
	kl.recorder.Event(w.Pod, corev1.EventTypeWarning, "FailedMount", message)
	kl.hop(w, trace.Hop{Stage: stage.Volumes, From: kl.me, To: kl.mounter(v), Verb: "MountVolume.SetUp", Outcome: trace.Retry, Reason: "FailedMount", Message: message})
	kl.k.Send(kl.self, st.Delay, volumeTick{w.UID})
}
