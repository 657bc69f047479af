package apiserver

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/kube"
)

// bootstrap puts in what an API server makes by itself when it starts on an empty etcd:
// the system's namespaces, the Service through which Pods reach it, the built-in priority
// classes. What is there already stays as it is.
func (s *Server) bootstrap() {
	for _, obj := range s.bootstrapObjects() {
		row, _ := resources.Get(kube.ResourceOf(obj))
		if _, there := s.etcd.Get(row.KeyOf(obj)); !there {
			s.Preload(obj)
		}
	}
}

func (s *Server) bootstrapObjects() []runtime.Object {
	var out []runtime.Object
	for _, ns := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		out = append(out, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	host, portText, _ := strings.Cut(s.cfg.Address, ":")
	port, _ := strconv.ParseInt(portText, 10, 32)
	port32 := int32(port)
	labels := map[string]string{"component": "apiserver", "provider": "kubernetes"}
	single, protocol, name, ready := corev1.IPFamilyPolicySingleStack, corev1.ProtocolTCP, "https", true
	return append(out,
		systemClass("system-node-critical", 2000001000, "Used for system critical pods that must not be moved from their current node."),
		systemClass("system-cluster-critical", 2000000000, "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: labels},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, ClusterIP: s.cfg.ServiceIP, ClusterIPs: []string{s.cfg.ServiceIP},
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &single,
				Ports: []corev1.ServicePort{{Name: name, Protocol: protocol, Port: 443, TargetPort: intstr.FromInt32(port32)}},
			},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: "kubernetes",
				Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
			Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port32, Protocol: &protocol}},
		},
		&corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: "kubernetes",
				Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
			},
			Subsets: []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: host}},
				Ports:     []corev1.EndpointPort{{Name: name, Port: port32, Protocol: protocol}},
			}},
		},
	)
}

func systemClass(name string, value int32, description string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Value: value, Description: description}
}
