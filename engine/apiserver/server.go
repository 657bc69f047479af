package apiserver

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/etcd"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

const self = kernel.ActorID(stage.APIServer)

// Events of the server to itself.
type (
	step     struct{ ID uint64 } // the next gate of a flight
	sweep    struct{}            // give up on flights that etcd did not answer
	endWatch struct{ ID uint64 } // a watch's own timeout
)

// Server is the actor "kube-apiserver".
type Server struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	net   Network
	etcd  *etcd.Etcd
	cfg   Config
	uids  *kernel.Rand
	names *kernel.Rand
	addrs *kernel.Rand

	nextID   uint64
	flights  map[uint64]*flight
	watches  watches
	seen     int64 // revision up to which watchers have been told
	sweeping bool
	down     bool
}

// Network is what the server needs of the cluster's wires, to reach kubelets.
type Network interface {
	Do(replyTo kernel.ActorID, c network.Call)
}

// New returns a server and registers it.
func New(k *kernel.Kernel, log *trace.Log, board *fault.Board, net Network, store *etcd.Etcd, cfg Config) *Server {
	s := &Server{
		k: k, log: log, board: board, net: net, etcd: store, cfg: cfg,
		uids: k.Rand("uids"), names: k.Rand("names"), addrs: k.Rand("service-addresses"),
		flights: map[uint64]*flight{}, watches: newWatches(),
	}
	k.Register(self, s)
	return s
}

// Start makes the server ready: what a new cluster has from the beginning is there, and
// watchers hear of what is written from now on.
func (s *Server) Start() {
	s.bootstrap()
	s.seen = s.etcd.Revision()
}

// Stopped reports whether the process is down.
func (s *Server) Stopped() bool { _, on := s.board.On(fault.APIServerStopped); return on }

// Handle implements kernel.Actor.
func (s *Server) Handle(ev kernel.Event) {
	if s.checkDown(ev) {
		return
	}
	switch ev := ev.(type) {
	case wire.Request:
		s.nextID++
		f := &flight{ID: s.nextID, Req: ev, Level: traced(&ev), Since: s.k.Now()}
		if f.Level == full && ev.Name == "" {
			f.Named = kube.NameIn(ev.Body)
		}
		s.flights[f.ID] = f
		s.run(f)
	case step:
		if f := s.flights[ev.ID]; f != nil {
			s.run(f)
		}
	case etcd.Result:
		if f := s.flights[ev.ID]; f != nil && f.InEtcd {
			s.committed(f, ev)
		}
		s.pump()
	case network.Result:
		s.connected(ev)
	case wire.CancelWatch:
		s.watches.remove(ev.WatchID)
	case endWatch:
		s.closeWatch(ev.ID)
	case sweep:
		s.sweepDeadlines()
	}
}

// checkDown reports whether the process is down and the event therefore lost. A request
// is then refused by the host's kernel, and what was under way is cut off.
func (s *Server) checkDown(ev kernel.Event) bool {
	if !s.Stopped() {
		if s.down { // started again: it sees everything anew
			s.down = false
			s.seen = s.etcd.Revision()
		}
		return false
	}
	if !s.down {
		s.down = true
		s.dropAll()
	}
	switch ev := ev.(type) {
	case wire.Request:
		s.noAnswer(&ev, "dial tcp "+s.cfg.Address+": connect: connection refused")
	case sweep:
		s.sweeping = false
	}
	return true
}

// dropAll is what clients see when the process dies.
func (s *Server) dropAll() {
	for _, id := range sortedKeys(s.flights) {
		s.noAnswer(&s.flights[id].Req, "unexpected EOF")
		delete(s.flights, id)
	}
	for _, id := range s.watches.ids() {
		s.closeWatch(id)
	}
}

func (s *Server) noAnswer(r *wire.Request, text string) {
	a := answerTo(r)
	a.Transport = text
	if traced(r) != background {
		a.Hop = s.log.Record(trace.Hop{
			Stage: stage.Request, From: r.Client, To: stage.APIServer, Verb: method(r), Object: (&flight{Req: *r}).ref(),
			Outcome: trace.Failed, Message: text,
			Detail: trace.HTTP{Method: method(r), Path: path(r)},
		})
	}
	if r.ReplyTo == "" {
		return
	}
	s.k.Send(r.ReplyTo, s.cfg.Answer, a)
}

