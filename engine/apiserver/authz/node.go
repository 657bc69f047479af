package authz

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podwalk/engine/apiserver/admission"
	"podwalk/engine/kube"
)

// The Node authorizer: a kubelet may read what the Pods on its node refer to, and its own
// Node and Lease; for other resources it has the rules of the role system:node. Upstream
// (plugin/pkg/auth/authorizer/node) keeps a graph of who refers to what; here the Pods of
// the namespace are looked through, and the one that was found is remembered.

// opinion is an authorizer's answer.
type opinion int

const (
	noRule  opinion = iota // the resource has no rules of its own here
	allow                  // allowed
	noAllow                // not allowed by these rules; RBAC may still allow it
)

// reference is the question whether a node has to do with an object.
type reference struct{ node, resource, namespace, name string }

// nodeOf returns the node that a kubelet's user name stands for.
func nodeOf(u user.Info) (string, bool) {
	name, ok := strings.CutPrefix(u.GetName(), "system:node:")
	return name, ok && name != "" && slices.Contains(u.GetGroups(), user.NodesGroup)
}

// node answers for the resources that are subdivided by node.
func (z *Authorizer) node(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	if !a.IsResourceRequest() {
		return noRule, ""
	}
	gr := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}
	switch gr {
	case kube.Secrets.GroupResource(), kube.ConfigMaps.GroupResource():
		return z.readNamespaced(node, a, c)
	case kube.PVCs.GroupResource():
		if a.GetSubresource() == "status" {
			return z.statusUpdate(node, a, c)
		}
		return z.get(node, a, c)
	case kube.PVs.GroupResource(), schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}:
		return z.get(node, a, c)
	case kube.ServiceAccounts.GroupResource():
		return z.serviceAccount(node, a, c)
	case kube.Leases.GroupResource():
		return ownLease(node, a)
	case schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}:
		return ownCSINode(node, a)
	case kube.Nodes.GroupResource():
		return ownNode(node, a)
	case kube.Pods.GroupResource():
		return z.pod(node, a, c)
	}
	return noRule, ""
}

func (z *Authorizer) readNamespaced(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	switch {
	case !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()):
		return noAllow, "can only read resources of this type"
	case a.GetSubresource() != "":
		return noAllow, "cannot read subresource"
	case a.GetNamespace() == "":
		return noAllow, "can only read namespaced object of this type"
	}
	return z.related(node, a, c)
}

func (z *Authorizer) get(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	switch {
	case a.GetVerb() != "get":
		return noAllow, "can only get individual resources of this type"
	case a.GetSubresource() != "":
		return noAllow, "cannot get subresource"
	}
	return z.related(node, a, c)
}

func (z *Authorizer) statusUpdate(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	if v := a.GetVerb(); v != "update" && v != "patch" {
		return noAllow, "can only get/update/patch this type"
	}
	return z.related(node, a, c)
}

func (z *Authorizer) serviceAccount(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	switch {
	case a.GetVerb() == "get" && a.GetSubresource() == "":
		return z.readNamespaced(node, a, c)
	case a.GetVerb() != "create" || a.GetName() == "":
		return noAllow, "can only create tokens for individual service accounts"
	case a.GetSubresource() != "token":
		return noAllow, "can only create token subresource of serviceaccount"
	}
	return z.related(node, a, c)
}

func ownLease(node string, a authorizer.Attributes) (opinion, string) {
	switch {
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, a.GetVerb()):
		return noAllow, "can only get, create, update, patch, or delete a node lease"
	case a.GetNamespace() != corev1.NamespaceNodeLease:
		return noAllow, fmt.Sprintf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case a.GetVerb() != "create" && a.GetName() != node:
		return noAllow, "can only access node lease with the same name as the requesting node"
	}
	return allow, ""
}

func ownCSINode(node string, a authorizer.Attributes) (opinion, string) {
	switch {
	case a.GetSubresource() != "":
		return noAllow, "cannot authorize CSINode subresources"
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, a.GetVerb()):
		return noAllow, "can only get, create, update, patch, or delete a CSINode"
	case a.GetVerb() != "create" && a.GetName() != node:
		return noAllow, "can only access CSINode with the same name as the requesting node"
	}
	return allow, ""
}

