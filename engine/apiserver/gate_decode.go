package apiserver

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/trace"
)

// The decode gate: bytes become an object (unknown fields are refused, warned of or
// ignored, as the client asked), API defaults are filled in, and for a write to something
// that exists the present object is read.
func (s *Server) decode(f *flight) error {
	r := &f.Req
	row, ok := resources.Get(r.Resource)
	if !ok {
		return s.reviewOrNotFound(f)
	}
	if r.Verb != wire.Create && s.etcd.Stopped() {
		return s.park(f, s.cfg.WriteTimeout)
	}
	var err error
	switch r.Verb {
	case wire.Create:
		f.Op = admission.Create
		err = s.decodeCreate(f, row)
	case wire.Update:
		f.Op = admission.Update
		err = s.decodeUpdate(f, row)
	case wire.Patch:
		f.Op = admission.Update
		err = s.decodePatch(f, row)
	case wire.Delete:
		f.Op = admission.Delete
		err = s.decodeDelete(f, row)
	case wire.DeleteCollection:
		return s.deleteCollection(f, row)
	default:
		err = apierrors.NewMethodNotSupported(r.Resource.GroupResource(), string(r.Verb))
	}
	if err != nil {
		return err
	}
	if f.Op != admission.Delete {
		s.hop(f, trace.Hop{Verb: "defaulting", Detail: trace.Change{After: snapshotFor(f)}})
	}
	return nil
}

// snapshotFor is a copy for the trace: the flight's own object still changes.
func snapshotFor(f *flight) runtime.Object {
	if f.Level != full || f.Object == nil {
		return nil
	}
	return f.Object.DeepCopyObject()
}

func (s *Server) decodeCreate(f *flight, row *resources.Resource) error {
	r := &f.Req
	if r.Subresource != "" {
		return s.decodeSubresourceCreate(f, row)
	}
	if err := s.body(f, row.Kind.Kind, row.New()); err != nil {
		return err
	}
	m := f.Object.(metav1.Object)
	want := rest.ExpectedNamespaceForScope(r.Namespace, row.Namespaced)
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(want, m)
}

func (s *Server) decodeUpdate(f *flight, row *resources.Resource) error {
	r := &f.Req
	if r.Subresource == "scale" {
		return s.decodeScale(f, row)
	}
	if r.Subresource != "" && row.Subresources[r.Subresource] == nil {
		return notFoundPath(r)
	}
	if err := s.body(f, row.Kind.Kind, row.New()); err != nil {
		return err
	}
	m := f.Object.(metav1.Object)
	if m.GetName() != r.Name {
		if m.GetName() != "" {
			return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), r.Name))
		}
		m.SetName(r.Name)
	}
	want := rest.ExpectedNamespaceForScope(r.Namespace, row.Namespaced)
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(want, m); err != nil {
		return err
	}
	f.NoVersion = m.GetResourceVersion() == "" || m.GetResourceVersion() == "0"
	err := s.load(f, row)
	if apierrors.IsNotFound(err) && r.Subresource == "" && row.Strategy.AllowCreateOnUpdate(f.context()) && m.GetUID() == "" {
		f.Op = admission.Create
		m.SetResourceVersion("")
		return nil
	}
	return err
}

// storeError is what upstream's store finds out when it reads what it is to change: there
// is no such object, or it is not the one that was meant. The request got as far as the
// persist gate.
type storeError struct{ *apierrors.StatusError }

// load reads the present object into Old.
func (s *Server) load(f *flight, row *resources.Resource) error {
	kv, ok := s.etcd.Get(row.Key(f.Req.Namespace, f.Req.Name))
	if !ok {
		return &storeError{apierrors.NewNotFound(f.Req.Resource.GroupResource(), f.Req.Name)}
	}
	f.Old, f.OldRev = row.Served(kv.Value), kv.ModRev
	return nil
}

// body fills f.Object from the request, with defaults.
func (s *Server) body(f *flight, gvk schema.GroupVersionKind, into runtime.Object) error {
	r := &f.Req
	if r.Object != nil {
		// A copy: the request may still lie in a snapshot's queue.
		f.Object = r.Object.DeepCopyObject()
		f.Object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		legacyscheme.Scheme.Default(f.Object)
		return nil
	}
	obj, warnings, err := decodeBody(r.Body, r.MediaType, r.Options.FieldValidation, gvk, into)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	f.Object = obj
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	legacyscheme.Scheme.Default(obj)
	return nil
}

// decodeBody decodes strictly. Upstream: k8s.io/apiserver/pkg/endpoints/handlers.
func decodeBody(body []byte, mediaType, validation string, gvk schema.GroupVersionKind, into runtime.Object) (runtime.Object, []string, error) {
	mt, _, _ := strings.Cut(mediaType, ";")
	mt = strings.TrimSpace(mt)
	if mt == "" {
		mt = runtime.ContentTypeJSON
	}
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), mt)
	if !ok {
		return nil, nil, apierrors.NewGenericServerResponse(415, "", gvk.GroupVersion().WithResource("").GroupResource(), "",
			fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(mediaTypes(), ", ")), 0, true)
	}
	decoder := info.Serializer
	if validation != metav1.FieldValidationIgnore && info.StrictSerializer != nil {
		decoder = info.StrictSerializer
	}
	obj, got, err := decoder.Decode(body, &gvk, into)
	var warnings []string
	if strict, isStrict := runtime.AsStrictDecodingError(err); isStrict && obj != nil {
		if validation == metav1.FieldValidationStrict {
			return nil, nil, cannotHandle(err, got, body)
		}
		for _, e := range strict.Errors() {
			warnings = append(warnings, e.Error())
		}
		err = nil
	}
	if err != nil {
		return nil, nil, cannotHandle(err, got, body)
	}
	if got != nil && *got != gvk {
		if got.GroupVersion() != gvk.GroupVersion() {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got.GroupVersion(), gvk.GroupVersion()))
		}
		return nil, nil, cannotHandle(fmt.Errorf("no kind %q is expected here", got.Kind), &gvk, body)
	}
	return obj, warnings, nil
}

func mediaTypes() []string {
	var out []string
	for _, i := range legacyscheme.Codecs.SupportedMediaTypes() {
		out = append(out, i.MediaType)
	}
	return out
}

// cannotHandle is upstream's transformDecodeError.
func cannotHandle(err error, gvk *schema.GroupVersionKind, body []byte) error {
	if gvk != nil && len(gvk.Kind) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, gvk.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", "", err, summary(body)))
}

func summary(body []byte) string {
	const n = 30
	if len(body) > n {
		return fmt.Sprintf("%x ...", body[:n])
	}
	return fmt.Sprintf("%x", body)
}

func notFoundPath(r *wire.Request) error {
	return apierrors.NewGenericServerResponse(404, strings.ToLower(method(r)), r.Resource.GroupResource(), r.Name, "404 page not found", 0, true)
}
