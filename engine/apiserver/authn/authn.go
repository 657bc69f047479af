// Package authn tells who sends a request: client certificates, service account tokens
// and static tokens, else the anonymous user. Upstream:
// k8s.io/apiserver/pkg/authentication and the API server's --client-ca-file,
// --service-account-* and --token-auth-file.
//
// A service account token has the three parts and the claims of the real one. Its
// signature is a checksum over a key of this cluster: enough to tell a token that the
// cluster issued from one that somebody made up, and no secret is at stake.
//
// Left out: OIDC, webhook and bootstrap tokens.
package authn

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// issuer is the cluster's --service-account-issuer.
const issuer = "https://kubernetes.default.svc.cluster.local"

// signingKey stands for /etc/kubernetes/pki/sa.key.
var signingKey = []byte("podwalk service account key")

// Authenticator knows the cluster's CA and keys.
type Authenticator struct {
	static map[string]*user.DefaultInfo // --token-auth-file
	// subjects are the users of the certificates seen so far: what a certificate says does
	// not change.
	subjects map[string]*user.DefaultInfo
}

// New returns an authenticator without static tokens.
func New() *Authenticator {
	return &Authenticator{static: map[string]*user.DefaultInfo{}, subjects: map[string]*user.DefaultInfo{}}
}

// AddToken adds a line of the token file.
func (n *Authenticator) AddToken(token, name string, groups ...string) {
	n.static[token] = &user.DefaultInfo{Name: name, Groups: groups}
}

// Authenticate tells who the credential proves, or why it is no good.
func (n *Authenticator) Authenticate(cred wire.Credential, c admission.Cluster, now time.Time) (user.Info, string) {
	switch {
	case cred.BadCert != "":
		return nil, "verifying certificate failed: " + cred.BadCert
	case cred.Token != "":
		return n.byToken(cred.Token, c, now)
	case cred.CommonName != "":
		return n.byCertificate(cred, now)
	}
	return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, ""
}

func (n *Authenticator) byCertificate(cred wire.Credential, now time.Time) (user.Info, string) {
	if !cred.NotAfter.IsZero() && now.After(cred.NotAfter) {
		return nil, fmt.Sprintf("x509: certificate has expired or is not yet valid: current time %s is after %s",
			now.UTC().Format(time.RFC3339), cred.NotAfter.UTC().Format(time.RFC3339))
	}
	subject := cred.CommonName + "\x00" + strings.Join(cred.Orgs, "\x00")
	u, ok := n.subjects[subject]
	if !ok {
		sum := sha256.Sum256([]byte(subject))
		u = &user.DefaultInfo{
			Name: cred.CommonName, Groups: append(append([]string(nil), cred.Orgs...), user.AllAuthenticated),
			Extra: map[string][]string{user.CredentialIDKey: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
		}
		n.subjects[subject] = u
	}
	return u, ""
}

func (n *Authenticator) byToken(token string, c admission.Cluster, now time.Time) (user.Info, string) {
	if u, ok := n.static[token]; ok {
		return &user.DefaultInfo{Name: u.Name, Groups: append(append([]string(nil), u.Groups...), user.AllAuthenticated)}, ""
	}
	cl, failure := verify(token)
	if failure != "" {
		return nil, failure
	}
	if now.Unix() >= cl.Expiry {
		return nil, "service account token has expired"
	}
	k := cl.Kubernetes
	sa, ok := c.Get(kube.ServiceAccounts, k.Namespace, k.ServiceAccount.Name)
	if !ok {
		return nil, fmt.Sprintf("serviceaccounts %q not found", k.ServiceAccount.Name)
	}
	if string(kube.Meta(sa).GetUID()) != k.ServiceAccount.UID {
		return nil, fmt.Sprintf("service account UID (%s) does not match claim (%s)", kube.Meta(sa).GetUID(), k.ServiceAccount.UID)
	}
	info := serviceaccount.ServiceAccountInfo{Namespace: k.Namespace, Name: k.ServiceAccount.Name, UID: k.ServiceAccount.UID, CredentialID: "JTI=" + cl.ID}
	if k.Pod != nil {
		pod, ok := c.Get(kube.Pods, k.Namespace, k.Pod.Name)
		if !ok || string(kube.Meta(pod).GetUID()) != k.Pod.UID {
			return nil, "service account token has been invalidated: its Pod is gone"
		}
		info.PodName, info.PodUID = k.Pod.Name, k.Pod.UID
	}
	u := info.UserInfo()
	groups := append(append([]string(nil), u.GetGroups()...), user.AllAuthenticated)
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: groups, Extra: u.GetExtra()}, ""
}

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

type claims struct {
	Audience   []string `json:"aud"`
	Expiry     int64    `json:"exp"`
	IssuedAt   int64    `json:"iat"`
	Issuer     string   `json:"iss"`
	ID         string   `json:"jti"`
	Kubernetes struct {
		Namespace      string     `json:"namespace"`
		Node           *reference `json:"node,omitempty"`
		Pod            *reference `json:"pod,omitempty"`
		ServiceAccount reference  `json:"serviceaccount"`
	} `json:"kubernetes.io"`
	NotBefore int64  `json:"nbf"`
	Subject   string `json:"sub"`
}

// Issue makes a service account token.
func (n *Authenticator) Issue(t wire.TokenRequest) (string, error) {
	cl := claims{
		Audience: t.Audiences, Expiry: t.ExpiresAt.Unix(), IssuedAt: t.IssuedAt.Unix(), NotBefore: t.IssuedAt.Unix(),
		Issuer: issuer, ID: t.ID, Subject: serviceaccount.MakeUsername(t.Namespace, t.ServiceAccount),
	}
	if len(cl.Audience) == 0 {
		cl.Audience = []string{issuer}
	}
	k := &cl.Kubernetes
	k.Namespace, k.ServiceAccount = t.Namespace, reference{t.ServiceAccount, t.UID}
	if t.PodName != "" {
		k.Pod = &reference{t.PodName, t.PodUID}
	}
	if t.NodeName != "" {
		k.Node = &reference{t.NodeName, t.NodeUID}
	}
	body, err := json.Marshal(cl)
	if err != nil {
		return "", err
	}
	part := encode([]byte(`{"alg":"RS256","kid":"podwalk"}`)) + "." + encode(body)
	return part + "." + encode(sign(part)), nil
}

func verify(token string) (claims, string) {
	var cl claims
	i := strings.LastIndexByte(token, '.')
	if i < 0 || strings.Count(token, ".") != 2 {
		return cl, "invalid bearer token"
	}
	sig, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil || !hmac.Equal(sig, sign(token[:i])) {
		return cl, "invalid bearer token"
	}
	_, body, _ := strings.Cut(token[:i], ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(raw, &cl) != nil {
		return cl, "invalid bearer token"
	}
	return cl, ""
}

func sign(part string) []byte {
	m := hmac.New(sha256.New, signingKey)
	m.Write([]byte(part))
	return m.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
