package controllers

import (
	"bytes"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/kubernetes/pkg/controller"
	labelsutil "k8s.io/kubernetes/pkg/util/labels"

	"podwalk/engine/kube"
)

// revisionData is the part of a DaemonSet or StatefulSet that a ControllerRevision keeps.
func revisionData(obj kube.Object) ([]byte, error) {
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var raw struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	raw.Spec.Template["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": raw.Spec.Template}})
}

// history finds the revision of the current template, or writes it, and the older ones.
func (s *daemonSync) history(revisions []*appsv1.ControllerRevision) (current *appsv1.ControllerRevision, old []*appsv1.ControllerRevision, err error) {
	data, err := revisionData(s.ds)
	if err != nil {
		return nil, nil, err
	}
	newest := int64(0)
	for _, cr := range revisions {
		if bytes.Equal(cr.Data.Raw, data) {
			current = cr
			continue
		}
		old = append(old, cr)
		newest = max(newest, cr.Revision)
	}
	if current == nil {
		current, err = s.newRevision(data, newest+1)
		return current, old, err
	}
	if current.Revision <= newest {
		up := current.DeepCopy()
		up.Revision = newest + 1
		req := update(up)
		req.Background = true
		_, err = s.do(req)
	}
	return current, old, err
}

func (s *daemonSync) newRevision(data []byte, n int64) (*appsv1.ControllerRevision, error) {
	hash := upstream.ComputeHash(&s.ds.Spec.Template, s.ds.Status.CollisionCount)
	req := create(&appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.ds.Name + "-" + hash, Namespace: s.ds.Namespace, Annotations: s.ds.Annotations,
			Labels:          labelsutil.CloneAndAddLabel(s.ds.Spec.Template.Labels, appsv1.DefaultDaemonSetUniqueLabelKey, hash),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.ds, daemonSetKind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: n,
	})
	req.Background = true
	ans, err := s.do(req)
	if err != nil {
		return nil, err
	}
	return ans.Object.(*appsv1.ControllerRevision), nil
}

// cleanup deletes old revisions beyond spec.revisionHistoryLimit that no Pod has.
func (s *daemonSync) cleanup(old []*appsv1.ControllerRevision) error {
	excess := len(old) - int(*s.ds.Spec.RevisionHistoryLimit)
	slices.SortFunc(old, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	live := map[string]bool{}
	for _, pods := range s.byNode {
		for _, p := range pods {
			live[p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] = true
		}
	}
	for _, cr := range old {
		if excess <= 0 {
			break
		}
		if live[cr.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] {
			continue
		}
		if _, err := s.do(remove(cr, metav1.DeleteOptions{})); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		excess--
	}
	return nil
}
