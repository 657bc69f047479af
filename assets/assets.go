// Package assets holds what podwalk carries along as data: themes, words, diagrams,
// the catalogue of images, and manifests. It imports nothing of podwalk.
//
// openapi/ and discovery/ are what a real kube-apiserver v1.37.2 serves of the stable API
// versions (the documents of k8s.io/kubernetes api/openapi-spec; discovery as such a
// server answered it), each file gzipped. They are served as they stand.
package assets

import "embed"

// FS is the embedded tree, with the folders of this directory at its root.
//
//go:embed themes i18n diagrams manifests catalog all:openapi discovery
var FS embed.FS
