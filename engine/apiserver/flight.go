package apiserver

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// gate is where a request in flight stands.
type gate int

// The gates in order.
const (
	gateRequest gate = iota
	gateAuthentication
	gateAuthorization
	gateDecode
	gateMutating
	gateSchema
	gateValidating
	gatePersist
	gateRead // get, list and watch come here after authorization
	gateConnect
)

var gateStage = map[gate]stage.ID{
	gateRequest: stage.Request, gateAuthentication: stage.Authentication, gateAuthorization: stage.Authorization,
	gateDecode: stage.Decode, gateMutating: stage.MutatingAdmission, gateSchema: stage.SchemaValidation,
	gateValidating: stage.ValidatingAdmission, gatePersist: stage.Persist, gateRead: stage.Request, gateConnect: stage.Request,
}

// level is how much of a request the trace tells.
type level int

const (
	background level = iota // refusals only, outside the focus
	brief                   // the commit, and refusals
	full                    // every gate
)

// action is what the persist gate is to do.
type action int

const (
	actPut action = iota
	actDelete
	actNothing // the object is already as it should be, or a dry run
)

// flight is one request between two gates: plain data, so that a run can be stopped,
// copied and hashed with requests under way.
type flight struct {
	ID    uint64
	Req   wire.Request // never changed
	Gate  gate
	Level level
	Named string // what the body names, as long as it is not decoded; for the trace
	Since kernel.Time
	// Ahead is the time that the gates of a background request have taken so far; they
	// run in one turn, since nobody looks at them one by one.
	Ahead time.Duration

	User      *user.DefaultInfo
	Op        admission.Operation
	Object    runtime.Object // ours to change until it is stored; of the served version
	Old       runtime.Object // immutable
	OldRev    int64
	Action    action
	Expect    int64
	NoVersion bool // the client gave no resourceVersion: a conflict is tried again
	Tries     int
	// Result is what the answer shows, where it is not the stored object.
	Result   runtime.Object
	Delete   *metav1.DeleteOptions
	AndGone  bool // the object is deleted right after this update
	Warnings []string
	Charges  []runtime.Object // ResourceQuotas with the usage that this request adds
	Charged  int              // how many of them are written
	InEtcd   bool             // waits for etcd's result
	Deadline kernel.Time
	Chosen   bool   // the name was generated
	Parent   uint64 // the deletecollection that this deletion belongs to
	Children int    // of a deletecollection: the deletions that are still under way
}

// copyFlight copies what a later gate may change.
func copyFlight(f *flight) *flight {
	c := *f
	if f.Object != nil {
		c.Object = f.Object.DeepCopyObject()
	}
	if f.Delete != nil {
		c.Delete = f.Delete.DeepCopy()
	}
	c.Warnings = append([]string(nil), f.Warnings...)
	return &c
}

func (f *flight) read() bool {
	return f.Req.Verb == wire.Get || f.Req.Verb == wire.List || f.Req.Verb == wire.Watch
}

// after returns the gate that follows.
func (f *flight) after() gate {
	if f.Gate == gateAuthorization {
		switch {
		case f.Req.Verb == wire.Connect, f.Req.Verb == wire.Get && f.Req.Subresource == "log":
			return gateConnect
		case f.read():
			return gateRead
		}
	}
	return f.Gate + 1
}

// traced decides how much of a request the trace tells.
func traced(r *wire.Request) level {
	kubectl := r.Client == stage.Kubectl
	read := r.Verb == wire.Get || r.Verb == wire.List || r.Verb == wire.Watch
	switch {
	case r.Background:
		return background
	case kubectl && (r.Resource.Resource != "" || r.Path == ""):
		return full
	case r.Resource.Resource == "" || read:
		return background
	case r.Resource == kube.Leases || r.Resource == kube.Events || r.Resource == kube.EventsV1:
		return background
	case r.Namespace == metav1.NamespaceSystem || r.Namespace == "kube-node-lease" || r.Namespace == metav1.NamespacePublic:
		return background
	case r.Verb == wire.Create && r.Subresource == "" && (r.Resource == kube.Pods || r.Resource.Group == "apps" || r.Resource.Group == "batch"):
		return full
	}
	return brief
}

func (f *flight) ref() trace.Ref {
	ref := trace.Ref{Namespace: f.Req.Namespace, Name: f.Req.Name}
	if row, ok := resources.Get(f.Req.Resource); ok {
		ref.Kind = row.Kind.Kind.Kind
	}
	if f.Object == nil && ref.Name == "" {
		ref.Name = f.Named
	}
	if m, ok := f.Object.(metav1.Object); ok && ref.Name == "" {
		ref.Name = m.GetName()
		if ref.Name == "" {
			ref.Name = m.GetGenerateName()
		}
	}
	return ref
}

// context is what the strategies of k8s.io/kubernetes want to know about the request.
func (f *flight) context() context.Context {
	ctx := genericapirequest.WithNamespace(context.Background(), f.Req.Namespace)
	if f.User != nil {
		ctx = genericapirequest.WithUser(ctx, f.User)
	}
	gvr := f.Req.Resource
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: string(f.Req.Verb), APIGroup: gvr.Group, APIVersion: gvr.Version,
		Namespace: f.Req.Namespace, Resource: gvr.Resource, Subresource: f.Req.Subresource, Name: f.Req.Name,
	})
}

func (f *flight) attributes(now time.Time) *admission.Attributes {
	row, _ := resources.Get(f.Req.Resource)
	a := &admission.Attributes{
		Operation: f.Op, Resource: f.Req.Resource, Subresource: f.Req.Subresource,
		Namespace: f.Req.Namespace, Name: f.Req.Name, Object: f.Object, OldObject: f.Old,
		User: f.User, DryRun: f.Req.Options.DryRun, Now: now,
	}
	if row != nil {
		a.Kind = row.Kind.Kind
		if !row.Namespaced && f.Req.Resource == kube.Namespaces {
			a.Namespace = f.Req.Name // as upstream: a namespace is in itself
		}
	}
	if f.Op == admission.Delete {
		a.Object = nil
	}
	if m, ok := a.Object.(metav1.Object); ok && a.Name == "" {
		a.Name = m.GetName()
		if row != nil && f.Req.Resource == kube.Namespaces {
			a.Namespace = a.Name
		}
	}
	return a
}
