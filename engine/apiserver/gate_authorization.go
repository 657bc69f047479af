package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// The authorization gate: may this user do that? It is asked before anything of the
// request is looked at, even whether the namespace exists.
func (s *Server) authorize(f *flight) error {
	if c := f.Req.Credential; c.AsUser != "" {
		if err := s.impersonate(f); err != nil {
			return err
		}
	}
	attrs := authorizationOf(f)
	allowed, reason := s.cfg.Authorizer.Authorize(attrs, s)
	if !allowed {
		return responsewriters.ForbiddenStatusError(attrs, reason)
	}
	s.hop(f, trace.Hop{Verb: attrs.Verb, Message: reason})
	return nil
}

// authorizationOf describes a request as RBAC sees it.
func authorizationOf(f *flight) authorizer.AttributesRecord {
	r := &f.Req
	a := authorizer.AttributesRecord{User: f.User, Verb: string(r.Verb), Path: r.Path}
	if r.Resource.Resource == "" {
		a.Path, _, _ = strings.Cut(r.Path, "?")
		return a
	}
	a.ResourceRequest = true
	a.Namespace, a.Name, a.Subresource = r.Namespace, r.Name, r.Subresource
	a.APIGroup, a.APIVersion, a.Resource = r.Resource.Group, r.Resource.Version, r.Resource.Resource
	if r.Resource == kube.Namespaces && r.Name != "" {
		a.Namespace = r.Name // as upstream: a namespace is in itself
	}
	if o := r.Options.FieldSelector; o != "" && (r.Verb == wire.List || r.Verb == wire.Watch || r.Verb == wire.DeleteCollection) {
		a.FieldSelectorRequirements, a.Name = selected(o, a.Name)
	}
	switch {
	case r.Verb == wire.Connect && r.Subresource == "log":
		a.Verb = "get"
	case r.Verb == wire.Connect: // exec over a WebSocket is a GET, but asks for more than reading
		a.Verb = "create"
	case r.Verb == wire.Create && r.Subresource == "":
		a.Name = "" // it is in the body, which has not been read yet
	}
	return a
}

// selected reads a field selector for the authorizers; one by metadata.name names the
// object.
func selected(selector, name string) (fields.Requirements, string) {
	sel, err := fields.ParseSelector(selector)
	if err != nil {
		return nil, name // the read gate will say so
	}
	if only, ok := sel.RequiresExactMatch("metadata.name"); ok && name == "" {
		name = only
	}
	return sel.Requirements(), name
}

// impersonate checks --as and --as-group and goes on as that user.
func (s *Server) impersonate(f *flight) error {
	c := f.Req.Credential
	ask := authorizer.AttributesRecord{User: f.User, Verb: "impersonate", APIVersion: "v1", Resource: "users", Name: c.AsUser, ResourceRequest: true}
	ns, name, isServiceAccount := strings.Cut(strings.TrimPrefix(c.AsUser, "system:serviceaccount:"), ":")
	if isServiceAccount && strings.HasPrefix(c.AsUser, "system:serviceaccount:") {
		ask.Resource, ask.Namespace, ask.Name = "serviceaccounts", ns, name
	} else {
		isServiceAccount = false
	}
	asks := []authorizer.AttributesRecord{ask}
	for _, g := range c.AsGroups {
		asks = append(asks, authorizer.AttributesRecord{User: f.User, Verb: "impersonate", APIVersion: "v1", Resource: "groups", Name: g, ResourceRequest: true})
	}
	for _, a := range asks {
		if ok, reason := s.cfg.Authorizer.Authorize(a, s); !ok {
			return responsewriters.ForbiddenStatusError(a, reason)
		}
	}
	groups := append([]string(nil), c.AsGroups...)
	if isServiceAccount && len(groups) == 0 {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+ns)
	}
	if c.AsUser == user.Anonymous {
		groups = append(groups, user.AllUnauthenticated)
	} else {
		groups = append(groups, user.AllAuthenticated)
	}
	f.User = &user.DefaultInfo{Name: c.AsUser, Groups: groups}
	return nil
}
