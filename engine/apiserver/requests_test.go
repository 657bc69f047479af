package apiserver_test

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver"
	"podwalk/engine/apiserver/authn"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
	"podwalk/engine/stage"
)

// Two patches at the same time both arrive in the object; two updates on top of the same
// version do not.
func TestWritesAtTheSameTime(t *testing.T) {
	w := newWorld()
	w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: nginx("a")})
	n := len(w.me.answers)
	for _, body := range []string{`{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"b":"1"}}}`} {
		w.k.Send(kernel.ActorID(stage.APIServer), 0, wire.Request{
			ReplyTo: "me", Client: stage.Kubectl, Verb: wire.Patch, Resource: kube.Pods, Namespace: "default", Name: "a",
			PatchType: types.MergePatchType, Body: []byte(body),
		})
	}
	w.k.AdvanceTo(w.k.Now().Add(time.Second))
	for _, a := range w.me.answers[n:] {
		if a.Err() != nil {
			t.Errorf("patch: %v", a.Err())
		}
	}
	now, _ := w.api.Get(kube.Pods, "default", "a")
	if l := now.(*corev1.Pod).Labels; l["a"] != "1" || l["b"] != "1" {
		t.Errorf("labels = %v", l)
	}

	pod := now.(*corev1.Pod)
	n = len(w.me.answers)
	for _, v := range []string{"x", "y"} {
		p := pod.DeepCopy()
		p.Labels["v"] = v
		w.k.Send(kernel.ActorID(stage.APIServer), 0, wire.Request{
			ReplyTo: "me", Client: stage.Kubectl, Verb: wire.Update, Resource: kube.Pods, Namespace: "default", Name: "a", Object: p,
		})
	}
	w.k.AdvanceTo(w.k.Now().Add(time.Second))
	if a := w.me.answers[n:]; a[0].Err() != nil || !apierrors.IsConflict(a[1].Err()) {
		t.Errorf("updates: %v, %v", a[0].Err(), a[1].Err())
	}
}

// A stored object is never written to again, whatever happens to later versions.
func TestStoredObjectsStayAsTheyAre(t *testing.T) {
	w := newWorld()
	w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: nginx("a")})
	var versions []*corev1.Pod
	var hashes []uint64
	keep := func() {
		obj, _ := w.api.Get(kube.Pods, "default", "a")
		versions, hashes = append(versions, obj.(*corev1.Pod)), append(hashes, kernel.Hash(obj))
	}
	keep()
	w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Subresource: "binding", Namespace: "default", Name: "a", Object: &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"zone": "a"}}, Target: corev1.ObjectReference{Kind: "Node", Name: "node01"}}})
	keep()
	p := versions[1].DeepCopy()
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, "10.244.1.1", []corev1.PodIP{{IP: "10.244.1.1"}}
	w.do(wire.Request{Verb: wire.Patch, Resource: kube.Pods, Subresource: "status", Namespace: "default", Name: "a", Object: p})
	keep()
	w.do(wire.Request{Verb: wire.Patch, Resource: kube.Pods, Namespace: "default", Name: "a", Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": "y"}}}})
	keep()
	w.do(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: "a"})
	keep()
	for i, v := range versions {
		if kernel.Hash(v) != hashes[i] {
			t.Errorf("version %d was changed after it was stored", i)
		}
	}
	if l := versions[3].Labels; l["zone"] != "a" || l["x"] != "y" {
		t.Errorf("labels = %v", l)
	}
}

