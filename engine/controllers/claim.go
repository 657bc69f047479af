package controllers

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// split is the inverse of kube.Key for namespaced objects.
func split(key string) (namespace, name string) {
	if ns, name, ok := strings.Cut(key, "/"); ok {
		return ns, name
	}
	return "", key
}

// claim reports whether obj belongs to owner after orphans that the selector matches
// were adopted and children that it does not match any more were released. Upstream:
// BaseControllerRefManager.ClaimObject.
func claim(r *run, owner kube.Object, kind schema.GroupVersionKind, sel labels.Selector, obj kube.Object) (bool, error) {
	matches := sel.Matches(labels.Set(obj.GetLabels()))
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		switch {
		case ref.UID != owner.GetUID():
			return false, nil
		case matches:
			return true, nil
		case owner.GetDeletionTimestamp() != nil:
			return false, nil
		}
		return false, release(r, owner, kind, obj)
	}
	if owner.GetDeletionTimestamp() != nil || !matches || obj.GetDeletionTimestamp() != nil {
		return false, nil
	}
	return adopt(r, owner, kind, obj)
}

func adopt(r *run, owner kube.Object, kind schema.GroupVersionKind, obj kube.Object) (bool, error) {
	k, _ := kube.KindOf(obj)
	r.hop(trace.Hop{
		Verb: fmt.Sprintf("adopt %s %s", k.Kind.Kind, obj.GetName()), Object: ref(kind.Kind, owner),
		Message: fmt.Sprintf("%s %s has no controller and matches the selector of %s %s", k.Kind.Kind, obj.GetName(), kind.Kind, owner.GetName()),
	})
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": []any{metav1.NewControllerRef(owner, kind)}, "uid": obj.GetUID(),
	}})
	if err != nil {
		return false, err
	}
	if _, err = r.do(patch(obj, types.StrategicMergePatchType, body)); apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func release(r *run, owner kube.Object, kind schema.GroupVersionKind, obj kube.Object) error {
	k, _ := kube.KindOf(obj)
	r.hop(trace.Hop{
		Verb: fmt.Sprintf("release %s %s", k.Kind.Kind, obj.GetName()), Object: ref(kind.Kind, owner),
		Message: fmt.Sprintf("%s %s no longer matches the selector of %s %s", k.Kind.Kind, obj.GetName(), kind.Kind, owner.GetName()),
	})
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             obj.GetUID(),
		"ownerReferences": []any{map[string]any{"$patch": "delete", "uid": owner.GetUID()}},
	}})
	if err != nil {
		return err
	}
	_, err = r.do(patch(obj, types.StrategicMergePatchType, body))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // gone, or another one under that name
	}
	return err
}
