// Package assets holds what podwalk carries along as data: themes, words, diagrams,
// the catalogue of images, and manifests. It imports nothing of podwalk.
package assets

import "embed"

// FS is the embedded tree, with the folders of this directory at its root.
//
//go:embed themes i18n diagrams
var FS embed.FS