func TestToken(t *testing.T) {
	tokens := authn.New()
	w := newWorld(func(c *apiserver.Config) { c.Tokens = tokens })
	w.api.Preload(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	a := w.do(wire.Request{Verb: wire.Create, Resource: kube.ServiceAccounts, Subresource: "token", Namespace: "default", Name: "web", Object: &authenticationv1.TokenRequest{}})
	if a.Err() != nil {
		t.Fatal(a.Err())
	}
	u, why := tokens.Authenticate(wire.Credential{Token: a.Object.(*authenticationv1.TokenRequest).Status.Token}, w.api, w.k.Now().Wall())
	if u == nil || u.GetName() != "system:serviceaccount:default:web" {
		t.Errorf("the token proves %v (%s)", u, why)
	}
	a = w.do(wire.Request{Verb: wire.Create, Resource: kube.ServiceAccounts, Subresource: "token", Namespace: "default", Name: "gone", Object: &authenticationv1.TokenRequest{}})
	if a.Err() == nil || a.Err().Error() != `serviceaccounts "gone" not found` {
		t.Errorf("token of nobody: %v", a.Err())
	}
}

// phone is a network with one kubelet that answers what the test says.
type phone struct {
	k      *kernel.Kernel
	answer func(network.Call) network.Result
}

func (p *phone) Do(to kernel.ActorID, c network.Call) {
	r := p.answer(c)
	r.Tag, r.Call = c.Tag, c
	p.k.Send(to, time.Millisecond, r)
}

func TestLogs(t *testing.T) {
	line := &phone{}
	w := newWorldOn(line)
	line.k = w.k
	w.api.Preload(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node01"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.30.0.11"}}}})
	pod := nginx("a")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "side", Image: "busybox"})
	w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: pod})
	logs := func(params map[string]string) wire.Answer {
		return w.do(wire.Request{Verb: wire.Get, Resource: kube.Pods, Subresource: "log", Namespace: "default", Name: "a", Options: wire.Options{Params: params}})
	}
	if a := logs(nil); a.Err() == nil || a.Err().Error() != "a container name must be specified for pod a, choose one of: [nginx side]" {
		t.Errorf("which container? %v", a.Err())
	}
	if a := logs(map[string]string{"container": "x"}); a.Err() == nil || a.Err().Error() != "container x is not valid for pod a" {
		t.Errorf("unknown container: %v", a.Err())
	}
	if a := logs(map[string]string{"container": "nginx"}); a.Err() != nil || len(a.Body) != 0 {
		t.Errorf("before it has a node: %v %q", a.Err(), a.Body)
	}
	w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Subresource: "binding", Namespace: "default", Name: "a", Object: &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node01"}}})
	line.answer = func(c network.Call) network.Result {
		return network.Result{Code: 200, Body: []byte(c.To + c.Path)}
	}
	a := logs(map[string]string{"container": "nginx", "tailLines": "5", "follow": "false"})
	if got := string(a.Body); got != "172.30.0.11:10250/containerLogs/default/a/nginx?tailLines=5" {
		t.Errorf("asked for %s (%v)", got, a.Err())
	}
	line.answer = func(network.Call) network.Result {
		return network.Result{Err: "dial tcp 172.30.0.11:10250: connect: connection refused"}
	}
	a = logs(map[string]string{"container": "nginx"})
	if want := `Get "https://172.30.0.11:10250/containerLogs/default/a/nginx": dial tcp 172.30.0.11:10250: connect: connection refused`; a.Err() == nil || a.Err().Error() != want {
		t.Errorf("kubelet down: %v", a.Err())
	}
	a = w.do(wire.Request{Verb: wire.Connect, Resource: kube.Pods, Subresource: "exec", Namespace: "default", Name: "a", Options: wire.Options{Params: map[string]string{"container": "nginx", "command": "ls\x00-l"}}})
	if a.Err() == nil || !strings.HasPrefix(a.Err().Error(), "error dialing backend: dial tcp") {
		t.Errorf("exec with the kubelet down: %v", a.Err())
	}
	line.answer = func(c network.Call) network.Result { return network.Result{Code: 200, Body: []byte(c.Path)} }
	a = w.do(wire.Request{Verb: wire.Connect, Resource: kube.Pods, Subresource: "exec", Namespace: "default", Name: "a", Options: wire.Options{Params: map[string]string{"container": "nginx", "command": "ls\x00-l", "stdout": "true"}}})
	if got := string(a.Body); a.Code != 101 || got != "/exec/default/a/nginx?command=ls&command=-l&output=1" {
		t.Errorf("exec: %d %s", a.Code, got)
	}
	line.answer = func(network.Call) network.Result {
		return network.Result{Code: 500, Body: []byte(`container not found ("nginx")`)}
	}
	a = w.do(wire.Request{Verb: wire.Connect, Resource: kube.Pods, Subresource: "exec", Namespace: "default", Name: "a", Options: wire.Options{Params: map[string]string{"container": "nginx", "command": "ls"}}})
	if a.Err() == nil || a.Code != 500 || a.Err().Error() != `container not found ("nginx")` {
		t.Errorf("exec in a container that does not run: %d %v", a.Code, a.Err())
	}
}
