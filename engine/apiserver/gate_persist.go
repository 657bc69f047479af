package apiserver

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/etcd"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// The persist gate: the write goes to etcd, which answers when it is committed. Until
// then nothing has happened.
func (s *Server) persist(f *flight) error {
	row, _ := resources.Get(f.Req.Resource)
	if f.Req.Options.DryRun || f.Action == actNothing {
		s.written(f, row, etcd.Result{OK: true, Revision: 0, Object: f.stored()})
		return errDone
	}
	t := etcd.Txn{ReplyTo: self, ID: f.ID, Key: row.Key(f.Req.Namespace, f.name()), Expect: f.Expect}
	switch {
	case f.Charged < len(f.Charges):
		t.Key, t.Value, t.Expect = s.charge(f)
	case f.Action == actPut:
		t.Value = f.Object
		if row.Storage.Resource == kube.Events {
			t.TTL = s.cfg.EventTTL
		}
	}
	f.InEtcd = true
	f.Deadline = s.k.Now().Add(s.cfg.WriteTimeout)
	s.armSweep(f.Deadline)
	s.k.Send(kernel.ActorID(stage.Etcd), f.Ahead, t)
	f.Ahead = 0
	return errParked
}

func (f *flight) name() string {
	if f.Req.Name == "" {
		if m, ok := f.Object.(metav1.Object); ok {
			return m.GetName()
		}
	}
	return f.Req.Name
}

// stored is the object that a dry run or an update without change answers with.
func (f *flight) stored() runtime.Object {
	if f.Action == actDelete || f.Object == nil {
		return f.Old
	}
	return f.Object
}

// committed goes on when etcd has answered.
func (s *Server) committed(f *flight, res etcd.Result) {
	f.InEtcd = false
	if f.Charged < len(f.Charges) {
		s.charged(f, res)
		return
	}
	row, _ := resources.Get(f.Req.Resource)
	if res.OK {
		s.recordCommit(f, res)
		s.pump() // here, so that the write is the cause of what its watchers do
		s.written(f, row, res)
		return
	}
	switch {
	case f.Op == admission.Create && f.Req.Subresource == "":
		if f.Chosen && f.Tries < s.cfg.MaxUpdateTries { // another name
			f.Tries++
			f.Object = f.Object.DeepCopyObject() // the first try may still lie in a snapshot
			f.Object.(metav1.Object).SetName("")
			s.again(f, gateSchema)
			return
		}
		s.refuse(f, alreadyExists(f, res.Current))
	case res.Current == nil:
		s.refuse(f, apierrors.NewNotFound(f.Req.Resource.GroupResource(), f.Req.Name))
	case (f.NoVersion || f.Op == admission.Delete) && f.Tries < s.cfg.MaxUpdateTries:
		f.Tries++
		s.hop(f, trace.Hop{From: stage.Etcd, Verb: "txn", Outcome: trace.Retry, Reason: string(metav1.StatusReasonConflict), Message: conflict(f).Error()})
		s.again(f, gateDecode)
	default:
		s.refuse(f, conflict(f))
	}
}

func alreadyExists(f *flight, now *etcd.KV) error {
	err := apierrors.NewAlreadyExists(f.Req.Resource.GroupResource(), f.name())
	if now != nil && now.Value.(metav1.Object).GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

func (s *Server) again(f *flight, g gate) {
	f.Gate = g
	s.k.Send(self, s.latency(g), step{f.ID})
}

func (s *Server) recordCommit(f *flight, res etcd.Result) {
	h := trace.Hop{
		Stage: stage.Persist, To: stage.Etcd, Verb: "put", Revision: res.Revision,
		Detail: trace.Change{Before: f.Old, After: res.Object},
	}
	if f.Action == actDelete {
		h.Verb, h.Detail = "delete", trace.Change{Before: f.Old}
	}
	if f.Req.Subresource == "binding" {
		h.Stage = stage.BindingSaved
	}
	s.hop(f, h)
}

// written answers a write that is done, or goes on with the deletion that follows it.
func (s *Server) written(f *flight, row *resources.Resource, res etcd.Result) {
	if f.AndGone && f.Action == actPut && !f.Req.Options.DryRun {
		f.Action, f.Expect, f.AndGone = actDelete, res.Revision, false
		f.Old = res.Object
		s.again(f, gatePersist)
		return
	}
	code := 200
	if f.Op == admission.Create {
		code = 201
	}
	obj := f.Result
	switch {
	case obj != nil:
	case f.Op == admission.Delete && f.Action == actDelete && !row.ReturnsDeleted:
		obj = deletedStatus(f)
	default:
		obj = row.Served(res.Object)
	}
	if f.Req.Subresource == "scale" {
		obj, _ = resources.ScaleOf(res.Object)
	}
	s.object(f, code, obj, res.Revision)
}

// deletedStatus is what a DELETE answers for most kinds.
func deletedStatus(f *flight) runtime.Object {
	st := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: f.Req.Name, Group: f.Req.Resource.Group, Kind: f.Req.Resource.Resource},
	}
	if m, ok := f.Old.(metav1.Object); ok {
		st.Details.UID = m.GetUID()
	}
	return st
}

// same reports whether an update changes nothing: it is then answered without a write.
func same(f *flight, row *resources.Resource) bool {
	if row.Storage.Kind != row.Kind.Kind {
		return false
	}
	if f.componentStatus() {
		return equality.Semantic.DeepEqual(statusIn(f.Object), statusIn(f.Old))
	}
	return equality.Semantic.DeepEqual(f.Object, f.Old)
}

func statusIn(obj runtime.Object) any {
	return reflect.ValueOf(obj).Elem().FieldByName("Status").Addr().Interface()
}

// park makes a flight wait for etcd: it tries its gate again until the deadline.
func (s *Server) park(f *flight, timeout time.Duration) error {
	if f.Deadline == 0 {
		f.Deadline = s.k.Now().Add(timeout)
	}
	if s.k.Now() >= f.Deadline {
		return s.timeout(f)
	}
	s.k.Send(self, min(s.cfg.PollEtcd, f.Deadline.Sub(s.k.Now())), step{f.ID})
	return errParked
}

// timeout is the literal answer of a server whose etcd says nothing.
func (s *Server) timeout(f *flight) error {
	if f.read() {
		verb := map[wire.Verb]string{wire.Get: "get", wire.List: "get", wire.Watch: "get"}[f.Req.Verb]
		return apierrors.NewGenericServerResponse(504, verb, f.Req.Resource.GroupResource(), f.Req.Name, "", 0, true)
	}
	return apierrors.NewTimeoutError("request did not complete within requested timeout - context deadline exceeded", 0)
}

// armSweep makes sure that somebody looks at the deadlines. One timer serves all: a write
// that is answered in time costs none.
func (s *Server) armSweep(at kernel.Time) {
	if !s.sweeping {
		s.sweeping = true
		s.k.Send(self, at.Sub(s.k.Now()), sweep{})
	}
}

func (s *Server) sweepDeadlines() {
	s.sweeping = false
	next := kernel.Time(0)
	for _, id := range sortedKeys(s.flights) {
		f := s.flights[id]
		if !f.InEtcd {
			continue
		}
		if f.Deadline <= s.k.Now() {
			f.InEtcd = false
			s.refuse(f, s.timeout(f))
		} else if next == 0 || f.Deadline < next {
			next = f.Deadline
		}
	}
	if next != 0 {
		s.armSweep(next)
	}
}
