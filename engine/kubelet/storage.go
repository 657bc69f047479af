package kubelet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/csi"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// The keys of what a volume of a storage driver waits for, besides its claim.
const (
	stageKey   = "csi/stage"
	publishKey = "csi/publish"
)

func claimKey(name string) string  { return "persistentvolumeclaim/" + name }
func volumeKey(name string) string { return "persistentvolume/" + name }

// askDriver sends a request to the node's CSI drivers.
func (kl *Kubelet) askDriver(w *worker, v *corev1.Volume, verb string, req any) {
	kl.hop(w, trace.Hop{Stage: stage.Volumes, From: kl.me, To: stage.On(stage.CSI, kl.cfg.Node), Verb: verb, Message: v.Name})
	kl.k.Send(kernel.ActorID(stage.On(stage.CSI, kl.cfg.Node)), criLatency, req)
}

// publishInline mounts a volume that is written into the Pod itself.
func (kl *Kubelet) publishInline(w *worker, v *corev1.Volume, st *volume) {
	if !slices.Contains(kl.cfg.CSIDrivers, v.CSI.Driver) {
		return // volumeFiles says so
	}
	st.Wanted++
	kl.askDriver(w, v, "NodePublishVolume", csi.NodePublishVolume{
		ReplyTo: kl.self, Tag: volumeTag{w.UID, v.Name, st.Try, publishKey}, Driver: v.CSI.Driver,
		VolumeID: "csi-" + string(w.UID) + "-" + v.Name, PodUID: string(w.UID), Ephemeral: true, Attributes: v.CSI.VolumeAttributes,
	})
}

// claimStep goes from the claim to its volume, and from the volume to its driver. It is
// called with each answer, and asks for the next thing.
func (kl *Kubelet) claimStep(w *worker, v *corev1.Volume, st *volume, key string, got fetched) {
	if v.PersistentVolumeClaim == nil || got.Err != "" {
		return
	}
	switch obj := got.Object.(type) {
	case *corev1.PersistentVolumeClaim:
		if obj.Status.Phase != corev1.ClaimBound || obj.Spec.VolumeName == "" {
			return
		}
		st.PV = obj.Spec.VolumeName
		st.Wanted++
		kl.c.Do(wire.Request{
			Verb: wire.Get, Resource: kube.PVs, Name: obj.Spec.VolumeName, Background: true,
			Tag: volumeTag{w.UID, v.Name, st.Try, volumeKey(obj.Spec.VolumeName)},
		})
	case *corev1.PersistentVolume:
		source := obj.Spec.CSI
		st.Share = obj.Name
		if source == nil || !slices.Contains(kl.cfg.CSIDrivers, source.Driver) {
			return
		}
		st.Share = source.Driver + "/" + source.VolumeHandle
		st.Driver, st.Handle = source.Driver, source.VolumeHandle
		st.Wanted++
		kl.askDriver(w, v, "NodeStageVolume", csi.NodeStageVolume{
			ReplyTo: kl.self, Tag: volumeTag{w.UID, v.Name, st.Try, stageKey}, Driver: source.Driver, VolumeID: source.VolumeHandle,
		})
	case nil:
		if key != stageKey {
			return
		}
		st.Wanted++
		kl.askDriver(w, v, "NodePublishVolume", csi.NodePublishVolume{
			ReplyTo: kl.self, Tag: volumeTag{w.UID, v.Name, st.Try, publishKey}, Driver: st.Driver, VolumeID: st.Handle,
			PodUID: string(w.UID), ReadOnly: v.PersistentVolumeClaim.ReadOnly,
		})
	}
}

// driverAnswered has a CSI driver's word on a volume.
func (kl *Kubelet) driverAnswered(r csi.Response) {
	if t, ok := r.Tag.(volumeTag); ok {
		kl.volumeGot(t, fetched{Err: r.Err})
	}
}

// claimError is why a volume of a claim cannot be mounted, nil where it can.
func (kl *Kubelet) claimError(w *worker, v *corev1.Volume, got func(string) fetched) error {
	name := v.PersistentVolumeClaim.ClaimName
	claim := got(claimKey(name))
	if claim.Err != "" {
		if claim.Absent {
			claim.Err = fmt.Sprintf("persistentvolumeclaims %q not found", name)
		}
		return fmt.Errorf("error processing PVC %s/%s: failed to fetch PVC from API server: %s", w.Pod.Namespace, name, claim.Err)
	}
	pvc := claim.Object.(*corev1.PersistentVolumeClaim)
	if pvc.Status.Phase != corev1.ClaimBound || pvc.Spec.VolumeName == "" {
		return fmt.Errorf("error processing PVC %s/%s: PVC is not bound", w.Pod.Namespace, name)
	}
	return nil
}

// attachError is why a bound volume cannot be mounted: what its driver said.
func (kl *Kubelet) attachError(v *corev1.Volume, got func(string) fetched, claim *corev1.PersistentVolumeClaim) error {
	vol := got(volumeKey(claim.Spec.VolumeName))
	if vol.Err != "" {
		return fmt.Errorf("failed to fetch PV %s: %s", claim.Spec.VolumeName, vol.Err)
	}
	pv := vol.Object.(*corev1.PersistentVolume)
	if pv.Spec.CSI != nil && !slices.Contains(kl.cfg.CSIDrivers, pv.Spec.CSI.Driver) {
		return fmt.Errorf("kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name %s not found in the list of registered CSI drivers", pv.Spec.CSI.Driver)
	}
	for _, key := range []string{stageKey, publishKey} {
		if err := got(key).Err; err != "" {
			return fmt.Errorf("%s", err)
		}
	}
	if pv.Spec.HostPath != nil {
		return hostPathError(pv.Spec.HostPath)
	}
	return nil
}
