package registry

import (
	"strings"
	"testing"

	"podwalk/engine/fault"
)

func resolve(t *testing.T, r *Registry, name string) (Image, *Error) {
	t.Helper()
	ref, err := Normalize(name)
	if err != nil {
		t.Fatal(err)
	}
	return r.Resolve(Request{Ref: ref, Named: name})
}

func TestTags(t *testing.T) {
	r := New(fault.NewBoard())
	for _, name := range []string{
		"nginx", "nginx:1.27", "nginx:1.29-alpine", "nginx:1.28", "busybox:1.36", "redis:7", "postgres:16", "node:22-alpine", "python:3.13-slim", "httpd:2.4",
		"registry.k8s.io/kube-apiserver:v1.37.2", "registry.k8s.io/etcd:3.7.0-0", "registry.k8s.io/pause:3.10.1", "quay.io/any/thing:v9", "ghcr.io/a/b:main",
	} {
		img, bad := resolve(t, r, name)
		if bad != nil {
			t.Errorf("%s: %s", name, bad.Text)
			continue
		}
		if !strings.HasPrefix(img.Digest, "sha256:") || img.Size() == 0 || len(img.Programs) == 0 && !img.Tools {
			t.Errorf("%s is no image: %+v", name, img)
		}
	}
	for _, name := range []string{"nginx:1.99", "nginx:nosuchtag", "busybox:2", "redis:99", "postgres:alpha", "node:21.99"} {
		if _, bad := resolve(t, r, name); bad == nil || bad.Code != "NotFound" || !strings.HasSuffix(bad.Text, name+": not found") {
			t.Errorf("%s: %+v", name, bad)
		}
	}
}

// An image is the same by its tag and by its digest, and different tags are different
// images that share their base.
func TestDigests(t *testing.T) {
	r := New(fault.NewBoard())
	byTag, _ := resolve(t, r, "nginx:1.27")
	byDigest, bad := resolve(t, r, "nginx@"+byTag.Digest)
	if bad != nil || byDigest.Digest != byTag.Digest || byDigest.Layers[1] != byTag.Layers[1] {
		t.Errorf("%+v, %+v", byDigest, bad)
	}
	other, _ := resolve(t, r, "nginx:1.28")
	if other.Digest == byTag.Digest || other.Layers[0] != byTag.Layers[0] || other.Layers[1] == byTag.Layers[1] {
		t.Error("1.27 and 1.28 are not two images with one base")
	}
	if unknown, bad := resolve(t, r, "example.org/x/y@"+byTag.Digest); bad != nil || unknown.Digest != byTag.Digest {
		t.Errorf("%+v", bad)
	}
}

// What a program calls itself follows the tag.
func TestVersions(t *testing.T) {
	r := New(fault.NewBoard())
	for tag, want := range map[string]string{"latest": "1.29.3", "1.27-alpine": "1.27.5", "1.29.1": "1.29.1", "stable": "1.28.0"} {
		img, bad := resolve(t, r, "nginx:"+tag)
		if bad != nil {
			t.Fatal(bad.Text)
		}
		if p := img.Programs[0]; p.Version != "nginx version: nginx/"+want || !strings.HasSuffix(p.Log[1], "nginx/"+want) {
			t.Errorf("%s: %q %q", tag, p.Version, p.Log[1])
		}
	}
}

// Every program that the catalogue names is there.
func TestCatalogIsWhole(t *testing.T) {
	programs := map[string]bool{}
	for _, p := range builtin.Programs {
		if programs[p.Name] {
			t.Errorf("there are two programs %q", p.Name)
		}
		programs[p.Name] = true
	}
	seen := map[string]bool{}
	for _, e := range append(builtin.Images, builtin.Default) {
		if seen[e.Repository] {
			t.Errorf("there are two images %q", e.Repository)
		}
		seen[e.Repository] = true
		for _, p := range e.Programs {
			if !programs[p] {
				t.Errorf("%s: there is no program %q", e.Repository, p)
			}
		}
	}
}
