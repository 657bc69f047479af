package serve

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// form is the shape in which a client wants its answer.
type form struct {
	kind    string // "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"
	include rowObjects
	pretty  bool
}

// formOf reads the Accept header: the first media type that this server can write.
func formOf(r *http.Request) form {
	f := form{include: rowObjects(r.URL.Query().Get("includeObject"))}
	// As the real server: people with curl or a browser get line breaks.
	agent := r.UserAgent()
	f.pretty = truthy(r.URL.Query().Get("pretty")) ||
		r.URL.Query().Get("pretty") == "" && (strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0"))
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		if as := params["as"]; as != "" {
			if media == runtime.ContentTypeJSON && params["g"] == metav1.GroupName && (params["v"] == "v1" || params["v"] == "v1beta1") {
				f.kind = as
				return f
			}
			continue
		}
		if media == runtime.ContentTypeJSON || media == "*/*" || media == "application/*" {
			return f
		}
	}
	return f
}

// transform brings an object into the form that the client wants.
func (f form) transform(obj runtime.Object, headers bool) (runtime.Object, error) {
	if _, ok := obj.(*metav1.Status); ok {
		return obj, nil
	}
	switch f.kind {
	case "Table":
		return table(obj, f.include, headers)
	case "PartialObjectMetadata":
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		p := meta.AsPartialObjectMetadata(m)
		p.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(f.kind))
		return p, nil
	case "PartialObjectMetadataList":
		return partialList(obj)
	}
	return withKind(obj), nil
}

func partialList(obj runtime.Object) (runtime.Object, error) {
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{}}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	if m, err := meta.ListAccessor(obj); err == nil {
		list.ResourceVersion, list.Continue, list.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	}
	return list, meta.EachListItem(obj, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		p := meta.AsPartialObjectMetadata(m)
		p.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		list.Items = append(list.Items, *p)
		return nil
	})
}

// withKind fills in apiVersion and kind, which objects in the cluster do not carry. obj
// is ours already: the shift has copied it.
func withKind(obj runtime.Object) runtime.Object {
	if !obj.GetObjectKind().GroupVersionKind().Empty() {
		return obj
	}
	if k, ok := kube.KindOf(obj); ok {
		obj.GetObjectKind().SetGroupVersionKind(k.Kind)
	} else if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return obj
}

func versionOf(obj runtime.Object) schema.GroupVersion {
	if k, ok := kube.KindOf(obj); ok {
		return k.Kind.GroupVersion()
	}
	if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil && len(kinds) > 0 {
		return kinds[0].GroupVersion()
	}
	return obj.GetObjectKind().GroupVersionKind().GroupVersion()
}

// object is the answer's object, for the client's clock: a list is put together here.
func (h *Handler) object(req wire.Request, a wire.Answer) (runtime.Object, error) {
	if req.Verb != wire.List && a.Object != nil {
		return h.shift().Outbound(a.Object), nil
	}
	kind, ok := kube.ByResource(req.Resource)
	if !ok {
		if a.Object != nil {
			return h.shift().Outbound(a.Object), nil
		}
		return nil, fmt.Errorf("the server has no list of %s", req.Resource.Resource)
	}
	list := kind.NewList()
	items := make([]runtime.Object, len(a.Items))
	sh := h.shift()
	for i, item := range a.Items {
		items[i] = sh.Outbound(item)
		items[i].GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(strconv.FormatInt(a.Revision, 10))
	m.SetContinue(a.Continue)
	if a.Continue != "" && a.Remain > 0 {
		m.SetRemainingItemCount(&a.Remain)
	}
	return list, nil
}

// write sends an answer.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, req wire.Request, a wire.Answer) {
	for _, text := range a.Warnings {
		if v, err := net.NewWarningHeader(299, "", text); err == nil {
			w.Header().Add("Warning", v)
		}
	}
	f := formOf(r)
	if a.Transport != "" {
		unreachable(w, r, a.Transport)
		return
	}
	if a.Status != nil {
		writeStatus(w, *a.Status, a.Code, f.pretty)
		return
	}
	if a.Body != nil {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(codeOf(a, http.StatusOK))
		_, _ = w.Write(a.Body)
		return
	}
	obj, err := h.object(req, a)
	if err == nil {
		obj, err = f.transform(obj, true)
	}
	if err != nil {
		writeStatus(w, errors.NewInternalError(err).Status(), 0, f.pretty)
		return
	}
	code := codeOf(a, http.StatusOK)
	if a.Code == 0 && req.Verb == wire.Create {
		code = http.StatusCreated
	}
	writeObject(w, obj, code, f.pretty)
}

func codeOf(a wire.Answer, otherwise int) int {
	if a.Code != 0 {
		return a.Code
	}
	return otherwise
}

func writeStatus(w http.ResponseWriter, s metav1.Status, code int, pretty bool) {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if code == 0 {
		code = int(s.Code)
	}
	if code == 0 {
		code = http.StatusInternalServerError
	}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	writeObject(w, &s, code, pretty)
}

func writeObject(w http.ResponseWriter, obj any, code int, pretty bool) {
	if r := reflect.ValueOf(obj); r.Kind() == reflect.Pointer && r.IsNil() {
		code, obj = http.StatusInternalServerError, nil
	}
	h := w.Header()
	h.Set("Content-Type", runtime.ContentTypeJSON)
	h.Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	if pretty {
		enc.SetIndent("", "  ")
	}
	_ = enc.Encode(obj)
}

// TransportHeader carries the error that a client would have met on its way to an API
// server that does not answer. ChildHeader marks a client that understands it: podwalk's
// own kubectl, which turns it back into the error of a failed dial.
const (
	TransportHeader = "Podwalk-Transport"
	ChildHeader     = "Podwalk-Child"
)

// unreachable tells a client that there is no API server: it hangs up, as far as this
// listener can play that nobody listens.
func unreachable(w http.ResponseWriter, r *http.Request, text string) {
	if r.Header.Get(ChildHeader) != "" {
		w.Header().Set(TransportHeader, text)
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	panic(http.ErrAbortHandler)
}
