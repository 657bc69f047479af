package resources

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeOf returns the node of a Pod, "" for anything else.
func NodeOf(obj runtime.Object) string {
	if p, ok := obj.(*corev1.Pod); ok && p != nil {
		return p.Spec.NodeName
	}
	return ""
}

// selectable lists the field selectors that a kind knows beyond metadata.name and
// metadata.namespace.
var selectable = map[string]func(runtime.Object, fields.Set){
	"Pod": func(o runtime.Object, s fields.Set) {
		p := o.(*corev1.Pod)
		s["spec.nodeName"] = p.Spec.NodeName
		s["spec.restartPolicy"] = string(p.Spec.RestartPolicy)
		s["spec.schedulerName"] = p.Spec.SchedulerName
		s["spec.serviceAccountName"] = p.Spec.ServiceAccountName
		s["spec.hostNetwork"] = strconv.FormatBool(p.Spec.HostNetwork)
		s["status.phase"] = string(p.Status.Phase)
		s["status.podIP"] = p.Status.PodIP
		s["status.nominatedNodeName"] = p.Status.NominatedNodeName
	},
	"Event": func(o runtime.Object, s fields.Set) {
		e := o.(*corev1.Event)
		r := e.InvolvedObject
		s["involvedObject.kind"] = r.Kind
		s["involvedObject.namespace"] = r.Namespace
		s["involvedObject.name"] = r.Name
		s["involvedObject.uid"] = string(r.UID)
		s["involvedObject.apiVersion"] = r.APIVersion
		s["involvedObject.resourceVersion"] = r.ResourceVersion
		s["involvedObject.fieldPath"] = r.FieldPath
		s["regarding.kind"], s["regarding.namespace"], s["regarding.name"] = r.Kind, r.Namespace, r.Name
		s["regarding.uid"], s["regarding.fieldPath"] = string(r.UID), r.FieldPath
		s["reason"] = e.Reason
		s["reportingComponent"] = e.ReportingController
		source := e.Source.Component
		if source == "" {
			source = e.ReportingController
		}
		s["source"] = source
		s["type"] = e.Type
	},
	"Node": func(o runtime.Object, s fields.Set) {
		s["spec.unschedulable"] = strconv.FormatBool(o.(*corev1.Node).Spec.Unschedulable)
	},
	"Namespace": func(o runtime.Object, s fields.Set) { s["status.phase"] = string(o.(*corev1.Namespace).Status.Phase) },
	"Secret":    func(o runtime.Object, s fields.Set) { s["type"] = string(o.(*corev1.Secret).Type) },
	"Job": func(o runtime.Object, s fields.Set) {
		s["status.successful"] = strconv.Itoa(int(o.(*batchv1.Job).Status.Succeeded))
	},
	"ReplicaSet": func(o runtime.Object, s fields.Set) {
		s["status.replicas"] = strconv.Itoa(int(o.(*appsv1.ReplicaSet).Status.Replicas))
	},
	"Service": func(o runtime.Object, s fields.Set) {
		s["spec.clusterIP"] = o.(*corev1.Service).Spec.ClusterIP
		s["spec.type"] = string(o.(*corev1.Service).Spec.Type)
	},
	"ReplicationController": func(o runtime.Object, s fields.Set) {
		s["status.replicas"] = strconv.Itoa(int(o.(*corev1.ReplicationController).Status.Replicas))
	},
	"CertificateSigningRequest": func(o runtime.Object, s fields.Set) {
		s["spec.signerName"] = o.(*certificatesv1.CertificateSigningRequest).Spec.SignerName
	},
}

// Selectable reports whether a field selector on this field is understood.
func (r *Resource) Selectable(field string) bool {
	if field == "metadata.name" || field == "metadata.namespace" && r.Namespaced {
		return true
	}
	return r.selectable[field]
}

// Fields returns the selectable fields of a stored object.
func (r *Resource) Fields(obj runtime.Object) fields.Fields { return fieldsOf{r, obj} }

// fieldsOf looks fields up one at a time: most selectors ask for a single one.
type fieldsOf struct {
	r   *Resource
	obj runtime.Object
}

func (f fieldsOf) Has(field string) bool { return f.r.Selectable(field) }

func (f fieldsOf) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.obj.(metav1.Object).GetName()
	case "metadata.namespace":
		return f.obj.(metav1.Object).GetNamespace()
	case "spec.nodeName":
		return NodeOf(f.obj)
	}
	s := fields.Set{}
	if fill := selectable[f.r.Storage.Kind.Kind]; fill != nil {
		fill(f.obj, s)
	}
	return s[field]
}

// selectableFields asks the kind's function for the names, with an empty object.
func selectableFields(r *Resource) map[string]bool {
	fill := selectable[r.Storage.Kind.Kind]
	if fill == nil {
		return nil
	}
	s := fields.Set{}
	fill(r.Storage.New(), s)
	out := map[string]bool{}
	for name := range s {
		out[name] = true
	}
	return out
}
