package kubeproxy

import "testing"

// The chain of the API server's own Service has the same name in every cluster.
func TestHash(t *testing.T) {
	if got := hash("default/kubernetes:https", protocol); got != "NPX46M4PTMTKRN6Y" {
		t.Error(got)
	}
}
