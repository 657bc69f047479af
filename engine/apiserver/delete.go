package apiserver

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// Deletion. Upstream (registry/rest BeforeDelete, registry/generic/registry Delete) reads
// the wall clock, so these are its rules again: an object with a grace period is marked
// first and goes later, one with finalizers waits for them, everything else goes at once.

func (s *Server) decodeDelete(f *flight, row *resources.Resource) error {
	if f.Req.Subresource != "" {
		return apierrors.NewMethodNotSupported(f.Req.Resource.GroupResource(), "delete")
	}
	if err := s.load(f, row); err != nil {
		return err
	}
	f.Delete = f.Req.Options.Delete.DeepCopy()
	if f.Delete == nil {
		f.Delete = &metav1.DeleteOptions{}
	}
	if errs := validation.ValidateDeleteOptions(f.Delete); len(errs) > 0 {
		return invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return nil
}

// prepareDelete decides how the object goes: marked, or at once.
func (s *Server) prepareDelete(f *flight, row *resources.Resource) error {
	if err := checkPreconditions(f, row); err != nil {
		return err
	}
	f.Expect, f.AndGone = f.OldRev, false
	f.Object = shallow(f.Old) // only its metadata will change, field by field
	if f.Req.Resource == kube.Namespaces {
		s.prepareNamespaceDelete(f)
		return nil
	}
	m := f.Object.(metav1.Object)
	graceful, pending, err := s.graceful(f, row, m)
	if err != nil {
		return err
	}
	if pending {
		f.Action, f.Object = actNothing, nil
		return nil
	}
	setGCFinalizers(m, f.Delete, row, f)
	switch {
	case !graceful && len(m.GetFinalizers()) == 0:
		f.Action, f.Object = actDelete, nil
	case !graceful:
		s.markAsDeleting(m)
		f.Action = actPut
	default:
		f.Action = actPut
		f.AndGone = len(m.GetFinalizers()) == 0 && *f.Delete.GracePeriodSeconds == 0
	}
	if f.Action == actPut {
		if stored, err := row.Stored(f.Object); err == nil {
			f.Object = stored
		}
		if same(f, row) {
			f.Action = actNothing
		}
	}
	s.hop(f, trace.Hop{Verb: "BeforeDelete"})
	return nil
}

func checkPreconditions(f *flight, row *resources.Resource) error {
	p := f.Delete.Preconditions
	if p == nil {
		return nil
	}
	m := f.Old.(metav1.Object)
	gr := schema.GroupResource{Group: row.Kind.Kind.Group, Resource: row.Kind.Kind.Kind}
	if p.UID != nil && *p.UID != m.GetUID() {
		return &storeError{apierrors.NewConflict(gr, m.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, m.GetUID()))}
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return &storeError{apierrors.NewConflict(gr, m.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, m.GetResourceVersion()))}
	}
	return nil
}

// graceful is upstream's BeforeDelete with our clock: whether the object is to be marked
// (m is), or is marked already and nothing is left to do.
func (s *Server) graceful(f *flight, row *resources.Resource, m metav1.Object) (graceful, pending bool, err error) {
	o := f.Delete
	if g := o.GracePeriodSeconds; g != nil && *g < 0 {
		o.GracePeriodSeconds = new(int64)
		*o.GracePeriodSeconds = 1
	}
	strategy, ok := any(row.Strategy).(rest.RESTGracefulDeleteStrategy)
	if !ok {
		return false, false, nil
	}
	if m.GetDeletionTimestamp() != nil {
		return s.shorten(o, m)
	}
	in, err := row.Internal(f.Old) // which is only looked at
	if err != nil {
		return false, false, apierrors.NewInternalError(err)
	}
	if !strategy.CheckGracefulDelete(f.context(), in, o) {
		return false, false, nil
	}
	if o.GracePeriodSeconds == nil {
		return false, false, apierrors.NewInternalError(fmt.Errorf("options.GracePeriodSeconds should not be nil"))
	}
	at := metav1.NewTime(s.now().Add(time.Duration(*o.GracePeriodSeconds) * time.Second))
	grace := *o.GracePeriodSeconds
	m.SetDeletionTimestamp(&at)
	m.SetDeletionGracePeriodSeconds(&grace)
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	return true, false, nil
}

