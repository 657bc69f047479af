package plugins

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"

	"podwalk/engine/kube"
	"podwalk/engine/scheduler/framework"
)

// VolumeBinding looks at a Pod's PersistentVolumeClaims: whether they exist, are bound,
// and can be had on the node. Left out: the binding of claims that wait for their first
// consumer (Reserve and PreBind), and storage capacity.
type VolumeBinding struct{}

// Name implements Plugin.
func (VolumeBinding) Name() string { return "VolumeBinding" }

const (
	reasonNodeConflict = "node(s) didn't match PersistentVolume's node affinity"
	reasonBindConflict = "node(s) didn't find available persistent volumes to bind"
	reasonPVNotExist   = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
)

// claimState is what PreFilter sorts a Pod's claims into.
type claimState struct {
	bound, delayed []*corev1.PersistentVolumeClaim
	volumes        map[string][]*corev1.PersistentVolume // by storage class, for the delayed ones
}

// claimName returns the claim that a volume uses, "" for one that uses none.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

// PreFilter implements PreFilterPlugin.
func (p VolumeBinding) PreFilter(state *framework.CycleState, pod *framework.PodInfo) (*framework.PreFilterResult, *framework.Status) {
	refuse := func(format string, args ...any) (*framework.PreFilterResult, *framework.Status) {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, p.Name(), fmt.Sprintf(format, args...))
	}
	objects := state.Snapshot.Objects
	var claims []*corev1.PersistentVolumeClaim
	for i := range pod.Pod.Spec.Volumes {
		v := &pod.Pod.Spec.Volumes[i]
		name := claimName(pod.Pod, v)
		if name == "" {
			continue
		}
		o, ok := objects.Object((*corev1.PersistentVolumeClaim)(nil), pod.Pod.Namespace, name)
		switch {
		case !ok && v.Ephemeral != nil:
			return refuse("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
		case !ok:
			return refuse("persistentvolumeclaim %q not found", name)
		}
		c := o.(*corev1.PersistentVolumeClaim)
		switch {
		case c.Status.Phase == corev1.ClaimLost:
			return refuse("persistentvolumeclaim %q bound to non-existent persistentvolume %q", c.Name, c.Spec.VolumeName)
		case c.DeletionTimestamp != nil:
			return refuse("persistentvolumeclaim %q is being deleted", c.Name)
		}
		if v.Ephemeral != nil {
			if err := ephemeral.VolumeIsForPod(pod.Pod, c); err != nil {
				return refuse("%v", err)
			}
		}
		claims = append(claims, c)
	}
	if len(claims) == 0 {
		return nil, framework.NewStatus(framework.Skip, p.Name())
	}
	s := &claimState{volumes: map[string][]*corev1.PersistentVolume{}}
	for _, c := range claims {
		switch {
		case bound(c):
			s.bound = append(s.bound, c)
		case c.Spec.VolumeName == "" && delayed(objects, c):
			s.delayed = append(s.delayed, c)
			class := volume.GetPersistentVolumeClaimClass(c)
			s.volumes[class] = volumesOf(objects, class)
		default:
			return refuse("pod has unbound immediate PersistentVolumeClaims")
		}
	}
	slices.SortStableFunc(s.delayed, func(a, b *corev1.PersistentVolumeClaim) int {
		x, y := a.Spec.Resources.Requests[corev1.ResourceStorage], b.Spec.Resources.Requests[corev1.ResourceStorage]
		return x.Cmp(y)
	})
	state.Write(p.Name(), s)
	return nil, nil
}

// bound reports whether the controller is done with binding the claim.
func bound(c *corev1.PersistentVolumeClaim) bool {
	_, done := c.Annotations[volume.AnnBindCompleted]
	return done && c.Spec.VolumeName != ""
}

