package authn_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/wire"
)

type accounts map[string]runtime.Object

func (c accounts) Get(gvr schema.GroupVersionResource, ns, name string) (runtime.Object, bool) {
	o, ok := c[gvr.Resource+"/"+ns+"/"+name]
	return o, ok
}

func (c accounts) List(schema.GroupVersionResource, string) []runtime.Object { return nil }

var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestWho(t *testing.T) {
	n := authn.New()
	n.AddToken("secret", "jane", "dev")
	for _, c := range []struct {
		name, want, failure string
		cred                wire.Credential
		groups              []string
	}{
		{name: "nobody", want: "system:anonymous", groups: []string{"system:unauthenticated"}},
		{name: "certificate", cred: wire.Credential{CommonName: "admin", Orgs: []string{"system:masters"}}, want: "admin", groups: []string{"system:masters", "system:authenticated"}},
		{name: "expired", cred: wire.Credential{CommonName: "admin", NotAfter: now.Add(-time.Hour)},
			failure: "x509: certificate has expired or is not yet valid: current time 2026-12-01T00:00:00Z is after 2026-11-30T23:00:00Z"},
		{name: "bad certificate", cred: wire.Credential{CommonName: "admin", BadCert: "x509: certificate signed by unknown authority"}, failure: "verifying certificate failed: x509: certificate signed by unknown authority"},
		{name: "static token", cred: wire.Credential{Token: "secret"}, want: "jane", groups: []string{"dev", "system:authenticated"}},
		{name: "made up token", cred: wire.Credential{Token: "nosuchtoken"}, failure: "invalid bearer token"},
	} {
		u, failure := n.Authenticate(c.cred, accounts{}, now)
		if failure != c.failure {
			t.Errorf("%s: failure %q, want %q", c.name, failure, c.failure)
		}
		if u != nil && (u.GetName() != c.want || !slices.Equal(u.GetGroups(), c.groups)) {
			t.Errorf("%s: %s %v", c.name, u.GetName(), u.GetGroups())
		}
	}
}

func TestServiceAccountToken(t *testing.T) {
	n := authn.New()
	c := accounts{
		"serviceaccounts/b01/app": &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "b01", Name: "app", UID: "u1"}},
		"pods/b01/web":            &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b01", Name: "web", UID: "p1"}},
	}
	token, err := n.Issue(wire.TokenRequest{Namespace: "b01", ServiceAccount: "app", UID: "u1", PodName: "web", PodUID: "p1", IssuedAt: now, ExpiresAt: now.Add(time.Hour), ID: "j"})
	if err != nil {
		t.Fatal(err)
	}
	try := func(token string, at time.Time) (string, string) {
		u, failure := n.Authenticate(wire.Credential{Token: token}, c, at)
		if u == nil {
			return "", failure
		}
		if !slices.Equal(u.GetGroups(), []string{"system:serviceaccounts", "system:serviceaccounts:b01", "system:authenticated"}) {
			t.Errorf("groups %v", u.GetGroups())
		}
		return u.GetName(), ""
	}
	if name, failure := try(token, now); name != "system:serviceaccount:b01:app" {
		t.Errorf("%q %q", name, failure)
	}
	if name, _ := try(token, now.Add(2*time.Hour)); name != "" {
		t.Error("an expired token is taken")
	}
	i := strings.LastIndexByte(token, '.')
	if name, _ := try(token[:i-1]+"x"+token[i:], now); name != "" {
		t.Error("a changed token is taken")
	}
	delete(c, "pods/b01/web")
	if name, _ := try(token, now); name != "" {
		t.Error("the token of a Pod that is gone is taken")
	}
}
