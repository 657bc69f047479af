package admission

import (
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"

	"podwalk/engine/kube"
)

// NodeRestriction keeps a kubelet to its own Node, its own Lease and the Pods that are
// bound to its node. Upstream: plugin/pkg/admission/noderestriction (which kubeadm turns
// on). Left out: resource claims and slices, certificate requests, the audience of tokens.
type NodeRestriction struct{}

// Name implements Plugin.
func (*NodeRestriction) Name() string { return "NodeRestriction" }

// Admit implements Mutator, though it changes nothing: upstream runs it there too.
func (p *NodeRestriction) Admit(a *Attributes, c Cluster) error {
	node, ok := strings.CutPrefix(a.User.GetName(), "system:node:")
	if !ok || a.Operation == Connect || !sets.New(a.User.GetGroups()...).Has(user.NodesGroup) {
		return nil
	}
	var err error
	switch a.Resource.Resource {
	case "pods":
		err = restrictPod(a, c, node)
	case "nodes":
		err = restrictNode(a, node)
	case "persistentvolumeclaims":
		if a.Subresource != "status" {
			err = fmt.Errorf("may only update PVC status")
		}
	case "serviceaccounts":
		err = restrictToken(a, c, node)
	case "leases":
		err = restrictLease(a, node)
	case "csinodes":
		if nameIn(a) != node {
			err = fmt.Errorf("can only access CSINode with the same name as the requesting node")
		}
	}
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	return a.forbid(err)
}

func nameIn(a *Attributes) string {
	if m, ok := a.Object.(metav1.Object); ok && a.Operation == Create {
		return m.GetName()
	}
	return a.Name
}

func restrictLease(a *Attributes, node string) error {
	switch {
	case a.Namespace != corev1.NamespaceNodeLease:
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case nameIn(a) != node:
		return fmt.Errorf("can only access node lease with the same name as the requesting node")
	}
	return nil
}

func restrictPod(a *Attributes, c Cluster, node string) error {
	switch a.Subresource {
	case "":
		switch a.Operation {
		case Create:
			return restrictMirror(a, c, node)
		case Delete:
			return onNode(a.OldObject, node, "node %q can only delete pods with spec.nodeName set to itself")
		}
		return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", a.Operation, node)
	case "status":
		return restrictStatus(a, node)
	case "eviction":
		if _, ok := a.Object.(*policyv1.Eviction); !ok {
			return fmt.Errorf("unexpected type %T", a.Object)
		}
		o, ok := c.Get(kube.Pods, a.Namespace, a.Name)
		if !ok {
			return apierrors.NewNotFound(kube.Pods.GroupResource(), a.Name)
		}
		return onNode(o, node, "node %s can only evict pods with spec.nodeName set to itself")
	}
	return fmt.Errorf("unexpected pod subresource %q, only 'status' and 'eviction' are allowed", a.Subresource)
}

func onNode(obj any, node, text string) error {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != node {
		return fmt.Errorf(text, node)
	}
	return nil
}

func restrictStatus(a *Attributes, node string) error {
	if a.Operation != Update {
		return fmt.Errorf("unexpected operation %q", a.Operation)
	}
	old, ok := a.OldObject.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.OldObject)
	}
	if old.Spec.NodeName != node {
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	if !labels.Equals(old.Labels, pod.Labels) {
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	}
	return nil
}

func restrictMirror(a *Attributes, c Cluster, node string) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	if !mirror(pod) {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	if len(pod.OwnerReferences) > 1 {
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	}
	if len(pod.OwnerReferences) == 0 {
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	}
	if err := ownedByNode(pod.OwnerReferences[0], c, node); err != nil {
		return err
	}
	in, err := internal(pod)
	if err != nil {
		return err
	}
	refers, resource, err := podutil.HasAPIObjectReference(in.(*core.Pod))
	switch {
	case err != nil:
		return fmt.Errorf("error checking mirror pod for API references: %w", err)
	case refers:
		return fmt.Errorf("node %q can not create pods that reference %s", node, resource)
	}
	return nil
}

func ownedByNode(owner metav1.OwnerReference, c Cluster, node string) error {
	if owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node {
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	}
	if owner.Controller == nil || !*owner.Controller {
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", node)
	}
	if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	o, ok := c.Get(kube.Nodes, "", node)
	if !ok {
		return apierrors.NewNotFound(kube.Nodes.GroupResource(), node)
	}
	if uid := kube.Meta(o).GetUID(); owner.UID != uid {
		return fmt.Errorf("node %s UID mismatch: expected %s got %s", node, owner.UID, uid)
	}
	return nil
}

func restrictNode(a *Attributes, node string) error {
	if name := nameIn(a); name != node {
		return fmt.Errorf("node %q is not allowed to modify node %q", node, name)
	}
	obj, ok := a.Object.(*corev1.Node)
	if !ok {
		return nil
	}
	if a.Operation == Create {
		if bad := forbiddenLabels(obj.Labels, nil); len(bad) > 0 {
			return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, strings.Join(bad, ", "))
		}
		return nil
	}
	old, ok := a.OldObject.(*corev1.Node)
	if a.Operation != Update || !ok {
		return nil
	}
	if !equality.Semantic.DeepEqual(obj.Spec.Taints, old.Spec.Taints) {
		return fmt.Errorf("node %q is not allowed to modify taints", node)
	}
	if !equality.Semantic.DeepEqual(obj.OwnerReferences, old.OwnerReferences) {
		return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
	}
	if bad := forbiddenLabels(obj.Labels, old.Labels); len(bad) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(bad, ", "))
	}
	return nil
}

// forbiddenLabels lists the changed labels that are not a kubelet's to change.
func forbiddenLabels(now, before map[string]string) []string {
	changed := sets.New[string]()
	for k, v := range now {
		if old, ok := before[k]; !ok || old != v {
			changed.Insert(k)
		}
	}
	for k := range before {
		if _, ok := now[k]; !ok {
			changed.Insert(k)
		}
	}
	var bad []string
	for _, k := range sets.List(changed) {
		if !KubeletMaySet(k) {
			bad = append(bad, k)
		}
	}
	return bad
}

// KubeletMaySet reports whether a kubelet may put the label on its own Node.
func KubeletMaySet(label string) bool {
	domain, _, found := strings.Cut(label, "/")
	switch {
	case !found:
		return true
	case within(domain, corev1.LabelNamespaceNodeRestriction):
		return false
	case within(domain, "kubernetes.io"), within(domain, "k8s.io"):
		return kubeletapis.IsKubeletLabel(label)
	}
	return true
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func restrictToken(a *Attributes, c Cluster, node string) error {
	if a.Operation != Create || a.Subresource != "token" {
		return nil
	}
	t, ok := a.Object.(*authenticationv1.TokenRequest)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	ref := t.Spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return fmt.Errorf("node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return fmt.Errorf("node requested token with a pod binding without a uid")
	}
	o, ok := c.Get(kube.Pods, a.Namespace, ref.Name)
	if !ok {
		return apierrors.NewNotFound(kube.Pods.GroupResource(), ref.Name)
	}
	if pod := o.(*corev1.Pod); ref.UID != pod.UID {
		return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	} else if pod.Spec.NodeName != node {
		return fmt.Errorf("node requested token bound to a pod scheduled on a different node")
	}
	return nil
}
