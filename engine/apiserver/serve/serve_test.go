package serve

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/serve/servetest"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, ResourceVersion: "5",
			CreationTimestamp: metav1.NewTime(kernel.Time(0).Wall()), Annotations: map[string]string{"at": "2026-11-30T08:00:00Z"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
	}
}

// clock is the client's: exactly one day and 5 s after the cluster's, which stands at 5 s.
func clock() time.Time { return kernel.Epoch.Add(24*time.Hour + 10*time.Second) }

func server(t *testing.T, run *servetest.Run) (*httptest.Server, *Handler) {
	t.Helper()
	run.At = kernel.Time(5 * time.Second)
	h := &Handler{Backend: NewShared(run, Automatic), Clock: clock, Address: "172.30.0.2:6443"}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s, h
}

func ask(t *testing.T, s *httptest.Server, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return resp, b.String()
}

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

func TestRequestsAreUnderstood(t *testing.T) {
	run := servetest.New()
	s, _ := server(t, run)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		want               wire.Request
	}{
		{"GET", "/api/v1/namespaces/d/pods?limit=500&labelSelector=a%3Db", "", nil,
			wire.Request{Verb: wire.List, Resource: kube.Pods, Namespace: "d", Options: wire.Options{Limit: 500, LabelSelector: "a=b"}}},
		{"GET", "/api/v1/namespaces/d", "", nil, wire.Request{Verb: wire.Get, Resource: kube.Namespaces, Namespace: "d", Name: "d"}},
		{"PUT", "/api/v1/namespaces/d/finalize", "{}", nil,
			wire.Request{Verb: wire.Update, Resource: kube.Namespaces, Namespace: "d", Name: "d", Subresource: "finalize", Body: []byte("{}")}},
		{"PATCH", "/apis/apps/v1/namespaces/d/deployments/web/scale?fieldManager=m", `{"spec":{"replicas":2}}`, []string{"Content-Type", "application/merge-patch+json"},
			wire.Request{Verb: wire.Patch, Resource: kube.Deployments, Namespace: "d", Name: "web", Subresource: "scale", PatchType: types.MergePatchType,
				Body: []byte(`{"spec":{"replicas":2}}`), Options: wire.Options{FieldManager: "m"}}},
		{"DELETE", "/api/v1/namespaces/d/pods", "", nil, wire.Request{Verb: wire.DeleteCollection, Resource: kube.Pods, Namespace: "d"}},
		{"GET", "/api/v1/namespaces/d/pods/x/log?container=app&tailLines=3", "", nil,
			wire.Request{Verb: wire.Connect, Resource: kube.Pods, Namespace: "d", Name: "x", Subresource: "log", Options: wire.Options{Params: map[string]string{"container": "app", "tailLines": "3"}}}},
		{"GET", "/api/v1/namespaces/d/pods/x/exec?command=ls&command=-l", "", nil,
			wire.Request{Verb: wire.Connect, Resource: kube.Pods, Namespace: "d", Name: "x", Subresource: "exec", Options: wire.Options{Params: map[string]string{"command": "ls\x00-l"}}}},
		{"GET", "/healthz", "", []string{"Authorization", "Bearer t", "Impersonate-User", "bob"},
			wire.Request{Verb: "get", Credential: wire.Credential{Token: "t", AsUser: "bob"}}},
	} {
		ask(t, s, c.method, c.path, c.body, c.headers...)
		got := run.Requests[len(run.Requests)-1]
		if got.Verb != c.want.Verb || got.Resource != c.want.Resource || got.Namespace != c.want.Namespace || got.Name != c.want.Name ||
			got.Subresource != c.want.Subresource || string(got.Body) != string(c.want.Body) || got.PatchType != c.want.PatchType ||
			got.Options.Limit != c.want.Options.Limit || got.Options.LabelSelector != c.want.Options.LabelSelector || got.Options.FieldManager != c.want.Options.FieldManager ||
			len(got.Options.Params) != len(c.want.Options.Params) || got.Options.Params["command"] != c.want.Options.Params["command"] ||
			got.Credential.Token != c.want.Credential.Token || got.Credential.AsUser != c.want.Credential.AsUser {
			t.Errorf("%s %s: %+v", c.method, c.path, got)
		}
	}
}

