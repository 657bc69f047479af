package apiserver

import (
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/wire"
)

// Authenticator tells who sends a request.
type Authenticator interface {
	// Authenticate returns the user that the credential proves (system:anonymous for
	// none), or, where the credential is there but no good, nil and the reason as the API
	// server's log would give it; the client only learns "Unauthorized". Impersonation is
	// not its business: the authorization gate asks for the verb impersonate first.
	Authenticate(cred wire.Credential, c admission.Cluster, now time.Time) (u user.Info, failure string)
}

// Authorizer tells what a user may do.
type Authorizer interface {
	// Authorize answers for one request; a.GetUser() is who asks. reason is what stands in
	// the audit log: `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "z"`;
	// for a refusal it is usually empty.
	Authorize(a authorizer.Attributes, c admission.Cluster) (allowed bool, reason string)
	// Rules lists what a user may do in a namespace, for `kubectl auth can-i --list`.
	Rules(u user.Info, namespace string, c admission.Cluster) authorizationv1.SubjectRulesReviewStatus
}

// TokenIssuer signs service account tokens; the Authenticator accepts them.
type TokenIssuer interface {
	Issue(t wire.TokenRequest) (token string, err error)
}
