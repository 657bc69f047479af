package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/assets"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// path answers what is no resource: discovery, OpenAPI, version, health. Such a request
// passes authentication and authorization like every other; then the document is written.
func (h *Handler) path(w http.ResponseWriter, r *http.Request, req wire.Request) {
	req.Background = true
	if i := strings.IndexByte(req.Path, '?'); i >= 0 {
		req.Path = req.Path[:i] // authorization looks at the path alone
	}
	a := h.do(r.Context(), req)
	if refused := a.Err(); (refused != nil && !errors.IsNotFound(refused)) || a.Body != nil {
		h.write(w, r, req, a)
		return
	}
	for _, serve := range []func(http.ResponseWriter, *http.Request, string) bool{h.discovery, openAPI, h.about} {
		if serve(w, r, strings.TrimSuffix(r.URL.Path, "/")) {
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintln(w, "404 page not found")
}

// running tells whether the container whose log is followed can still write.
func (h *Handler) running(r *http.Request, req wire.Request) bool {
	a := h.do(r.Context(), wire.Request{
		Client: req.Client, UserAgent: req.UserAgent, Credential: req.Credential, Background: true,
		Verb: wire.Get, Resource: kube.Pods, Namespace: req.Namespace, Name: req.Name,
	})
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || truthy(req.Options.Params["previous"]) {
		return false
	}
	name := req.Options.Params["container"]
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, c := range list {
			if c.Name == name || name == "" {
				return c.State.Running != nil
			}
		}
	}
	return false
}

// document reads a JSON file of the assets; it reports false where there is none.
func document(name string) ([]byte, bool) { return unzip(name + ".json.gz") }

func unzip(name string) ([]byte, bool) {
	f, err := assets.FS.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		panic("serve: " + name + ": " + err.Error())
	}
	b, err := io.ReadAll(z)
	if err != nil {
		panic("serve: " + name + ": " + err.Error())
	}
	return b, true
}

// openAPI serves /openapi/v3, its documents, and /openapi/v2.
func openAPI(w http.ResponseWriter, r *http.Request, p string) bool {
	switch {
	case p == "/openapi/v3":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(openAPIRoot())
	case p == "/openapi/v2":
		if strings.Contains(r.Header.Get("Accept"), "proto-openapi") { // kubectl takes nothing else
			writeDocument(w, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", openAPIv2Proto())
			return true
		}
		doc, _ := document("openapi/v2")
		writeDocument(w, runtime.ContentTypeJSON, doc)
	case strings.HasPrefix(p, "/openapi/v3/"):
		doc, ok := document("openapi/v3/" + strings.ReplaceAll(strings.TrimPrefix(p, "/openapi/v3/"), "/", "__"))
		if !ok {
			return false
		}
		if r.URL.Query().Get("hash") != "" {
			w.Header().Set("Cache-Control", "public, immutable")
			w.Header().Set("Expires", "Fri, 31 Dec 2099 00:00:00 UTC")
		}
		writeDocument(w, runtime.ContentTypeJSON, doc)
		return true
	}
	return false
}

// openAPIv2Proto is the version 2 document in its other form. kubectl asks for it when it
// meets a kind that version 3 does not have.
var openAPIv2Proto = sync.OnceValue(func() []byte {
	doc, _ := document("openapi/v2")
	parsed, err := openapi_v2.ParseDocument(doc)
	if err != nil {
		panic("serve: openapi/v2: " + err.Error())
	}
	b, err := proto.Marshal(parsed)
	if err != nil {
		panic("serve: openapi/v2: " + err.Error())
	}
	return b
})

func writeDocument(w http.ResponseWriter, media string, doc []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Etag", `"`+digest(doc)+`"`)
	_, _ = w.Write(doc)
}

func digest(doc []byte) string { return fmt.Sprintf("%X", sha512.Sum512(doc)) }

// openAPIRoot lists the documents, each with its hash, which clients cache them by.
var openAPIRoot = sync.OnceValue(func() []byte {
	type item struct {
		URL string `json:"serverRelativeURL"`
	}
	root := struct {
		Paths map[string]item `json:"paths"`
	}{map[string]item{}}
	names, _ := fs.Glob(assets.FS, "openapi/v3/*.json.gz")
	for _, n := range names {
		name := strings.TrimSuffix(n, ".json.gz")
		doc, _ := document(name)
		p := strings.ReplaceAll(path.Base(name), "__", "/")
		root.Paths[p] = item{"/openapi/v3/" + p + "?hash=" + digest(doc)}
	}
	b, _ := json.Marshal(root)
	return b
})

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovery serves what kinds there are: aggregated to clients that ask for it, as
// documents per group and version to the others.
func (h *Handler) discovery(w http.ResponseWriter, r *http.Request, p string) bool {
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	aggregated := strings.Contains(strings.ReplaceAll(r.Header.Get("Accept"), " ", ""), "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	pretty := formOf(r).pretty
	switch {
	case (p == "/api" || p == "/apis") && aggregated:
		doc, _ := document("discovery" + p)
		w.Header().Set("Cache-Control", "public")
		if tag := `"` + digest(doc) + `"`; r.Header.Get("If-None-Match") == tag {
			w.Header().Set("Etag", tag)
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		writeDocument(w, aggregatedType, indent(doc, pretty))
	case p == "/api":
		writeObject(w, legacyVersions(h.Address), http.StatusOK, pretty)
	case p == "/apis":
		writeObject(w, legacyGroups(), http.StatusOK, pretty)
	case len(parts) == 2 && parts[0] == "apis":
		g, ok := legacyGroup(parts[1])
		if !ok {
			return false
		}
		writeObject(w, g, http.StatusOK, pretty)
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		gv := schema.GroupVersion{Version: parts[len(parts)-1]}
		if parts[0] == "apis" {
			gv.Group = parts[1]
		}
		l, ok := legacyResources(gv)
		if !ok {
			return false
		}
		writeObject(w, l, http.StatusOK, pretty)
	default:
		return false
	}
	return true
}

func indent(doc []byte, pretty bool) []byte {
	if !pretty {
		return doc
	}
	var b bytes.Buffer
	if json.Indent(&b, doc, "", "  ") != nil {
		return doc
	}
	return b.Bytes()
}
