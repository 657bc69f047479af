package kubeproxy

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// protocol of every rule: the proxy knows TCP alone.
const protocol = "tcp"

// hash is upstream's name of a chain: 16 characters of base32 over a SHA-256 of the
// Service's port, the protocol, and for a Pod's chain its address.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "")))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}
