package kubeproxy

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// hash is upstream's name of a chain: 16 characters of base32 over a SHA-256.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "")))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}