// shorten handles a further DELETE of an object that is on its way out: the grace period
// can only become shorter.
func (s *Server) shorten(o *metav1.DeleteOptions, m metav1.Object) (graceful, pending bool, err error) {
	have := m.GetDeletionGracePeriodSeconds()
	if have == nil || *have == 0 {
		return false, false, nil
	}
	if o.GracePeriodSeconds == nil {
		o.GracePeriodSeconds = have
		return false, true, nil
	}
	period := *o.GracePeriodSeconds
	if period >= *have {
		return false, true, nil
	}
	at := metav1.NewTime(m.GetDeletionTimestamp().Add(time.Duration(period-*have) * time.Second))
	if now := s.now(); at.Before(&now) {
		at = now
		if period != 0 {
			period = 1
		}
	}
	m.SetDeletionTimestamp(&at)
	m.SetDeletionGracePeriodSeconds(&period)
	return true, false, nil
}

func (s *Server) markAsDeleting(m metav1.Object) {
	if m.GetDeletionTimestamp() == nil && m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	now := s.now()
	if t := m.GetDeletionTimestamp(); t == nil || t.After(now.Time) {
		m.SetDeletionTimestamp(&now)
	}
	m.SetDeletionGracePeriodSeconds(new(int64))
}

// setGCFinalizers puts the garbage collector's finalizers on the object, or takes them
// away, as the propagation policy says.
func setGCFinalizers(m metav1.Object, o *metav1.DeleteOptions, row *resources.Resource, f *flight) {
	policy := rest.DeleteDependents
	if gc, ok := any(row.Strategy).(rest.GarbageCollectionDeleteStrategy); ok {
		policy = gc.DefaultGarbageCollectionPolicy(f.context())
	}
	orphan, foreground := policy == rest.OrphanDependents, false
	switch {
	case policy == rest.Unsupported:
		orphan = false
	case o.OrphanDependents != nil: //nolint:staticcheck // old clients send it
		orphan = *o.OrphanDependents
	case o.PropagationPolicy != nil:
		orphan = *o.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *o.PropagationPolicy == metav1.DeletePropagationForeground
	default:
		for _, x := range m.GetFinalizers() {
			if x == metav1.FinalizerOrphanDependents || x == metav1.FinalizerDeleteDependents {
				orphan, foreground = x == metav1.FinalizerOrphanDependents, x == metav1.FinalizerDeleteDependents
				break
			}
		}
	}
	var keep []string
	for _, x := range m.GetFinalizers() {
		if x != metav1.FinalizerOrphanDependents && x != metav1.FinalizerDeleteDependents {
			keep = append(keep, x)
		}
	}
	if orphan {
		keep = append(keep, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		keep = append(keep, metav1.FinalizerDeleteDependents)
	}
	if !sameSet(keep, m.GetFinalizers()) {
		m.SetFinalizers(keep)
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// prepareNamespaceDelete: a namespace first turns Terminating; the namespace controller
// empties it and takes the finalizer in its spec away.
func (s *Server) prepareNamespaceDelete(f *flight) {
	ns := f.Object.(*corev1.Namespace)
	if ns.DeletionTimestamp.IsZero() {
		now := s.now()
		ns.DeletionTimestamp = &now
		ns.Status.Phase = corev1.NamespaceTerminating
		f.Action = actPut
		return
	}
	if namespaceHolds(ns) || len(ns.Finalizers) > 0 {
		f.Action, f.Object = actNothing, nil
		return
	}
	f.Action, f.Object = actDelete, nil
}

func namespaceHolds(obj runtime.Object) bool {
	ns, ok := obj.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) > 0
}
