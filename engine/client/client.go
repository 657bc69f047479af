// Package client is the components' only door to the API server: create, get, list,
// watch, patch, bind. Requests go as typed values, with no encoding on the way, and the
// answer comes back to the asking actor as its next event (wire.Answer, with the Tag
// that was sent along). Upstream: k8s.io/client-go.
//
// Left out: connection pools, flow control on the client's side, retries of single
// requests (an actor that wants to try again does so itself).
package client

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
)

// Latency is how long a request takes to reach the API server from inside the cluster.
const Latency = 300 * time.Microsecond

// Client speaks for one component. It holds no state of the run.
type Client struct {
	k         *kernel.Kernel
	self      kernel.ActorID
	component stage.Component
	cred      wire.Credential
	reader    wire.Credential // of caches
	agent     string
}

// New returns the client of a component: answers go to the actor self.
func New(k *kernel.Kernel, self kernel.ActorID, component stage.Component, cred wire.Credential) *Client {
	kind, _ := component.Split()
	return &Client{k, self, component, cred, cred, string(kind) + "/" + kube.Version}
}

// ReadAs makes caches list and watch with another credential: the controllers of one
// manager share informers, which read as the manager itself.
func (c *Client) ReadAs(cred wire.Credential) *Client {
	c.reader = cred
	return c
}

// Do sends a request as it is; who asks and with which credential are filled in.
func (c *Client) Do(r wire.Request) { c.send(r, c.cred) }

func (c *Client) send(r wire.Request, cred wire.Credential) {
	r.ReplyTo, r.Client, r.Credential, r.UserAgent = c.self, c.component, cred, c.agent
	c.k.Send(c.server(), Latency, r)
}

func (c *Client) server() kernel.ActorID { return kernel.ActorID(stage.APIServer) }

func formatRevision(r int64) string { return strconv.FormatInt(r, 10) }

// request is about one object: resource, namespace and name are taken from it.
func request(verb wire.Verb, obj runtime.Object, tag any) wire.Request {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic("client: not an API object: " + err.Error())
	}
	return wire.Request{Verb: verb, Resource: kube.ResourceOf(obj), Namespace: m.GetNamespace(), Name: m.GetName(), Object: obj, Tag: tag}
}

// Create asks for a new object. obj belongs to the API server from here on.
func (c *Client) Create(obj runtime.Object, tag any) { c.Do(request(wire.Create, obj, tag)) }

// Update replaces an object; with a resourceVersion in it, only if it is still that one.
func (c *Client) Update(obj runtime.Object, tag any) { c.Do(request(wire.Update, obj, tag)) }

// UpdateStatus replaces an object's status.
func (c *Client) UpdateStatus(obj runtime.Object, tag any) {
	r := request(wire.Update, obj, tag)
	r.Subresource = "status"
	c.Do(r)
}

// PatchStatus sets an object's status to that of obj, whatever its resourceVersion: what
// the kubelet's and the scheduler's strategic merge patches of a status amount to.
func (c *Client) PatchStatus(obj runtime.Object, tag any) {
	r := request(wire.Patch, obj, tag)
	r.Subresource = "status"
	c.Do(r)
}

// Delete asks for an object to go.
func (c *Client) Delete(gvr schema.GroupVersionResource, namespace, name string, o *metav1.DeleteOptions, tag any) {
	c.Do(wire.Request{Verb: wire.Delete, Resource: gvr, Namespace: namespace, Name: name, Tag: tag, Options: wire.Options{Delete: o}})
}

// Get asks for one object.
func (c *Client) Get(gvr schema.GroupVersionResource, namespace, name string, tag any) {
	c.Do(wire.Request{Verb: wire.Get, Resource: gvr, Namespace: namespace, Name: name, Tag: tag})
}

// Bind assigns a Pod to a node: POST pods/NAME/binding.
func (c *Client) Bind(pod *corev1.Pod, node string, tag any) { c.BindAs(pod, node, false, tag) }

// BindAs is Bind that says whether the request is one that nobody follows.
func (c *Client) BindAs(pod *corev1.Pod, node string, background bool, tag any) {
	c.Do(wire.Request{
		Background: background,
		Verb:       wire.Create, Resource: kube.Pods, Subresource: "binding", Namespace: pod.Namespace, Name: pod.Name, Tag: tag,
		Object: &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		},
	})
}
