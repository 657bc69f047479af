package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"podwalk/engine/kube"
)

// aggregated is the discovery document of all groups, the core group first.
var aggregated = sync.OnceValue(func() []apidiscoveryv2.APIGroupDiscovery {
	var out []apidiscoveryv2.APIGroupDiscovery
	for _, name := range []string{"api", "apis"} {
		doc, _ := document("discovery/" + name)
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(doc, &list); err != nil {
			panic("serve: discovery: " + err.Error())
		}
		out = append(out, list.Items...)
	}
	return out
})

func legacyVersions(address string) *metav1.APIVersions {
	return &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}},
	}
}

func group(g apidiscoveryv2.APIGroupDiscovery) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Version, Version: v.Version})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

func legacyGroups() *metav1.APIGroupList {
	l := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, g := range aggregated() {
		if g.Name != "" {
			l.Groups = append(l.Groups, group(g))
		}
	}
	return l
}

func legacyGroup(name string) (*metav1.APIGroup, bool) {
	for _, g := range aggregated() {
		if g.Name == name && name != "" {
			out := group(g)
			out.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return &out, true
		}
	}
	return nil, false
}

func legacyResources(gv schema.GroupVersion) (*metav1.APIResourceList, bool) {
	for _, g := range aggregated() {
		i := slices.IndexFunc(g.Versions, func(v apidiscoveryv2.APIVersionDiscovery) bool { return v.Version == gv.Version })
		if g.Name != gv.Group || i < 0 {
			continue
		}
		l := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
		if gv.Group == "" {
			l.APIVersion = ""
		}
		for _, r := range g.Versions[i].Resources {
			l.APIResources = append(l.APIResources, legacyResource(gv, r)...)
		}
		return l, true
	}
	return nil, false
}

func legacyResource(gv schema.GroupVersion, r apidiscoveryv2.APIResourceDiscovery) []metav1.APIResource {
	namespaced := r.Scope == apidiscoveryv2.ScopeNamespace
	var out []metav1.APIResource
	if len(r.Verbs) > 0 {
		out = append(out, metav1.APIResource{
			Name: r.Resource, SingularName: r.SingularResource, Namespaced: namespaced,
			Kind: r.ResponseKind.Kind, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	for _, s := range r.Subresources {
		a := metav1.APIResource{Name: r.Resource + "/" + s.Subresource, Namespaced: namespaced, Kind: s.ResponseKind.Kind, Verbs: s.Verbs}
		if s.ResponseKind.Version != "" && (s.ResponseKind.Group != gv.Group || s.ResponseKind.Version != gv.Version) {
			a.Group, a.Version = s.ResponseKind.Group, s.ResponseKind.Version
		}
		out = append(out, a)
	}
	return out
}

// checks are what ?verbose lists of a healthy server: those of its parts that have an
// equal here.
var checks = []string{"ping", "log", "etcd", "poststarthook/generic-apiserver-start-informers",
	"poststarthook/start-service-ip-repair-controllers", "poststarthook/rbac/bootstrap-roles",
	"poststarthook/scheduling/bootstrap-system-priority-classes", "poststarthook/bootstrap-controller"}

// about serves /version, the health endpoints and the list of paths.
func (h *Handler) about(w http.ResponseWriter, r *http.Request, p string) bool {
	switch p {
	case "/version":
		writeObject(w, version.Info{
			Major: "1", Minor: "37", EmulationMajor: "1", EmulationMinor: "37",
			MinCompatibilityMajor: "1", MinCompatibilityMinor: "36", GitVersion: kube.Version,
			GitCommit: "podwalk", GitTreeState: "clean", BuildDate: "2026-11-30T21:31:09Z",
			GoVersion: "go1.26", Compiler: "gc", Platform: "linux/amd64",
		}, http.StatusOK, true)
	case "/healthz", "/livez", "/readyz":
		h.health(w, r, p)
	case "":
		writeObject(w, struct {
			Paths []string `json:"paths"`
		}{paths()}, http.StatusOK, true)
	default:
		return false
	}
	return true
}

func (h *Handler) health(w http.ResponseWriter, r *http.Request, p string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !r.URL.Query().Has("verbose") {
		fmt.Fprint(w, "ok")
		return
	}
	for _, c := range checks {
		fmt.Fprintf(w, "[+]%s ok\n", c)
	}
	fmt.Fprintf(w, "%s check passed\n", strings.TrimPrefix(p, "/"))
}

func paths() []string {
	out := []string{"/api", "/api/v1", "/apis", "/apis/", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/readyz", "/version"}
	for _, g := range aggregated() {
		if g.Name == "" {
			continue
		}
		out = append(out, "/apis/"+g.Name)
		for _, v := range g.Versions {
			out = append(out, "/apis/"+g.Name+"/"+v.Version)
		}
	}
	slices.Sort(out)
	return out
}
