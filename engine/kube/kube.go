// Package kube is what every component knows about the API: kinds and resources, keys,
// the version that is simulated. Small helpers over k8s.io/api; no behaviour.
package kube

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the Kubernetes release that is simulated.
const Version = "v1.37.2"

// Object is any API object.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind is one row of the table of kinds.
type Kind struct {
	Kind       schema.GroupVersionKind
	Resource   schema.GroupVersionResource
	Namespaced bool
	New        func() Object
	NewList    func() runtime.Object
}

func row[T, L any](gv schema.GroupVersion, kind, resource string, namespaced bool) Kind {
	return Kind{
		Kind: gv.WithKind(kind), Resource: gv.WithResource(resource), Namespaced: namespaced,
		New:     func() Object { return any(new(T)).(Object) },
		NewList: func() runtime.Object { return any(new(L)).(runtime.Object) },
	}
}

// kinds lists every kind that podwalk stores, in the order of discovery.
var kinds = []Kind{
	row[corev1.Pod, corev1.PodList](corev1.SchemeGroupVersion, "Pod", "pods", true),
	row[corev1.Namespace, corev1.NamespaceList](corev1.SchemeGroupVersion, "Namespace", "namespaces", false),
	row[corev1.Node, corev1.NodeList](corev1.SchemeGroupVersion, "Node", "nodes", false),
	row[corev1.Service, corev1.ServiceList](corev1.SchemeGroupVersion, "Service", "services", true),
	row[corev1.Endpoints, corev1.EndpointsList](corev1.SchemeGroupVersion, "Endpoints", "endpoints", true),
	row[corev1.ConfigMap, corev1.ConfigMapList](corev1.SchemeGroupVersion, "ConfigMap", "configmaps", true),
	row[corev1.Secret, corev1.SecretList](corev1.SchemeGroupVersion, "Secret", "secrets", true),
	row[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion, "ServiceAccount", "serviceaccounts", true),
	row[corev1.LimitRange, corev1.LimitRangeList](corev1.SchemeGroupVersion, "LimitRange", "limitranges", true),
	row[corev1.ResourceQuota, corev1.ResourceQuotaList](corev1.SchemeGroupVersion, "ResourceQuota", "resourcequotas", true),
	row[corev1.Event, corev1.EventList](corev1.SchemeGroupVersion, "Event", "events", true),
	row[corev1.PersistentVolume, corev1.PersistentVolumeList](corev1.SchemeGroupVersion, "PersistentVolume", "persistentvolumes", false),
	row[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](corev1.SchemeGroupVersion, "PersistentVolumeClaim", "persistentvolumeclaims", true),
	row[corev1.ReplicationController, corev1.ReplicationControllerList](corev1.SchemeGroupVersion, "ReplicationController", "replicationcontrollers", true),
	row[corev1.PodTemplate, corev1.PodTemplateList](corev1.SchemeGroupVersion, "PodTemplate", "podtemplates", true),
	row[appsv1.Deployment, appsv1.DeploymentList](appsv1.SchemeGroupVersion, "Deployment", "deployments", true),
	row[appsv1.ReplicaSet, appsv1.ReplicaSetList](appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets", true),
	row[appsv1.DaemonSet, appsv1.DaemonSetList](appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", true),
	row[appsv1.StatefulSet, appsv1.StatefulSetList](appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets", true),
	row[appsv1.ControllerRevision, appsv1.ControllerRevisionList](appsv1.SchemeGroupVersion, "ControllerRevision", "controllerrevisions", true),
	row[batchv1.Job, batchv1.JobList](batchv1.SchemeGroupVersion, "Job", "jobs", true),
	row[batchv1.CronJob, batchv1.CronJobList](batchv1.SchemeGroupVersion, "CronJob", "cronjobs", true),
	row[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion, "EndpointSlice", "endpointslices", true),
	row[eventsv1.Event, eventsv1.EventList](eventsv1.SchemeGroupVersion, "Event", "events", true),
	row[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, "Lease", "leases", true),
	row[rbacv1.Role, rbacv1.RoleList](rbacv1.SchemeGroupVersion, "Role", "roles", true),
	row[rbacv1.RoleBinding, rbacv1.RoleBindingList](rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings", true),
	row[rbacv1.ClusterRole, rbacv1.ClusterRoleList](rbacv1.SchemeGroupVersion, "ClusterRole", "clusterroles", false),
	row[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](rbacv1.SchemeGroupVersion, "ClusterRoleBinding", "clusterrolebindings", false),
	row[schedulingv1.PriorityClass, schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion, "PriorityClass", "priorityclasses", false),
	row[storagev1.StorageClass, storagev1.StorageClassList](storagev1.SchemeGroupVersion, "StorageClass", "storageclasses", false),
	row[storagev1.CSINode, storagev1.CSINodeList](storagev1.SchemeGroupVersion, "CSINode", "csinodes", false),
	row[storagev1.CSIDriver, storagev1.CSIDriverList](storagev1.SchemeGroupVersion, "CSIDriver", "csidrivers", false),
	row[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](storagev1.SchemeGroupVersion, "VolumeAttachment", "volumeattachments", false),
	row[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, "RuntimeClass", "runtimeclasses", false),
	row[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies", true),
	row[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, "Ingress", "ingresses", true),
	row[networkingv1.IngressClass, networkingv1.IngressClassList](networkingv1.SchemeGroupVersion, "IngressClass", "ingressclasses", false),
	row[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", true),
	row[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](autoscalingv2.SchemeGroupVersion, "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
	row[autoscalingv1.HorizontalPodAutoscaler, autoscalingv1.HorizontalPodAutoscalerList](autoscalingv1.SchemeGroupVersion, "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
	row[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList](certificatesv1.SchemeGroupVersion, "CertificateSigningRequest", "certificatesigningrequests", false),
	row[admissionv1.ValidatingAdmissionPolicy, admissionv1.ValidatingAdmissionPolicyList](admissionv1.SchemeGroupVersion, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
	row[admissionv1.ValidatingAdmissionPolicyBinding, admissionv1.ValidatingAdmissionPolicyBindingList](admissionv1.SchemeGroupVersion, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false),
	row[admissionv1.ValidatingWebhookConfiguration, admissionv1.ValidatingWebhookConfigurationList](admissionv1.SchemeGroupVersion, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
	row[admissionv1.MutatingWebhookConfiguration, admissionv1.MutatingWebhookConfigurationList](admissionv1.SchemeGroupVersion, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
}

// The resources that components name in code.
var (
	Pods            = corev1.SchemeGroupVersion.WithResource("pods")
	Namespaces      = corev1.SchemeGroupVersion.WithResource("namespaces")
	Nodes           = corev1.SchemeGroupVersion.WithResource("nodes")
	Services        = corev1.SchemeGroupVersion.WithResource("services")
	ConfigMaps      = corev1.SchemeGroupVersion.WithResource("configmaps")
	Secrets         = corev1.SchemeGroupVersion.WithResource("secrets")
	ServiceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	LimitRanges     = corev1.SchemeGroupVersion.WithResource("limitranges")
	ResourceQuotas  = corev1.SchemeGroupVersion.WithResource("resourcequotas")
	Events          = corev1.SchemeGroupVersion.WithResource("events")
	EventsV1        = eventsv1.SchemeGroupVersion.WithResource("events")
	PVCs            = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	PVs             = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	Deployments     = appsv1.SchemeGroupVersion.WithResource("deployments")
	ReplicaSets     = appsv1.SchemeGroupVersion.WithResource("replicasets")
	DaemonSets      = appsv1.SchemeGroupVersion.WithResource("daemonsets")
	StatefulSets    = appsv1.SchemeGroupVersion.WithResource("statefulsets")
	Jobs            = batchv1.SchemeGroupVersion.WithResource("jobs")
	EndpointSlices  = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	Leases          = coordinationv1.SchemeGroupVersion.WithResource("leases")
	PriorityClasses = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")
	Roles           = rbacv1.SchemeGroupVersion.WithResource("roles")
	RoleBindings    = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	ClusterRoles    = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	ClusterBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	StorageClasses  = storagev1.SchemeGroupVersion.WithResource("storageclasses")
)

var (
	byType     = map[reflect.Type]*Kind{}
	byResource = map[schema.GroupVersionResource]*Kind{}
	byKind     = map[schema.GroupVersionKind]*Kind{}
)

func init() {
	for i := range kinds {
		k := &kinds[i]
		byType[reflect.TypeOf(k.New())] = k
		byResource[k.Resource] = k
		byKind[k.Kind] = k
	}
}

// Kinds returns every kind in the order of discovery.
func Kinds() []Kind { return kinds }

// KindOf returns the row for an object's Go type, and false for one that is not stored.
func KindOf(obj runtime.Object) (Kind, bool) {
	k, ok := byType[reflect.TypeOf(obj)]
	if !ok {
		return Kind{}, false
	}
	return *k, true
}

// ByResource returns the row of a resource.
func ByResource(gvr schema.GroupVersionResource) (Kind, bool) {
	k, ok := byResource[gvr]
	if !ok {
		return Kind{}, false
	}
	return *k, true
}

// ByKind returns the row of a kind.
func ByKind(gvk schema.GroupVersionKind) (Kind, bool) {
	k, ok := byKind[gvk]
	if !ok {
		return Kind{}, false
	}
	return *k, true
}

// Named returns the row that somebody means by a name, as kubectl takes it: the kind in any
// case, or the resource. The error lists the kinds that there are.
func Named(name string) (Kind, error) {
	known := make([]string, 0, len(kinds))
	for _, k := range kinds {
		if strings.EqualFold(k.Kind.Kind, name) || k.Resource.Resource == strings.ToLower(name) {
			return k, nil
		}
		known = append(known, k.Kind.Kind)
	}
	return Kind{}, fmt.Errorf("there is no kind %q; there are: %s", name, strings.Join(known, ", "))
}

// ResourceOf returns the resource of a typed object; it panics for a type that is not
// in the table, which is a mistake in the calling code.
func ResourceOf(obj runtime.Object) schema.GroupVersionResource {
	k, ok := byType[reflect.TypeOf(obj)]
	if !ok {
		panic(fmt.Sprintf("kube: %T is not a stored kind", obj))
	}
	return k.Resource
}

// Meta returns an object's metadata; it panics for what has none.
func Meta(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic("kube: " + err.Error())
	}
	return m
}

// Key returns namespace/name, or just the name of a cluster-wide object.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// KeyOf returns an object's Key.
func KeyOf(obj runtime.Object) string {
	m := Meta(obj)
	return Key(m.GetNamespace(), m.GetName())
}

// NameIn returns the name of the object in a JSON body, "" where it has none: only to say
// what a request is about before it has been decoded.
func NameIn(body []byte) string {
	var o struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if len(body) == 0 || json.Unmarshal(body, &o) != nil {
		return ""
	}
	return o.Metadata.Name
}
