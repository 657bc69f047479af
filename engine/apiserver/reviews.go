package apiserver

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"podwalk/engine/apiserver/wire"
)

// The review kinds are questions: they are created, answered, and never stored.

var reviews = map[string]struct {
	kind schema.GroupVersionKind
	make func() runtime.Object
}{
	"selfsubjectaccessreviews.authorization.k8s.io":  {authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), func() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} }},
	"subjectaccessreviews.authorization.k8s.io":      {authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), func() runtime.Object { return &authorizationv1.SubjectAccessReview{} }},
	"localsubjectaccessreviews.authorization.k8s.io": {authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview"), func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} }},
	"selfsubjectrulesreviews.authorization.k8s.io":   {authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} }},
	"selfsubjectreviews.authentication.k8s.io":       {authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), func() runtime.Object { return &authenticationv1.SelfSubjectReview{} }},
	"tokenreviews.authentication.k8s.io":             {authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), func() runtime.Object { return &authenticationv1.TokenReview{} }},
}

// reviewOrNotFound answers a review, or says that there is no such resource.
func (s *Server) reviewOrNotFound(f *flight) error {
	r := &f.Req
	row, ok := reviews[r.Resource.GroupResource().String()]
	if !ok || r.Verb != wire.Create {
		return notFoundPath(r)
	}
	if err := s.body(f, row.kind, row.make()); err != nil {
		return err
	}
	switch o := f.Object.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		o.Status = s.review(f.User, o.Spec.ResourceAttributes, o.Spec.NonResourceAttributes)
	case *authorizationv1.SubjectAccessReview:
		o.Status = s.review(subject(o.Spec), o.Spec.ResourceAttributes, o.Spec.NonResourceAttributes)
	case *authorizationv1.LocalSubjectAccessReview:
		o.Status = s.review(subject(o.Spec), o.Spec.ResourceAttributes, nil)
	case *authorizationv1.SelfSubjectRulesReview:
		o.Status = s.cfg.Authorizer.Rules(f.User, o.Spec.Namespace, s)
	case *authenticationv1.SelfSubjectReview:
		o.CreationTimestamp = s.now()
		o.Status.UserInfo = userInfo(f.User)
	case *authenticationv1.TokenReview:
		u, failure := s.cfg.Authenticator.Authenticate(wire.Credential{Token: o.Spec.Token}, s, s.k.Now().Wall())
		o.Status = authenticationv1.TokenReviewStatus{Authenticated: u != nil, Error: failure}
		if u != nil {
			o.Status.User = userInfo(plainUser(u))
		}
	}
	s.object(f, 201, f.Object, 0)
	return errDone
}

func subject(spec authorizationv1.SubjectAccessReviewSpec) *user.DefaultInfo {
	return &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
}

func userInfo(u *user.DefaultInfo) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for k, v := range u.Extra {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[k] = v
	}
	return out
}

func (s *Server) review(u *user.DefaultInfo, ra *authorizationv1.ResourceAttributes, na *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	a := authorizer.AttributesRecord{User: u}
	switch {
	case ra != nil:
		a.ResourceRequest = true
		a.Namespace, a.Verb, a.APIGroup, a.APIVersion = ra.Namespace, ra.Verb, ra.Group, ra.Version
		a.Resource, a.Subresource, a.Name = ra.Resource, ra.Subresource, ra.Name
	case na != nil:
		a.Path, a.Verb = na.Path, na.Verb
	}
	allowed, reason := s.cfg.Authorizer.Authorize(a, s)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: reason}
}
