package admission

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	psa "k8s.io/pod-security-admission/admission"
	psaconfig "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"

	"podwalk/engine/kube"
)

// PodSecurity holds Pods against the level that their namespace's labels demand; a
// workload with a Pod template is only warned. The checks are the real ones
// (k8s.io/pod-security-admission).
type PodSecurity struct{}

// Name implements Plugin.
func (*PodSecurity) Name() string { return "PodSecurity" }

var podSecurityChecks = func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	return e
}()

var podSecurityDefaults = &psaconfig.PodSecurityConfiguration{Defaults: psaconfig.PodSecurityDefaults{
	Enforce: "privileged", EnforceVersion: "latest", Audit: "privileged", AuditVersion: "latest", Warn: "privileged", WarnVersion: "latest",
}}

// Validate implements Validator.
func (*PodSecurity) Validate(a *Attributes, c Cluster) error {
	r := evaluateSecurity(a, c)
	if r == nil || r.Allowed {
		return nil
	}
	err := a.forbid(errors.New("Not allowed by PodSecurity")).(*apierrors.StatusError)
	if s := r.Result; s != nil {
		if s.Message != "" {
			err.ErrStatus.Message = s.Message
		}
		if s.Reason != "" {
			err.ErrStatus.Reason = s.Reason
		}
		if s.Details != nil {
			err.ErrStatus.Details = s.Details
		}
		if s.Code != 0 {
			err.ErrStatus.Code = s.Code
		}
	}
	return err
}

// Warn implements Warner.
func (*PodSecurity) Warn(a *Attributes, c Cluster) []string {
	if r := evaluateSecurity(a, c); r != nil {
		return r.Warnings
	}
	return nil
}

func evaluateSecurity(a *Attributes, c Cluster) *admissionv1.AdmissionResponse {
	if a.Operation == Delete || a.Object == nil || a.Subresource != "" && a.Subresource != "ephemeralcontainers" {
		return nil
	}
	gr := a.Resource.GroupResource()
	extract := psa.DefaultPodSpecExtractor{}
	if a.Resource != kube.Namespaces && !extract.HasPodSpec(gr) {
		return nil
	}
	if a.Resource != kube.Namespaces && !secured(a.Namespace, c) {
		return nil // no label asks for anything: the common case, and every check is skipped
	}
	d := &psa.Admission{
		Configuration: podSecurityDefaults, Evaluator: podSecurityChecks, Metrics: unmeasured{}, PodSpecExtractor: extract,
		NamespaceGetter: namespaces{c}, PodLister: namespaces{c},
	}
	if err := d.CompleteConfiguration(); err != nil {
		return nil
	}
	return d.Validate(context.Background(), &api.AttributesRecord{
		Name: a.Name, Namespace: a.Namespace, Kind: a.Kind, Resource: a.Resource, Subresource: a.Subresource,
		Operation: admissionv1.Operation(a.Operation), Object: a.Object, OldObject: a.OldObject, Username: a.User.GetName(),
	})
}

func secured(namespace string, c Cluster) bool {
	o, ok := c.Get(kube.Namespaces, "", namespace)
	if !ok {
		return false
	}
	labels := o.(*corev1.Namespace).Labels
	for _, l := range []string{api.EnforceLevelLabel, api.WarnLevelLabel, api.AuditLevelLabel} {
		if _, ok := labels[l]; ok {
			return true
		}
	}
	return false
}

// namespaces shows the cluster to the checks.
type namespaces struct{ c Cluster }

func (n namespaces) GetNamespace(_ context.Context, name string) (*corev1.Namespace, error) {
	o, ok := n.c.Get(kube.Namespaces, "", name)
	if !ok {
		return nil, apierrors.NewNotFound(kube.Namespaces.GroupResource(), name)
	}
	return o.(*corev1.Namespace), nil
}

func (n namespaces) ListPods(_ context.Context, namespace string) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for _, o := range n.c.List(kube.Pods, namespace) {
		out = append(out, o.(*corev1.Pod))
	}
	return out, nil
}

// unmeasured counts nothing.
type unmeasured struct{}

func (unmeasured) RecordEvaluation(metrics.Decision, api.LevelVersion, metrics.Mode, api.Attributes) {
}
func (unmeasured) RecordExemption(api.Attributes)   {}
func (unmeasured) RecordError(bool, api.Attributes) {}
