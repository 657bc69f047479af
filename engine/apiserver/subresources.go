package apiserver

import (
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// Subresources that are created: binding, eviction, token. What they do happens to the
// object that they belong to.

var (
	bindingKind      = corev1.SchemeGroupVersion.WithKind("Binding")
	evictionKind     = policyv1.SchemeGroupVersion.WithKind("Eviction")
	tokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
	scaleKind        = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
)

// setKind names the kind of a subresource's own body.
func setKind(a *admission.Attributes) {
	switch a.Object.(type) {
	case *corev1.Binding:
		a.Kind = bindingKind
	case *policyv1.Eviction:
		a.Kind = evictionKind
	case *authenticationv1.TokenRequest:
		a.Kind = tokenRequestKind
	case *autoscalingv1.Scale:
		a.Kind = scaleKind
	}
}

func (s *Server) decodeSubresourceCreate(f *flight, row *resources.Resource) error {
	r := &f.Req
	type key struct {
		resource schema.GroupVersionResource
		sub      string
	}
	var gvk schema.GroupVersionKind
	var into runtime.Object
	switch (key{r.Resource, r.Subresource}) {
	case key{kube.Pods, "binding"}:
		gvk, into = bindingKind, &corev1.Binding{}
	case key{kube.Pods, "eviction"}:
		gvk, into = evictionKind, &policyv1.Eviction{}
	case key{kube.ServiceAccounts, "token"}:
		gvk, into = tokenRequestKind, &authenticationv1.TokenRequest{}
	default:
		return notFoundPath(r)
	}
	if s.etcd.Stopped() {
		return s.park(f, s.cfg.WriteTimeout)
	}
	if err := s.body(f, gvk, into); err != nil {
		return err
	}
	m := f.Object.(metav1.Object)
	if m.GetNamespace() == "" {
		m.SetNamespace(r.Namespace)
	}
	if m.GetName() == "" && r.Subresource != "binding" {
		m.SetName(r.Name)
	}
	return nil
}

// prepareSubresourceCreate turns the request into a write of the object it belongs to.
func (s *Server) prepareSubresourceCreate(f *flight, row *resources.Resource) error {
	switch o := f.Object.(type) {
	case *corev1.Binding:
		return s.prepareBinding(f, row, o)
	case *policyv1.Eviction:
		return s.prepareEviction(f, row, o)
	case *authenticationv1.TokenRequest:
		return s.prepareToken(f, row, o)
	}
	return notFoundPath(&f.Req)
}

// prepareBinding assigns a Pod to a node. Upstream: registry/core/pod/storage BindingREST.
func (s *Server) prepareBinding(f *flight, row *resources.Resource, b *corev1.Binding) error {
	if b.Name != f.Req.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		return apierrors.NewBadRequest(field.NotSupported(field.NewPath("target", "kind"), b.Target.Kind, []string{"Node", "<empty>"}).Error())
	}
	if b.Target.Name == "" {
		return apierrors.NewBadRequest(field.Required(field.NewPath("target", "name"), "").Error())
	}
	if err := s.load(f, row); err != nil {
		return err
	}
	old := f.Old.(*corev1.Pod)
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, f.Req.Name, fmt.Errorf(format, args...))
	}
	switch {
	case b.UID != "" && b.UID != old.UID:
		return refuse("Precondition failed: UID in precondition: %v, UID in object meta: %v", b.UID, old.UID)
	case old.DeletionTimestamp != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", old.Name)
	case old.Spec.NodeName != "":
		return refuse("pod %v is already assigned to node %q", old.Name, old.Spec.NodeName)
	case len(old.Spec.SchedulingGates) != 0:
		return refuse("pod %v has non-empty .spec.schedulingGates", old.Name)
	}
	pod := shallow(old).(*corev1.Pod)
	pod.Spec.NodeName = b.Target.Name
	pod.Status.NominatedNodeName = ""
	pod.Annotations = merged(copied(pod.Annotations), b.Annotations)
	pod.Labels = merged(copied(pod.Labels), b.Labels)
	pod.Status.Conditions = slices.Clone(pod.Status.Conditions)
	setPodScheduled(pod, s.now())
	f.Object, f.Action, f.Expect = pod, actPut, f.OldRev
	f.NoVersion = true // upstream tries again
	f.Result = success(f)
	return nil
}

func merged(into, from map[string]string) map[string]string {
	if into == nil && len(from) > 0 {
		into = map[string]string{}
	}
	for k, v := range from {
		into[k] = v
	}
	return into
}