// delayed reports whether the claim's class waits for the first consumer.
func delayed(objects framework.Lister, c *corev1.PersistentVolumeClaim) bool {
	class := storageClass(objects, c)
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func storageClass(objects framework.Lister, c *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	name := volume.GetPersistentVolumeClaimClass(c)
	if name == "" {
		return nil
	}
	o, ok := objects.Object((*storagev1.StorageClass)(nil), "", name)
	if !ok {
		return nil
	}
	return o.(*storagev1.StorageClass)
}

func volumesOf(objects framework.Lister, class string) []*corev1.PersistentVolume {
	var out []*corev1.PersistentVolume
	objects.Each((*corev1.PersistentVolume)(nil), "", func(o kube.Object) bool {
		if pv := o.(*corev1.PersistentVolume); volume.GetPersistentVolumeClass(pv) == class {
			out = append(out, pv)
		}
		return true
	})
	return out
}

// Filter implements FilterPlugin.
func (p VolumeBinding) Filter(state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	s, ok := state.Read(p.Name()).(*claimState)
	if !ok {
		return nil
	}
	objects := state.Snapshot.Objects
	var reasons []string
	if r := checkBound(objects, s.bound, node.Node); r == reasonNodeConflict {
		reasons = append(reasons, r)
	}
	found, err := checkDelayed(objects, s, node.Node)
	if err != nil {
		return framework.AsStatus(p.Name(), err)
	}
	if !found {
		reasons = append(reasons, reasonBindConflict)
	}
	if r := checkBound(objects, s.bound, node.Node); r == reasonPVNotExist {
		reasons = append(reasons, r)
	}
	if len(reasons) == 0 {
		return nil
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, p.Name(), reasons...)
}

// checkBound says what is wrong with the volumes of bound claims on a node, "" if nothing.
func checkBound(objects framework.Lister, claims []*corev1.PersistentVolumeClaim, node *corev1.Node) string {
	for _, c := range claims {
		o, ok := objects.Object((*corev1.PersistentVolume)(nil), "", c.Spec.VolumeName)
		if !ok {
			return reasonPVNotExist
		}
		if volume.CheckNodeAffinity(o.(*corev1.PersistentVolume), node.Labels) != nil {
			return reasonNodeConflict
		}
	}
	return ""
}

// checkDelayed reports whether every unbound claim finds a volume on the node, or can be
// provisioned there.
func checkDelayed(objects framework.Lister, s *claimState, node *corev1.Node) (bool, error) {
	chosen := map[string]*corev1.PersistentVolume{}
	for _, c := range s.delayed {
		if selected, ok := c.Annotations[volume.AnnSelectedNode]; ok {
			if selected != node.Name {
				return false, nil
			}
		} else {
			pv, err := volume.FindMatchingVolume(c, s.volumes[volume.GetPersistentVolumeClaimClass(c)], node, chosen, true, true)
			if err != nil {
				return false, err
			}
			if pv != nil {
				chosen[pv.Name] = pv
				continue
			}
		}
		class := storageClass(objects, c)
		if class == nil {
			return false, fmt.Errorf("failed to find storage class %q", volume.GetPersistentVolumeClaimClass(c))
		}
		if class.Provisioner == "" || class.Provisioner == volume.NotSupportedProvisioner || !topologyAllowed(class, node) {
			return false, nil
		}
	}
	return true, nil
}

// topologyAllowed reports whether any of the class's allowedTopologies matches the node.
func topologyAllowed(class *storagev1.StorageClass, node *corev1.Node) bool {
	for _, term := range class.AllowedTopologies {
		all := len(term.MatchLabelExpressions) > 0
		for _, e := range term.MatchLabelExpressions {
			all = all && slices.Contains(e.Values, node.Labels[e.Key])
		}
		if all {
			return true
		}
	}
	return len(class.AllowedTopologies) == 0
}

// EventsToRegister implements EnqueueExtensions.
func (VolumeBinding) EventsToRegister() []framework.EventWithHint {
	return []framework.EventWithHint{
		on(framework.StorageClass, framework.Add|framework.Update, nil),
		on(framework.PersistentVolumeClaim, framework.Add|framework.Update, func(pod *framework.PodInfo, _, obj kube.Object) framework.QueueingHint {
			if obj.GetNamespace() != pod.Pod.Namespace {
				return framework.QueueSkip
			}
			return hint(slices.ContainsFunc(pod.Pod.Spec.Volumes, func(v corev1.Volume) bool {
				return claimName(pod.Pod, &v) == obj.GetName()
			}))
		}),
		on(framework.PersistentVolume, framework.Add|framework.Update, nil),
		onNode(framework.Add|framework.UpdateNodeLabel, nil),
	}
}
