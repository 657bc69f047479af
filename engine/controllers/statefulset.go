package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/history"

	"podwalk/engine/client"
	"podwalk/engine/kube"
)

// statefulSets is the StatefulSet controller: Pods with names and claims that stay,
// started and stopped in order. Upstream: pkg/controller/statefulset.
//
// Left out: the Recreate strategy, maxUnavailable above one, and owner references of
// claims (persistentVolumeClaimRetentionPolicy: everything is retained).
type statefulSets struct {
	a         *actor
	sets      *client.Cache[*appsv1.StatefulSet]
	pods      *client.Cache[*corev1.Pod]
	claims    *client.Cache[*corev1.PersistentVolumeClaim]
	revisions *client.Cache[*appsv1.ControllerRevision]
}

var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

func newStatefulSets(a *actor) logic {
	c := &statefulSets{a: a}
	c.sets = watch(a, func(ch client.Change[*appsv1.StatefulSet]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.pods = watch(a, func(ch client.Change[*corev1.Pod]) {
		p := ch.Object()
		owner := metav1.GetControllerOfNoCopy(p)
		if owner != nil && owner.Kind == statefulSetKind.Kind {
			a.q.add(kube.Key(p.Namespace, owner.Name))
		} else if owner == nil && ch.Old == nil {
			c.sets.Each(p.Namespace, func(s *appsv1.StatefulSet) bool {
				if sel, err := metav1.LabelSelectorAsSelector(s.Spec.Selector); err == nil && sel.Matches(labels.Set(p.Labels)) {
					a.q.add(kube.KeyOf(s))
				}
				return true
			})
		}
	})
	c.claims = watch(a, quiet[*corev1.PersistentVolumeClaim])
	c.revisions = watch(a, quiet[*appsv1.ControllerRevision])
	return c
}

// statefulSetInput is what a sync of one StatefulSet looks at.
type statefulSetInput struct {
	Set       *appsv1.StatefulSet
	Pods      []*corev1.Pod // its own and orphans
	Claims    map[string]*corev1.PersistentVolumeClaim
	Revisions []*appsv1.ControllerRevision
}

func (c *statefulSets) gather(key string) any {
	ns, name := split(key)
	set, ok := c.sets.Get(ns, name)
	if !ok {
		return nil
	}
	in := statefulSetInput{Set: set, Claims: map[string]*corev1.PersistentVolumeClaim{}}
	c.pods.Each(ns, func(p *corev1.Pod) bool {
		if owner := metav1.GetControllerOfNoCopy(p); ordinal(set, p.Name) >= 0 && (owner == nil || owner.UID == set.UID) {
			in.Pods = append(in.Pods, p)
		}
		return true
	})
	for _, t := range set.Spec.VolumeClaimTemplates {
		prefix := t.Name + "-" + set.Name + "-"
		c.claims.Each(ns, func(pvc *corev1.PersistentVolumeClaim) bool {
			if strings.HasPrefix(pvc.Name, prefix) {
				in.Claims[pvc.Name] = pvc
			}
			return true
		})
	}
	c.revisions.Each(ns, func(cr *appsv1.ControllerRevision) bool {
		if metav1.IsControlledBy(cr, set) {
			in.Revisions = append(in.Revisions, cr)
		}
		return true
	})
	return in
}

// ordinal is the number at the end of a Pod's name, -1 where it is no member's name.
func ordinal(set *appsv1.StatefulSet, pod string) int {
	rest, ok := strings.CutPrefix(pod, set.Name+"-")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != rest {
		return -1
	}
	return n
}

// statefulSync is one sync.
type statefulSync struct {
	*run
	in              statefulSetInput
	set             *appsv1.StatefulSet
	current, update *appsv1.ControllerRevision
	collisions      int32
}

func (c *statefulSets) sync(r *run, input any) error {
	in := input.(statefulSetInput)
	s := &statefulSync{run: r, in: in, set: in.Set}
	sel, err := metav1.LabelSelectorAsSelector(s.set.Spec.Selector)
	if err != nil {
		return nil // an invalid selector does not get better by trying
	}
	var pods []*corev1.Pod
	for _, p := range in.Pods {
		mine, err := claim(r, s.set, statefulSetKind, sel, p)
		if err != nil {
			return err
		}
		if mine {
			pods = append(pods, p)
		}
	}
	if err := s.findRevisions(); err != nil {
		return err
	}
	failure := s.reconcile(pods)
	if err := s.truncate(pods); failure == nil {
		failure = err
	}
	return failure
}

// findRevisions finds or writes the revision of the current template, and finds the one
// that the set came from.
func (s *statefulSync) findRevisions() error {
	if s.set.Status.CollisionCount != nil {
		s.collisions = *s.set.Status.CollisionCount
	}
	all := slices.Clone(s.in.Revisions)
	history.SortControllerRevisions(all)
	next := int64(1)
	if len(all) > 0 {
		next = all[len(all)-1].Revision + 1
	}
	data, err := revisionData(s.set)
	if err != nil {
		return err
	}
	fresh, err := history.NewControllerRevision(s.set, statefulSetKind, s.set.Spec.Template.Labels, runtime.RawExtension{Raw: data}, next, &s.collisions)
	if err != nil {
		return err
	}
	fresh.Namespace = s.set.Namespace
	fresh.Annotations = maps.Clone(s.set.Annotations)
	equal := history.FindEqualRevisions(all, fresh)
	switch {
	case len(equal) == 0:
		req := create(fresh)
		req.Background = true
		ans, err := s.do(req)
		if err != nil {
			return err
		}
		s.update = ans.Object.(*appsv1.ControllerRevision)
	case equal[len(equal)-1].Name == all[len(all)-1].Name:
		s.update = all[len(all)-1]
	default: // gone back to an older template
		up := equal[len(equal)-1].DeepCopy()
		up.Revision = next
		req := update(up)
		req.Background = true
		if _, err := s.do(req); err != nil {
			return err
		}
		s.update = up
	}
	s.current = s.update
	for _, cr := range all {
		if cr.Name == s.set.Status.CurrentRevision {
			s.current = cr
		}
	}
	return nil
}

// at returns the set as a revision has it.
func (s *statefulSync) at(cr *appsv1.ControllerRevision) (*appsv1.StatefulSet, error) {
	var raw struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(cr.Data.Raw, &raw); err != nil {
		return nil, err
	}
	set := s.set.DeepCopy()
	set.Spec.Template = raw.Spec.Template
	return set, nil
}

// member makes the Pod with an ordinal, at the revision that it is to have.
func (s *statefulSync) member(n int) (*corev1.Pod, error) {
	cr := s.update
	if u := s.set.Spec.UpdateStrategy; u.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		partition := s.first() + int(s.set.Status.CurrentReplicas)
		if u.RollingUpdate != nil {
			partition = s.first() + int(*u.RollingUpdate.Partition)
		}
		if n < partition {
			cr = s.current
		}
	}
	set, err := s.at(cr)
	if err != nil {
		return nil, err
	}
	pod, err := upstream.GetPodFromTemplate(&set.Spec.Template, set, metav1.NewControllerRef(set, statefulSetKind))
	if err != nil {
		return nil, err
	}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", set.Name, n), set.Namespace
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(n)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = cr.Name
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	var volumes []corev1.Volume
	for _, pvc := range s.claimsOf(n) {
		volumes = append(volumes, corev1.Volume{
			Name:         strings.TrimSuffix(pvc.Name, "-"+pod.Name),
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pvc.Name}},
		})
	}
	for _, v := range pod.Spec.Volumes {
		if !slices.ContainsFunc(volumes, func(o corev1.Volume) bool { return o.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	pod.Spec.Volumes = volumes
	return pod, nil
}

func (s *statefulSync) first() int {
	if s.set.Spec.Ordinals != nil {
		return int(s.set.Spec.Ordinals.Start)
	}
	return 0
}

// claimsOf returns the claims of the member with an ordinal.
func (s *statefulSync) claimsOf(n int) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for _, t := range s.set.Spec.VolumeClaimTemplates {
		pvc := t.DeepCopy()
		pvc.Name, pvc.Namespace = fmt.Sprintf("%s-%s-%d", t.Name, s.set.Name, n), s.set.Namespace
		if pvc.Labels == nil {
			pvc.Labels = map[string]string{}
		}
		maps.Copy(pvc.Labels, s.set.Spec.Selector.MatchLabels)
		out = append(out, pvc)
	}
	return out
}

// truncate deletes revisions beyond spec.revisionHistoryLimit that nothing uses.
func (s *statefulSync) truncate(pods []*corev1.Pod) error {
	live := map[string]bool{s.current.Name: true, s.update.Name: true}
	for _, p := range pods {
		live[p.Labels[appsv1.StatefulSetRevisionLabel]] = true
	}
	old := slices.DeleteFunc(slices.Clone(s.in.Revisions), func(cr *appsv1.ControllerRevision) bool { return live[cr.Name] })
	history.SortControllerRevisions(old)
	for range len(old) - int(*s.set.Spec.RevisionHistoryLimit) {
		if _, err := s.do(remove(old[0], metav1.DeleteOptions{})); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		old = old[1:]
	}
	return nil
}