// setPodScheduled is podutil.UpdatePodCondition with our clock.
func setPodScheduled(pod *corev1.Pod, now metav1.Time) {
	c := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}
	for i := range pod.Status.Conditions {
		if have := &pod.Status.Conditions[i]; have.Type == c.Type {
			if have.Status == c.Status {
				c.LastTransitionTime = have.LastTransitionTime
			}
			*have = c
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

func success(f *flight) runtime.Object {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: 201}
}

// prepareToken answers with a token; nothing is stored.
func (s *Server) prepareToken(f *flight, row *resources.Resource, t *authenticationv1.TokenRequest) error {
	if err := s.load(f, row); err != nil {
		return err
	}
	sa := f.Old.(*corev1.ServiceAccount)
	if t.Spec.ExpirationSeconds == nil {
		t.Spec.ExpirationSeconds = new(int64)
		*t.Spec.ExpirationSeconds = 3600
	}
	if *t.Spec.ExpirationSeconds < 600 {
		return invalid(tokenRequestKind.GroupKind(), "", field.ErrorList{
			field.Invalid(field.NewPath("spec", "expirationSeconds"), *t.Spec.ExpirationSeconds, "may not specify a duration less than 10 minutes")})
	}
	now := s.k.Now().Wall()
	req := wire.TokenRequest{
		Namespace: sa.Namespace, ServiceAccount: sa.Name, UID: string(sa.UID), Audiences: t.Spec.Audiences,
		IssuedAt: now, ExpiresAt: now.Add(time.Duration(*t.Spec.ExpirationSeconds) * time.Second), ID: s.uids.UUID(),
	}
	if ref := t.Spec.BoundObjectRef; ref != nil && ref.Kind == "Pod" {
		obj, ok := s.Get(kube.Pods, sa.Namespace, ref.Name)
		if !ok {
			return apierrors.NewNotFound(kube.Pods.GroupResource(), ref.Name)
		}
		pod := obj.(*corev1.Pod)
		if ref.UID != "" && ref.UID != pod.UID {
			return apierrors.NewConflict(kube.Pods.GroupResource(), ref.Name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
		}
		req.PodName, req.PodUID, req.NodeName = pod.Name, string(pod.UID), pod.Spec.NodeName
		if node, ok := s.Get(kube.Nodes, "", pod.Spec.NodeName); ok {
			req.NodeUID = string(node.(*corev1.Node).UID)
		}
	}
	if s.cfg.Tokens == nil {
		return apierrors.NewInternalError(fmt.Errorf("no token issuer is configured"))
	}
	token, err := s.cfg.Tokens.Issue(req)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	t.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(req.ExpiresAt.Truncate(time.Second))}
	t.CreationTimestamp = s.now()
	f.Action, f.Result = actNothing, t
	return nil
}

// decodeScale turns a new scale into an update of the workload.
func (s *Server) decodeScale(f *flight, row *resources.Resource) error {
	if err := s.load(f, row); err != nil {
		return err
	}
	if _, ok := resources.ScaleOf(f.Old); !ok {
		return notFoundPath(&f.Req)
	}
	if err := s.body(f, scaleKind, &autoscalingv1.Scale{}); err != nil {
		return err
	}
	return s.applyScale(f, f.Object.(*autoscalingv1.Scale))
}

func (s *Server) applyScale(f *flight, scale *autoscalingv1.Scale) error {
	if scale.Spec.Replicas < 0 {
		return invalid(scaleKind.GroupKind(), f.Req.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0")})
	}
	if scale.Name != "" && scale.Name != f.Req.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", scale.Name, f.Req.Name))
	}
	obj := resources.SetScale(f.Old, scale.Spec.Replicas)
	m := obj.(metav1.Object)
	m.SetResourceVersion(scale.ResourceVersion)
	f.NoVersion = scale.ResourceVersion == ""
	if uid := scale.UID; uid != "" {
		m.SetUID(types.UID(uid))
	}
	f.Object = obj
	return nil
}

// prepareEviction deletes a Pod unless a disruption budget forbids it.
func (s *Server) prepareEviction(f *flight, row *resources.Resource, e *policyv1.Eviction) error {
	if err := s.load(f, row); err != nil {
		return err
	}
	pod := f.Old.(*corev1.Pod)
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodPending && pod.DeletionTimestamp == nil {
		if err := s.checkBudgets(pod); err != nil {
			return err
		}
	}
	f.Delete = e.DeleteOptions.DeepCopy()
	if f.Delete == nil {
		f.Delete = &metav1.DeleteOptions{}
	}
	if err := s.prepareDelete(f, row); err != nil {
		return err
	}
	if marked, ok := f.Object.(*corev1.Pod); ok && f.Action == actPut {
		marked.Status.Conditions = append(marked.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, ObservedGeneration: marked.Generation, Status: corev1.ConditionTrue,
			Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", LastTransitionTime: s.now(),
		})
	}
	f.NoVersion, f.Result = true, success(f)
	return nil
}

func (s *Server) checkBudgets(pod *corev1.Pod) error {
	var budgets []*policyv1.PodDisruptionBudget
	for _, obj := range s.List(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), pod.Namespace) {
		b := obj.(*policyv1.PodDisruptionBudget)
		if sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && sel.Matches(labels.Set(pod.Labels)) {
			budgets = append(budgets, b)
		}
	}
	if len(budgets) > 1 {
		return apierrors.NewInternalError(fmt.Errorf("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	for _, b := range budgets {
		if b.Status.DisruptionsAllowed > 0 {
			continue
		}
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    policyv1.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy),
		})
		return err
	}
	return nil
}
