package kubelet

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"podwalk/engine/cri"
)

// environment is upstream's makeEnvironmentVariables: envFrom, then env, then the
// variables of Services. The names come out in order, since the runtime keeps a set.
func (kl *Kubelet) environment(w *worker, spec *corev1.Container) ([]cri.EnvVar, error) {
	service := kl.serviceEnv(w.Pod)
	vars := map[string]string{}
	if err := envFrom(w, spec, vars); err != nil {
		return nil, err
	}
	var size messageSize
	expand := size.bound(expansion.MappingFuncFor(vars, service))
	for i := range spec.Env {
		e := &spec.Env[i]
		value, skip := e.Value, false
		if value != "" {
			value = expansion.Expand(value, expand)
			if err := size.err(); err != nil {
				return nil, err
			}
		} else if e.ValueFrom != nil {
			var err error
			if value, skip, err = kl.envValue(w, spec, e.ValueFrom); err != nil {
				return nil, err
			}
		}
		if !skip {
			vars[e.Name] = value
		}
	}
	for name, value := range service {
		if _, own := vars[name]; !own {
			vars[name] = value
		}
	}
	out := make([]cri.EnvVar, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, cri.EnvVar{Name: name, Value: vars[name]})
	}
	return out, nil
}

func envFrom(w *worker, spec *corev1.Container, vars map[string]string) error {
	for _, f := range spec.EnvFrom {
		switch {
		case f.ConfigMapRef != nil:
			got := w.Got[configMapKey(f.ConfigMapRef.Name)]
			if got.Absent && yes(f.ConfigMapRef.Optional) {
				continue
			}
			if got.Err != "" {
				return fmt.Errorf("%s", got.Err)
			}
			for k, v := range got.Object.(*corev1.ConfigMap).Data {
				vars[f.Prefix+k] = v
			}
		case f.SecretRef != nil:
			got := w.Got[secretKey(f.SecretRef.Name)]
			if got.Absent && yes(f.SecretRef.Optional) {
				continue
			}
			if got.Err != "" {
				return fmt.Errorf("%s", got.Err)
			}
			for k, v := range got.Object.(*corev1.Secret).Data {
				vars[f.Prefix+k] = string(v)
			}
		}
	}
	return nil
}

func yes(b *bool) bool { return b != nil && *b }

// envValue resolves one valueFrom; skip is true for an optional one that is not there.
func (kl *Kubelet) envValue(w *worker, spec *corev1.Container, from *corev1.EnvVarSource) (value string, skip bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = kl.fieldValue(w, from.FieldRef)
		return value, false, err
	case from.ResourceFieldRef != nil:
		value, err = kl.resourceValue(w, spec, from.ResourceFieldRef)
		return value, false, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		got := w.Got[configMapKey(ref.Name)]
		if got.Err != "" {
			if got.Absent && yes(ref.Optional) {
				return "", true, nil
			}
			return "", false, fmt.Errorf("%s", got.Err)
		}
		value, ok := got.Object.(*corev1.ConfigMap).Data[ref.Key]
		if !ok && !yes(ref.Optional) {
			return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, w.Pod.Namespace, ref.Name)
		}
		return value, !ok, nil
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		got := w.Got[secretKey(ref.Name)]
		if got.Err != "" {
			if got.Absent && yes(ref.Optional) {
				return "", true, nil
			}
			return "", false, fmt.Errorf("%s", got.Err)
		}
		raw, ok := got.Object.(*corev1.Secret).Data[ref.Key]
		if !ok && !yes(ref.Optional) {
			return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, w.Pod.Namespace, ref.Name)
		}
		return string(raw), !ok, nil
	}
	return "", false, nil
}

// fieldValue is upstream's podFieldSelectorRuntimeValue.
func (kl *Kubelet) fieldValue(w *worker, ref *corev1.ObjectFieldSelector) (string, error) {
	switch ref.FieldPath {
	case "spec.nodeName":
		return w.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return w.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return kl.cfg.IP, nil
	case "status.podIP", "status.podIPs":
		return w.PodIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(w.Pod, ref.FieldPath)
}

// resourceValue falls back on the node's allocatable where the container has no limit.
func (kl *Kubelet) resourceValue(w *worker, spec *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	c := spec.DeepCopy()
	if ref.ContainerName != "" {
		if other, _ := w.spec(ref.ContainerName); other != nil {
			c = other.DeepCopy()
		}
	}
	resource.MergeContainerResourceLimits(c, kl.cfg.Allocatable)
	return resource.ExtractContainerResourceValue(ref, c)
}

// serviceEnv holds the variables of the Pod's namespace's Services, and always those of
// the API server's own.
func (kl *Kubelet) serviceEnv(pod *corev1.Pod) map[string]string {
	links := pod.Spec.EnableServiceLinks == nil || *pod.Spec.EnableServiceLinks
	var list []*corev1.Service
	master := "kubernetes"
	kl.services.Each("", func(s *corev1.Service) bool {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
			return true
		}
		own := s.Namespace == pod.Namespace && links
		if s.Namespace == metav1.NamespaceDefault && s.Name == master && pod.Namespace != metav1.NamespaceDefault || own ||
			s.Namespace == metav1.NamespaceDefault && s.Name == master {
			list = append(list, s)
		}
		return true
	})
	out := map[string]string{}
	for _, e := range envvars.FromServices(list) {
		out[e.Name] = e.Value
	}
	return out
}

// messageMax is the greatest message that containerd takes. References to variables that
// refer to others can make a few lines of a manifest into much more than that.
const messageMax = 16 << 20

// messageSize counts what references to variables were replaced by.
type messageSize int

// bound gives no more than fits into a message.
func (m *messageSize) bound(mapping func(string) string) func(string) string {
	return func(name string) string {
		v := mapping(name)
		if *m += messageSize(len(v)); *m > messageMax {
			return ""
		}
		return v
	}
}

func (m messageSize) err() error {
	if m <= messageMax {
		return nil
	}
	return tooLarge(m)
}

// tooLarge is containerd's refusal of a message.
type tooLarge int

func (e tooLarge) Error() string {
	return fmt.Sprintf("rpc error: code = ResourceExhausted desc = grpc: received message larger than max (%d vs. %d)", int(e), messageMax)
}

// mappingOf lets a command line name the container's variables.
func mappingOf(env []cri.EnvVar) func(string) string {
	vars := make(map[string]string, len(env))
	for _, e := range env {
		vars[e.Name] = e.Value
	}
	return expansion.MappingFuncFor(vars)
}

func expandAll(words []string, mapping func(string) string) []string {
	var out []string
	for _, word := range words {
		out = append(out, expansion.Expand(word, mapping))
	}
	return out
}
