package apiserver

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"podwalk/engine/apiserver/resources"
)

// decodePatch makes the object that a patch asks for out of the present one. From here on
// a patch is an update, tried again on a conflict unless it names a resourceVersion.
func (s *Server) decodePatch(f *flight, row *resources.Resource) error {
	r := &f.Req
	if err := s.load(f, row); err != nil {
		return err
	}
	if r.Subresource != "" && r.Subresource != "scale" && row.Subresources[r.Subresource] == nil {
		return notFoundPath(r)
	}
	if r.PatchType == "" && r.Object != nil {
		// A status is about one object, not about the next one of that name.
		was, is := r.Object.(metav1.Object).GetUID(), f.Old.(metav1.Object).GetUID()
		if was != "" && was != is {
			return apierrors.NewConflict(r.Resource.GroupResource(), r.Name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", was, is))
		}
		f.Object = overlay(f.Old, r.Object, r.Subresource == "status")
		f.NoVersion = true
		return nil
	}
	base, gvk, into := f.Old, row.Kind.Kind, runtime.Object(row.New())
	if r.Subresource == "scale" {
		scale, ok := resources.ScaleOf(f.Old)
		if !ok {
			return notFoundPath(r)
		}
		base, gvk, into = scale, scaleKind, &autoscalingv1.Scale{}
	}
	body, err := encode(base, gvk)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	patched, err := applyPatch(r.PatchType, body, r.Body, into)
	if err != nil {
		return err
	}
	obj, warnings, err := decodeBody(patched, runtime.ContentTypeJSON, r.Options.FieldValidation, gvk, into)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	legacyscheme.Scheme.Default(obj)
	f.NoVersion = !namesVersion(r.Body)
	if scale, ok := obj.(*autoscalingv1.Scale); ok {
		if f.NoVersion {
			scale.ResourceVersion = ""
		}
		return s.applyScale(f, scale)
	}
	m := obj.(metav1.Object)
	if m.GetName() != r.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), r.Name))
	}
	f.Object = obj
	return nil
}

// overlay is an in-process patch: the status, or the labels, annotations, owners and
// finalizers of `by`, put over old.
func overlay(old, by runtime.Object, status bool) runtime.Object {
	if status {
		obj := by.DeepCopyObject()
		to, from := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
		for i := range to.NumField() {
			if to.Type().Field(i).Name != "Status" {
				to.Field(i).Set(from.Field(i))
			}
		}
		return obj
	}
	obj := shallow(old)
	m, from := obj.(metav1.Object), by.DeepCopyObject().(metav1.Object)
	m.SetLabels(merged(copied(m.GetLabels()), from.GetLabels()))
	m.SetAnnotations(merged(copied(m.GetAnnotations()), from.GetAnnotations()))
	if from.GetOwnerReferences() != nil {
		m.SetOwnerReferences(from.GetOwnerReferences())
	}
	if from.GetFinalizers() != nil {
		m.SetFinalizers(from.GetFinalizers())
	}
	return obj
}

// shallow copies an object's own fields; what they point to is shared.
func shallow(obj runtime.Object) runtime.Object {
	v := reflect.ValueOf(obj).Elem()
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.Interface().(runtime.Object)
}

func copied(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	return merged(make(map[string]string, len(m)), m)
}

func encode(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return json.Marshal(obj)
}

// applyPatch applies the client's patch to the encoded object.
func applyPatch(kind types.PatchType, base, patch []byte, into runtime.Object) ([]byte, error) {
	var out []byte
	var err error
	switch kind {
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch); err == nil {
			if out, err = p.Apply(base); err != nil {
				return nil, apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
			}
		}
	case types.MergePatchType:
		out, err = jsonpatch.MergePatch(base, patch)
	case types.StrategicMergePatchType:
		out, err = strategicpatch.StrategicMergePatch(base, patch, into)
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 415, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join([]string{
				string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}, ", ")),
		}}
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// namesVersion reports whether a patch insists on a resourceVersion.
func namesVersion(patch []byte) bool {
	var p struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return json.Unmarshal(patch, &p) == nil && p.Metadata.ResourceVersion != ""
}
