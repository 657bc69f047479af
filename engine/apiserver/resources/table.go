package resources

import (
	"k8s.io/apiserver/pkg/registry/rest"

	// The installers register kinds, defaults and conversions in the scheme.
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"

	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

type row struct {
	resource       string // with its group: "deployments.apps"
	prefix         string // in etcd, where it is not the resource's name
	strategy       Strategy
	subresources   subs
	returnsDeleted bool
}

type subs = map[string]rest.RESTUpdateStrategy

// The policies' strategies ask an authorizer whether the author may read the parameters;
// without one they do not.
var policies = validatingadmissionpolicy.NewStrategy(nil, nil)

// table is the registry: every kind that podwalk stores. Prefixes are the historical ones
// that etcd really shows.
var table = []row{
	{"pods", "", pod.Strategy, subs{"status": pod.StatusStrategy, "ephemeralcontainers": pod.EphemeralContainersStrategy, "resize": pod.ResizeStrategy}, true},
	{"namespaces", "", namespace.Strategy, subs{"status": namespace.StatusStrategy, "finalize": namespace.FinalizeStrategy}, true},
	{"nodes", "minions", node.Strategy, subs{"status": node.StatusStrategy}, false},
	{"services", "services/specs", service.Strategy, subs{"status": service.StatusStrategy}, true},
	{"endpoints", "services/endpoints", endpoint.Strategy, nil, false},
	{"configmaps", "", configmap.Strategy, nil, false},
	{"secrets", "", secret.Strategy, nil, false},
	{"serviceaccounts", "", serviceaccount.Strategy, nil, true},
	{"limitranges", "", limitrange.Strategy, nil, false},
	{"resourcequotas", "", resourcequota.Strategy, subs{"status": resourcequota.StatusStrategy}, true},
	{"events", "", event.Strategy, nil, false},
	{"persistentvolumes", "", persistentvolume.Strategy, subs{"status": persistentvolume.StatusStrategy}, true},
	{"persistentvolumeclaims", "", persistentvolumeclaim.Strategy, subs{"status": persistentvolumeclaim.StatusStrategy}, true},
	{"replicationcontrollers", "controllers", replicationcontroller.Strategy, subs{"status": replicationcontroller.StatusStrategy}, false},
	{"podtemplates", "", podtemplate.Strategy, nil, true},
	{"deployments.apps", "", deployment.Strategy, subs{"status": deployment.StatusStrategy}, false},
	{"replicasets.apps", "", replicaset.Strategy, subs{"status": replicaset.StatusStrategy}, false},
	{"daemonsets.apps", "", daemonset.Strategy, subs{"status": daemonset.StatusStrategy}, false},
	{"statefulsets.apps", "", statefulset.Strategy, subs{"status": statefulset.StatusStrategy}, false},
	{"controllerrevisions.apps", "", controllerrevision.Strategy, nil, false},
	{"jobs.batch", "", job.Strategy, subs{"status": job.StatusStrategy}, false},
	{"cronjobs.batch", "", cronjob.Strategy, subs{"status": cronjob.StatusStrategy}, false},
	{"endpointslices.discovery.k8s.io", "", endpointslice.Strategy, nil, false},
	{"leases.coordination.k8s.io", "", lease.Strategy, nil, false},
	{"roles.rbac.authorization.k8s.io", "", role.Strategy, nil, false},
	{"rolebindings.rbac.authorization.k8s.io", "", rolebinding.Strategy, nil, false},
	{"clusterroles.rbac.authorization.k8s.io", "", clusterrole.Strategy, nil, false},
	{"clusterrolebindings.rbac.authorization.k8s.io", "", clusterrolebinding.Strategy, nil, false},
	{"priorityclasses.scheduling.k8s.io", "", priorityclass.Strategy, nil, false},
	{"storageclasses.storage.k8s.io", "", storageclass.Strategy, nil, true},
	{"csinodes.storage.k8s.io", "", csinode.Strategy, nil, true},
	{"csidrivers.storage.k8s.io", "", csidriver.Strategy, nil, true},
	{"volumeattachments.storage.k8s.io", "", volumeattachment.Strategy, subs{"status": volumeattachment.StatusStrategy}, true},
	{"runtimeclasses.node.k8s.io", "", runtimeclass.Strategy, nil, false},
	{"networkpolicies.networking.k8s.io", "", networkpolicy.Strategy, nil, false},
	{"ingresses.networking.k8s.io", "ingress", ingress.Strategy, subs{"status": ingress.StatusStrategy}, false},
	{"ingressclasses.networking.k8s.io", "", ingressclass.Strategy, nil, false},
	{"poddisruptionbudgets.policy", "", poddisruptionbudget.Strategy, subs{"status": poddisruptionbudget.StatusStrategy}, false},
	{"horizontalpodautoscalers.autoscaling", "", horizontalpodautoscaler.Strategy, subs{"status": horizontalpodautoscaler.StatusStrategy}, false},
	{"certificatesigningrequests.certificates.k8s.io", "", certificates.Strategy, subs{"status": certificates.StatusStrategy, "approval": certificates.ApprovalStrategy}, false},
	{"validatingadmissionpolicies.admissionregistration.k8s.io", "", policies, subs{"status": validatingadmissionpolicy.NewStatusStrategy(policies)}, false},
	{"validatingadmissionpolicybindings.admissionregistration.k8s.io", "", &validatingadmissionpolicybinding.Strategy, nil, false},
	{"validatingwebhookconfigurations.admissionregistration.k8s.io", "", validatingwebhookconfiguration.Strategy, nil, false},
	{"mutatingwebhookconfigurations.admissionregistration.k8s.io", "", mutatingwebhookconfiguration.Strategy, nil, false},
}