func TestDeleteOptionsComeFromTheBody(t *testing.T) {
	run := servetest.New(pod("a"))
	s, _ := server(t, run)
	ask(t, s, "DELETE", "/api/v1/namespaces/default/pods/a", `{"gracePeriodSeconds":0,"propagationPolicy":"Background"}`, "Content-Type", "application/json")
	o := run.Requests[0].Options.Delete
	if o == nil || *o.GracePeriodSeconds != 0 || *o.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("%+v", o)
	}
}

func TestTimesAreTheClients(t *testing.T) {
	run := servetest.New(pod("a"))
	s, _ := server(t, run)
	_, body := ask(t, s, "GET", "/api/v1/namespaces/default/pods/a", "")
	var got corev1.Pod
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if want := clock().Add(-5 * time.Second); !got.CreationTimestamp.Time.Equal(want) {
		t.Errorf("created %s, want %s", got.CreationTimestamp, want)
	}
	if got.Annotations["at"] != "2026-11-30T08:00:00Z" {
		t.Errorf("text was moved: %s", got.Annotations["at"])
	}
	if got.Kind != "Pod" || got.APIVersion != "v1" {
		t.Errorf("kind %q of %q", got.Kind, got.APIVersion)
	}
	// And back: what the client read is what the cluster had.
	ask(t, s, "PUT", "/api/v1/namespaces/default/pods/a", body, "Content-Type", "application/json")
	var back corev1.Pod
	if err := json.Unmarshal(run.Requests[1].Body, &back); err != nil {
		t.Fatal(err)
	}
	if !back.CreationTimestamp.Time.Equal(kernel.Epoch) {
		t.Errorf("written back: created %s", back.CreationTimestamp)
	}
}

func TestBodyWithoutTimesIsKeptToTheByte(t *testing.T) {
	body := `{"kind":"Pod",  "metadata":{"name":"b","creationTimestamp":null,"annotations":{"x":"2026-11-30T08:00:00Z"}}}`
	if got := NewShift(kernel.Epoch, clock()).Inbound([]byte(body), &corev1.Pod{}); string(got) != body {
		t.Errorf("%s", got)
	}
}

func TestTable(t *testing.T) {
	s, _ := server(t, servetest.New(pod("a"), pod("b")))
	_, body := ask(t, s, "GET", "/api/v1/namespaces/default/pods?limit=500", "", "Accept", asTable)
	var got metav1.Table
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 2 || got.Kind != "Table" || got.ResourceVersion != "102" || got.ColumnDefinitions[2].Name != "Status" {
		t.Fatalf("%s", body)
	}
	var row metav1.PartialObjectMetadata
	if err := json.Unmarshal(got.Rows[1].Object.Raw, &row); err != nil || row.Name != "b" || row.Kind != "PartialObjectMetadata" {
		t.Errorf("%v %s", err, got.Rows[1].Object.Raw)
	}
}

func TestWatchStreamsTablesAndBookmarks(t *testing.T) {
	run := servetest.New(pod("a"))
	s, _ := server(t, run)
	run.Later = []servetest.Change{{At: kernel.Time(20 * time.Second), Object: pod("c")}, {At: kernel.Time(30 * time.Second), Object: pod("a"), Delete: true}}
	_, body := ask(t, s, "GET", "/api/v1/namespaces/default/pods?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=60", "", "Accept", asTable)
	var types []string
	for i, l := range strings.Split(strings.TrimSpace(body), "\n") {
		var ev struct {
			Type   string
			Object metav1.Table
		}
		if err := json.Unmarshal([]byte(l), &ev); err != nil {
			t.Fatal(err)
		}
		types = append(types, ev.Type)
		if (i == 0) != (len(ev.Object.ColumnDefinitions) > 0) {
			t.Errorf("event %d has %d columns", i, len(ev.Object.ColumnDefinitions))
		}
	}
	if got := strings.Join(types, " "); got != "ADDED BOOKMARK ADDED DELETED" {
		t.Errorf("%s\n%s", got, body)
	}
	if !strings.Contains(body, `"k8s.io/initial-events-end":"true"`) {
		t.Error("the bookmark does not say that the initial events have ended")
	}
	if now := run.At; now != kernel.Time(65*time.Second) {
		t.Errorf("the watch ended at %s", time.Duration(now))
	}
}