func answerTo(r *wire.Request) wire.Answer {
	return wire.Answer{Tag: r.Tag, Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}
}

// run takes a flight through its next gate. A gate returns errParked when the flight has
// to wait for another event, errDone when it has been answered, another error to refuse.
func (s *Server) run(f *flight) {
	for {
		err := gates[f.Gate](s, f)
		switch {
		case errors.Is(err, errParked), errors.Is(err, errDone):
			return
		case err != nil:
			s.refuse(f, err)
			return
		}
		f.Gate = f.after()
		d := s.latency(f.Gate)
		if f.Level == background {
			f.Ahead += d
			continue
		}
		s.k.Send(self, d, step{f.ID})
		return
	}
}

var (
	errParked = errors.New("parked")
	errDone   = errors.New("done")
)

var gates map[gate]func(*Server, *flight) error

func init() {
	gates = map[gate]func(*Server, *flight) error{
		gateRequest: (*Server).request, gateAuthentication: (*Server).authenticate, gateAuthorization: (*Server).authorize,
		gateDecode: (*Server).decode, gateMutating: (*Server).mutate, gateSchema: (*Server).validateSchema,
		gateValidating: (*Server).validate, gatePersist: (*Server).persist, gateRead: (*Server).serveRead, gateConnect: (*Server).connect,
	}
}

func (s *Server) latency(g gate) time.Duration {
	c := &s.cfg
	switch g {
	case gateAuthentication:
		return c.Authentication
	case gateAuthorization:
		return c.Authorization
	case gateDecode:
		return c.Decode
	case gateMutating:
		return c.Mutating
	case gateSchema:
		return c.Schema
	case gateValidating:
		return c.Validating
	case gatePersist:
		return c.Persist
	}
	return c.Request
}

// hop records one gate's word about a flight, where the trace is to have it.
func (s *Server) hop(f *flight, h trace.Hop) uint64 {
	if f.Level != full && !h.Bad() && h.Outcome != trace.Retry && h.Revision == 0 {
		return 0
	}
	if f.Level == background && !h.Bad() {
		return 0
	}
	h.Background = f.Level == background
	if h.Stage == "" {
		h.Stage = gateStage[f.Gate]
	}
	if h.From == "" {
		h.From = stage.APIServer
	}
	if h.To == "" {
		h.To = stage.APIServer
	}
	if h.Object == (trace.Ref{}) {
		h.Object = f.ref()
	}
	return s.log.Record(h)
}

// refuse ends a flight with an error of k8s.io/apimachinery/pkg/api/errors.
func (s *Server) refuse(f *flight, err error) {
	status := statusOf(err)
	var plugin *pluginError
	reason := string(status.Reason)
	if errors.As(err, &plugin) {
		reason = plugin.plugin
	}
	outcome := trace.Denied
	if status.Reason == metav1.StatusReasonConflict {
		outcome = trace.Retry
	} else if f.read() && status.Reason == metav1.StatusReasonNotFound {
		outcome = trace.OK // asking is no fault
	} else if status.Code >= 500 {
		outcome = trace.Failed
	}
	h := trace.Hop{Verb: method(&f.Req), Outcome: outcome, Reason: reason, Message: status.Message}
	var found *storeError
	if errors.As(err, &found) {
		f.Gate = gatePersist
	}
	if f.Gate == gatePersist && (status.Code >= 500 || found != nil) {
		h.To = stage.Etcd
	}
	if plugin != nil {
		h.Detail = trace.Admission{Plugins: plugin.verdicts}
	}
	s.hop(f, h)
	a := answerTo(&f.Req)
	a.Status, a.Code, a.Warnings = status, int(status.Code), f.Warnings
	s.finish(f, a)
}

// statusOf turns an error into what the client gets.
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		st := known.Status()
		st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return &st
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown, Message: err.Error(),
	}
}

// object ends a flight with an object.
func (s *Server) object(f *flight, code int, obj runtime.Object, rev int64) {
	a := answerTo(&f.Req)
	a.Object, a.Code, a.Revision, a.Warnings = obj, code, rev, f.Warnings
	if m, ok := obj.(metav1.Object); ok && a.Name == "" {
		a.Name = m.GetName()
	}
	s.finish(f, a)
}
