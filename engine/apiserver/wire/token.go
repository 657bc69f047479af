package wire

import "time"

// TokenRequest is what a service account token is to say.
type TokenRequest struct {
	Namespace, ServiceAccount, UID string
	PodName, PodUID                string // of a token that is bound to a Pod
	NodeName, NodeUID              string
	Audiences                      []string
	IssuedAt                       time.Time
	ExpiresAt                      time.Time
	ID                             string // jti
}