func ownNode(node string, a authorizer.Attributes) (opinion, string) {
	switch a.GetSubresource() + "/" + a.GetVerb() {
	case "/create", "/update", "/patch", "status/update", "status/patch":
		return allow, "" // the NodeRestriction plugin sees to it that it is its own
	case "/get", "/list", "/watch":
		switch a.GetName() {
		case node:
			return allow, ""
		case "":
			return noAllow, fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", node)
		}
		return noAllow, fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", node, a.GetName())
	}
	return noAllow, ""
}

func (z *Authorizer) pod(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	switch a.GetSubresource() + "/" + a.GetVerb() {
	case "/get":
		return z.related(node, a, c)
	case "/list", "/watch":
		reqs, _ := a.GetFieldSelector()
		for _, r := range reqs {
			if r.Field == "spec.nodeName" && r.Operator == selection.Equals && r.Value == node {
				return allow, ""
			}
		}
		if a.GetName() != "" {
			return z.related(node, a, c)
		}
		return noAllow, "can only list/watch pods with spec.nodeName field selector"
	case "/create", "/delete", "status/update", "status/patch", "eviction/create":
		return allow, "" // the NodeRestriction plugin sees to it that they are its own
	}
	return noAllow, ""
}

// related answers whether a Pod on the node refers to the object.
func (z *Authorizer) related(node string, a authorizer.Attributes, c admission.Cluster) (opinion, string) {
	if a.GetName() == "" {
		return noAllow, "No Object name found"
	}
	if z.has(reference{node, a.GetResource(), a.GetNamespace(), a.GetName()}, c) {
		return allow, ""
	}
	return noAllow, fmt.Sprintf("no relationship found between node '%s' and this object", node)
}

func (z *Authorizer) has(r reference, c admission.Cluster) bool {
	switch r.resource {
	case "pods":
		o, ok := c.Get(kube.Pods, r.namespace, r.name)
		return ok && o.(*corev1.Pod).Spec.NodeName == r.node
	case "persistentvolumes":
		o, ok := c.Get(kube.PVs, "", r.name)
		if !ok || o.(*corev1.PersistentVolume).Spec.ClaimRef == nil {
			return false
		}
		claim := o.(*corev1.PersistentVolume).Spec.ClaimRef
		return z.has(reference{r.node, "persistentvolumeclaims", claim.Namespace, claim.Name}, c)
	case "volumeattachments":
		return attachedTo(r, c)
	}
	if name, ok := z.witness[r]; ok {
		if o, ok := c.Get(kube.Pods, r.namespace, name); ok && refers(o.(*corev1.Pod), r) {
			return true
		}
		delete(z.witness, r)
	}
	for _, o := range c.List(kube.Pods, r.namespace) {
		if pod := o.(*corev1.Pod); refers(pod, r) {
			if len(z.witness) >= decisionsMax {
				clear(z.witness)
			}
			z.witness[r] = pod.Name
			return true
		}
	}
	return false
}

// refers reports whether a Pod is on the node and uses the object.
func refers(pod *corev1.Pod, r reference) bool {
	if pod.Spec.NodeName != r.node {
		return false
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false // a static Pod may not open a door for its kubelet
	}
	found := false
	look := func(name string) bool {
		found = found || name == r.name
		return !found
	}
	switch r.resource {
	case "serviceaccounts":
		return pod.Spec.ServiceAccountName == r.name
	case "secrets":
		podutil.VisitPodSecretNames(pod, look)
	case "configmaps":
		podutil.VisitPodConfigmapNames(pod, look)
	case "persistentvolumeclaims":
		for _, v := range pod.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				look(v.PersistentVolumeClaim.ClaimName)
			case v.Ephemeral != nil:
				look(pod.Name + "-" + v.Name)
			}
		}
	}
	return found
}

// attachedTo reports whether a VolumeAttachment is one of the node's.
func attachedTo(r reference, c admission.Cluster) bool {
	o, ok := c.Get(storagev1.SchemeGroupVersion.WithResource("volumeattachments"), "", r.name)
	return ok && o.(*storagev1.VolumeAttachment).Spec.NodeName == r.node
}
