// Package wire is what travels between a client and the API server: requests, answers
// and watch events, as values. Clients inside the process send typed objects; the HTTP
// edge (apiserver/serve) sends bytes, which the decode gate turns into objects.
package wire

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podwalk/engine/kernel"
	"podwalk/engine/stage"
)

// Verb is the request's verb as authorization sees it: get, list, watch, create,
// update, patch, delete, deletecollection, connect.
type Verb string

// The verbs.
const (
	Get              Verb = "get"
	List             Verb = "list"
	Watch            Verb = "watch"
	Create           Verb = "create"
	Update           Verb = "update"
	Patch            Verb = "patch"
	Delete           Verb = "delete"
	DeleteCollection Verb = "deletecollection"
	Connect          Verb = "connect"
)

// Credential is how a client proves who it is. The zero value is nobody: anonymous.
type Credential struct {
	Token      string // bearer token
	CommonName string // of a client certificate that the cluster's CA signed
	Orgs       []string
	NotAfter   time.Time // of that certificate; zero means that it does not expire
	BadCert    string    // why the certificate is not to be trusted, "" where it is
	// Impersonation headers (kubectl --as).
	AsUser   string
	AsGroups []string
}

// Options are the query parameters that matter.
type Options struct {
	FieldManager    string
	FieldValidation string // Strict, Warn, Ignore or ""
	DryRun          bool
	LabelSelector   string
	FieldSelector   string
	ResourceVersion string
	RVMatch         string // resourceVersionMatch
	Limit           int64
	Continue        string
	SendInitial     bool // sendInitialEvents of a streaming list
	Bookmarks       bool
	Timeout         time.Duration // of a watch
	Delete          *metav1.DeleteOptions
	Params          map[string]string // of logs, exec and other connects
}

// Request is one request. It is never changed after it was sent; the objects it holds
// belong to the API server from then on.
type Request struct {
	ReplyTo    kernel.ActorID  // who gets the Answer and watch events; "" for nobody
	Client     stage.Component // who asks, as the diagrams know it
	UserAgent  string          // "kubectl/v1.37.2 …"
	Tag        any             // comes back in the answer: plain data
	Credential Credential

	Verb        Verb
	Resource    schema.GroupVersionResource // empty for a path such as /healthz
	Subresource string
	Namespace   string
	Name        string
	Path        string // URL path with query, as the HTTP edge got it; in-process clients leave it empty

	Object    runtime.Object  // typed body of an in-process client
	Body      []byte          // body at the HTTP edge
	MediaType string          // of Body
	PatchType types.PatchType // of a patch's Body; with Object set, a patch means: these status fields or labels replace what is there
	Options   Options

	Background bool // a heartbeat or another request that no learner follows
}

// Answer ends a request (a watch's Answer tells that it began, or why it did not).
type Answer struct {
	Tag         any
	Verb        Verb
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	Name        string

	Object   runtime.Object   // what was asked for or written
	Items    []runtime.Object // of a list, by key
	Revision int64            // of the list, or of the write
	Continue string           // token of a list that was cut by Limit
	Remain   int64

	// Body is an answer that is no object: a log, or what a path such as /healthz says. The
	// HTTP edge writes it as it is; where a path's Body is nil, the edge has the document
	// (discovery, OpenAPI, version) and the API server only let the request pass.
	Body []byte

	Code      int            // HTTP code
	Status    *metav1.Status // set when the API server refused
	Transport string         // set when no answer came: "dial tcp 172.30.0.2:6443: connect: connection refused"
	Warnings  []string
	WatchID   uint64
	Hop       uint64 // the hop that decided
}

// ExecResult is what came of a command in a container: as JSON the Body of the kubelet's
// answer to exec, and of the Answer (with Code 101) to the CONNECT that asked for it. Its
// command is Options.Params["command"], the words separated by NUL.
type ExecResult struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Exit   int32  `json:"exit,omitempty"`
	// Error is why the command could not be run at all.
	Error string `json:"error,omitempty"`
}

// Err returns the refusal as client-go would (an *errors.StatusError, so that
// errors.IsConflict and its kin work), a *TransportError, or nil.
func (a Answer) Err() error {
	switch {
	case a.Transport != "":
		return &TransportError{a.Transport}
	case a.Status != nil:
		return &apierrors.StatusError{ErrStatus: *a.Status}
	}
	return nil
}

// TransportError is a request that got no answer.
type TransportError struct{ Text string }

func (e *TransportError) Error() string { return e.Text }

// EventType is the kind of a watch event.
type EventType string

// The watch event types. Closed ends the watch: the client lists again.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
	Error    EventType = "ERROR"
	Closed   EventType = "CLOSED"
)

// WatchEvent is one change, delivered to the actor that watches.
type WatchEvent struct {
	WatchID  uint64
	Tag      any // of the watch request
	Type     EventType
	Resource schema.GroupVersionResource
	Object   runtime.Object // immutable; for Bookmark an object that only has a resourceVersion
	Revision int64
	Status   *metav1.Status // of Error: "too old resource version"
	Initial  bool           // of Bookmark: the initial events have all been sent
}

// CancelWatch tells the API server that a watcher has gone away.
type CancelWatch struct{ WatchID uint64 }
