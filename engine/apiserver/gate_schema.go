package apiserver

import (
	"fmt"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/resources"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// The schema-validation gate: the kind's own rules. The strategy prepares the object
// (clears a status that a client may not set, counts the generation up), then every field
// is validated. Upstream: registry/rest BeforeCreate and BeforeUpdate.
func (s *Server) validateSchema(f *flight) error {
	row, ok := resources.Get(f.Req.Resource)
	if !ok {
		return notFoundPath(&f.Req)
	}
	var err error
	switch {
	case f.Op == admission.Delete:
		return s.prepareDelete(f, row)
	case f.Op == admission.Create && f.Req.Subresource != "":
		err = s.prepareSubresourceCreate(f, row)
	case f.Op == admission.Create:
		err = s.prepareCreate(f, row)
	default:
		err = s.prepareUpdate(f, row)
	}
	if err != nil {
		return err
	}
	s.hop(f, trace.Hop{Verb: "Validate", Detail: trace.Change{After: snapshotFor(f)}})
	return nil
}

func (s *Server) now() metav1.Time { return metav1.NewTime(s.k.Now().Wall().Truncate(1e9)) }

func (s *Server) prepareCreate(f *flight, row *resources.Resource) error {
	m := f.Object.(metav1.Object)
	m.SetCreationTimestamp(s.now())
	m.SetUID(types.UID(s.uids.UUID()))
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetResourceVersion("")
	m.SetSelfLink("")
	if !row.Namespaced {
		m.SetNamespace("")
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(generateName(m.GetGenerateName(), s.names.Suffix(5)))
		f.Chosen = true
	}
	if err := s.allocate(f, row, nil); err != nil {
		return err
	}
	in, err := row.Internal(f.Object)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	ctx := f.context()
	row.Strategy.PrepareForCreate(ctx, in)
	if errs := rest.ValidateCreate(ctx, in, createStrategy(f, row)); len(errs) != 0 {
		return invalid(row.Kind.Kind.GroupKind(), m.GetName(), errs)
	}
	f.Warnings = append(f.Warnings, row.Strategy.WarningsOnCreate(ctx, in)...)
	row.Strategy.Canonicalize(in)
	f.Object, err = row.External(in)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	f.Action, f.Expect = actPut, 0
	return nil
}

// handwritten hides a strategy's declarative validation.
type handwritten struct{ rest.RESTCreateStrategy }

// createStrategy is the kind's own, for an Event of a component without its declarative
// rules: those only watch over the object's metadata, which the handwritten ones do too.
func createStrategy(f *flight, row *resources.Resource) rest.RESTCreateStrategy {
	if f.Req.Object != nil && row.Storage.Resource == kube.Events {
		return handwritten{row.Strategy}
	}
	return row.Strategy
}

// generateName is k8s.io/apiserver/pkg/storage/names with our random stream.
func generateName(base, suffix string) string {
	const maxGenerated = 63 - 5
	if len(base) > maxGenerated {
		base = base[:maxGenerated]
	}
	return base + suffix
}

// conflict is the answer to a write that is based on an old version.
func conflict(f *flight) error {
	return apierrors.NewConflict(f.Req.Resource.GroupResource(), f.Req.Name,
		fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
}

func (s *Server) prepareUpdate(f *flight, row *resources.Resource) error {
	strategy := rest.RESTUpdateStrategy(row.Strategy)
	if sub := row.Subresources[f.Req.Subresource]; sub != nil {
		strategy = sub
	}
	m, old := f.Object.(metav1.Object), f.Old.(metav1.Object)
	if rv := m.GetResourceVersion(); f.NoVersion {
		if !strategy.AllowUnconditionalUpdate(f.context()) && rv == "" {
			return invalid(row.Kind.Kind.GroupKind(), f.Req.Name, mustHaveVersion())
		}
		m.SetResourceVersion(old.GetResourceVersion())
	} else if rv != strconv.FormatInt(f.OldRev, 10) {
		return conflict(f)
	}
	if uid := m.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(f.Req.Resource.GroupResource(), f.Req.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	if err := s.allocate(f, row, f.Old); err != nil {
		return err
	}
	s.stampConditions(f)
	in, err := row.Internal(f.Object)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	oldIn, err := internalOld(f, row)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := beforeUpdate(f, row, strategy, in, oldIn); err != nil {
		return err
	}
	f.Object, err = row.External(in)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	f.Action, f.Expect = actPut, f.OldRev
	if f.Req.Subresource == "" || f.Req.Subresource == "finalize" {
		s.deleteDuringUpdate(f)
	}
	if f.Action == actPut && same(f, row) {
		f.Action = actNothing
	}
	return nil
}

// stampConditions gives the new conditions of a certificate request our time; upstream's
// strategy would give them that of the wall.
func (s *Server) stampConditions(f *flight) {
	csr, ok := f.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return
	}
	for i := range csr.Status.Conditions {
		c := &csr.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = s.now()
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = s.now()
			for _, o := range f.Old.(*certificatesv1.CertificateSigningRequest).Status.Conditions {
				if o.Type == c.Type && o.Status == c.Status {
					c.LastTransitionTime = o.LastTransitionTime
				}
			}
		}
	}
}

// componentStatus is a status that a component of the cluster reports with a typed object.
func (f *flight) componentStatus() bool {
	return f.Req.Object != nil && f.Req.Subresource == "status"
}

// routine is a sign of life of a component: its status or its lease, by far the most
// frequent writes. Their strategies are asked as always, but what can only be wrong in
// what people write (declarative validation looks at the whole object again, ratcheting
// the unchanged parts) is left out.
func (f *flight) routine() bool {
	return f.componentStatus() || f.Req.Object != nil && f.Req.Resource == kube.Leases
}

// internalOld converts the stored object. Strategies do not write to the old object on
// purpose, but share parts of it with the new one and write there; those of a routine
// write only take from it.
func internalOld(f *flight, row *resources.Resource) (runtime.Object, error) {
	if f.routine() {
		return row.Internal(f.Old)
	}
	return row.Internal(f.Old.DeepCopyObject())
}

// beforeUpdate is k8s.io/apiserver/pkg/registry/rest.BeforeUpdate, with the warnings
// going to the flight.
func beforeUpdate(f *flight, row *resources.Resource, strategy rest.RESTUpdateStrategy, in, old runtime.Object) error {
	ctx := f.context()
	m, was := in.(metav1.Object), old.(metav1.Object)
	m.SetGeneration(was.GetGeneration())
	strategy.PrepareForUpdate(ctx, in, old)
	if m.GetUID() == "" {
		m.SetUID(was.GetUID())
	}
	if t := was.GetCreationTimestamp(); !t.IsZero() {
		m.SetCreationTimestamp(t)
	}
	if t := was.GetDeletionTimestamp(); !t.IsZero() {
		m.SetDeletionTimestamp(t)
	}
	if g := was.GetDeletionGracePeriodSeconds(); g != nil && m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(g)
	}
	var errs field.ErrorList
	if f.routine() {
		errs = strategy.ValidateUpdate(ctx, in, old)
	} else {
		errs = rest.ValidateUpdate(ctx, in, old, strategy)
	}
	if len(errs) > 0 {
		return invalid(row.Kind.Kind.GroupKind(), m.GetName(), errs)
	}
	f.Warnings = append(f.Warnings, strategy.WarningsOnUpdate(ctx, in, old)...)
	strategy.Canonicalize(in)
	return nil
}

// deleteDuringUpdate lets an object go whose last finalizer this update takes away.
func (s *Server) deleteDuringUpdate(f *flight) {
	m, old := f.Object.(metav1.Object), f.Old.(metav1.Object)
	if len(m.GetFinalizers()) > 0 || old.GetDeletionTimestamp() == nil {
		return
	}
	if f.Req.Resource == kube.Namespaces && namespaceHolds(f.Object) {
		return
	}
	if g := old.GetDeletionGracePeriodSeconds(); g == nil || *g == 0 {
		f.Action, f.Result = actDelete, f.Object
	}
}

func mustHaveVersion() field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("metadata").Child("resourceVersion"), uint64(0), "must be specified for an update")}
}