func TestRefusals(t *testing.T) {
	run := servetest.New()
	run.Refuse = func(wire.Request) (wire.Answer, bool) {
		st := errors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", nil).Status()
		return wire.Answer{Status: &st, Code: 403, Warnings: []string{`mind "this"`}}, true
	}
	s, _ := server(t, run)
	resp, body := ask(t, s, "GET", "/api/v1/namespaces/default/pods/x", "", "Accept", asTable)
	if resp.StatusCode != 403 || resp.Header.Get("Warning") != `299 - "mind \"this\""` || !strings.HasPrefix(body, `{"kind":"Status","apiVersion":"v1",`) {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	if resp, _ = ask(t, s, "GET", "/version", ""); resp.StatusCode != 403 {
		t.Errorf("a path passes the gates too: %d", resp.StatusCode)
	}
}

func TestDiscoveryAndOpenAPI(t *testing.T) {
	s, _ := server(t, servetest.New())
	for _, c := range []struct{ path, accept, want string }{
		{"/api", "", `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"172.30.0.2:6443"}]}`},
		{"/api", aggregatedType, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2"`},
		{"/apis", "", `{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}`},
		{"/apis/apps/v1", "", `{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}`},
		{"/openapi/v3", "", `"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=`},
		{"/openapi/v3/apis/apps/v1?hash=1", "", `"openapi":"3.0.0"`},
		{"/openapi/v2", "", `"swagger":"2.0"`},
		{"/version", "", `"gitVersion": "v1.37.2"`},
		{"/readyz?verbose", "", "[+]etcd ok\n"},
		{"/livez", "", "ok"},
		{"/nothing", "", "404 page not found"},
	} {
		if _, body := ask(t, s, "GET", c.path, "", "Accept", c.accept); !strings.Contains(body, c.want) {
			t.Errorf("%s: %.300s", c.path, body)
		}
	}
}

func TestEveryKindIsDiscovered(t *testing.T) {
	known := map[schema.GroupVersionResource]bool{}
	for _, g := range aggregated() {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				known[schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: r.Resource}] = true
			}
		}
	}
	for _, k := range kube.Kinds() {
		if !known[k.Resource] {
			t.Errorf("%s is stored but not discovered", k.Resource)
		}
	}
}

// TestAgesGoOn: whatever the fractions of a second on both clocks, an age is the
// cluster's.
func TestAgesGoOn(t *testing.T) {
	created := kernel.Time(0)
	for at := 82 * time.Second; at < 84*time.Second; at += 90 * time.Millisecond {
		now := kernel.Time(at)
		client := time.Date(2030, 1, 1, 0, 0, 0, int(at*7%time.Second), time.UTC)
		s := NewShift(now.Wall(), client)
		if age, want := client.Sub(s.Out(created.Wall())).Truncate(time.Second), at.Truncate(time.Second); age != want {
			t.Errorf("after %s the age is %s", at, age)
		}
	}
}

// TestNeverStaysNever: a container that could not be started was started at Unix's zero,
// on every clock.
func TestNeverStaysNever(t *testing.T) {
	s := NewShift(kernel.Epoch, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if at := s.Out(time.Unix(0, 0)); at.Unix() != 0 {
		t.Errorf("it becomes %s", at)
	}
}
