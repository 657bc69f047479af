// Package serve is the API server's HTTP surface: it turns an HTTP request into the value
// that goes through the gates (package apiserver), and the answer back into HTTP. Real
// clients talk to it: kubectl, curl, client-go.
//
// Modelled as kube-apiserver does it: paths and verbs, JSON with Table and
// PartialObjectMetadata forms (the columns are those of its own printers), watches as
// chunked JSON with bookmarks and initial events, Status errors, Warning headers, protobuf
// request bodies, discovery (aggregated and legacy), OpenAPI v2 and v3, version, health
// and log endpoints.
//
// The cluster has its own clock. All times are moved to the client's clock on the way out
// and back on the way in (shift.go), so that ages come out right.
//
// Left out: CBOR, protobuf answers, HTTP/2 (every watch is a connection), gzip, audit ids.
package serve

import (
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/stage"
)

// Handler serves the Kubernetes API of one cluster.
type Handler struct {
	Backend Backend
	// Client is who the clients of this handler are on the diagrams; kubectl where empty.
	Client stage.Component
	// Verify judges a client certificate; its error is told to the authentication gate.
	Verify func(*x509.Certificate) error
	// Address is the host:port that discovery names.
	Address string
	// Clock is the clients' clock; time.Now where nil.
	Clock func() time.Time
}

var _ http.Handler = (*Handler)(nil)

func (h *Handler) shift() Shift {
	clock := h.Clock
	if clock == nil {
		clock = time.Now
	}
	return NewShift(h.Backend.Now().Wall(), clock())
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := h.parse(r)
	if err != nil {
		status := errors.NewBadRequest(err.Error()).Status()
		if s, ok := err.(errors.APIStatus); ok {
			status = s.Status()
		}
		writeStatus(w, status, 0, formOf(r).pretty)
		return
	}
	switch {
	case req.Resource.Resource == "":
		h.path(w, r, req)
	case req.Verb == wire.Watch:
		h.watch(w, r, req)
	case req.Subresource == "log" && truthy(req.Options.Params["follow"]):
		h.follow(w, r, req)
	case req.Subresource == "exec" || req.Subresource == "attach":
		h.exec(w, r, req)
	default:
		h.write(w, r, req, h.do(r.Context(), req))
	}
}

func (h *Handler) do(ctx context.Context, req wire.Request) wire.Answer {
	return h.Backend.Do(ctx, req)
}
