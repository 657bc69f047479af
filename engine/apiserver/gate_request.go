package apiserver

import (
	"net/http"
	"strings"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/trace"
)

// The request gate: the connection is there and the request has been read.
func (s *Server) request(f *flight) error {
	r := &f.Req
	if row, ok := resources.Get(r.Resource); ok && row.Deprecation != "" {
		f.Warnings = append(f.Warnings, row.Deprecation)
	}
	s.hop(f, trace.Hop{
		From: r.Client, Verb: method(r),
		Detail: trace.HTTP{Method: method(r), Path: path(r), Body: r.Body},
	})
	return nil
}

var methods = map[wire.Verb]string{
	wire.Get: http.MethodGet, wire.List: http.MethodGet, wire.Watch: http.MethodGet, wire.Create: http.MethodPost,
	wire.Update: http.MethodPut, wire.Patch: http.MethodPatch, wire.Delete: http.MethodDelete,
	wire.DeleteCollection: http.MethodDelete, wire.Connect: http.MethodGet,
}

func method(r *wire.Request) string { return methods[r.Verb] }

// path returns the request's path; for an in-process client it is put together.
func path(r *wire.Request) string {
	if r.Path != "" {
		return r.Path
	}
	var b strings.Builder
	if r.Resource.Group == "" {
		b.WriteString("/api/" + r.Resource.Version)
	} else {
		b.WriteString("/apis/" + r.Resource.Group + "/" + r.Resource.Version)
	}
	if r.Namespace != "" {
		b.WriteString("/namespaces/" + r.Namespace)
	}
	b.WriteString("/" + r.Resource.Resource)
	if r.Name != "" && (r.Verb != wire.Create || r.Subresource != "") {
		b.WriteString("/" + r.Name)
	}
	if r.Subresource != "" {
		b.WriteString("/" + r.Subresource)
	}
	return b.String()
}
