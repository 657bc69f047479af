package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"podwalk/engine/kernel"
	"podwalk/engine/kube"
)

const (
	tokenMountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolume    = "kube-api-access-"
	// tokenSeconds is one hour and seven seconds: the number by which upstream recognises
	// that nobody asked for another.
	tokenSeconds = 3607
)

// ServiceAccount gives a Pod its service account and mounts the account's token into
// every container. Upstream: plugin/pkg/admission/serviceaccount. Left out: the
// deprecated annotation that limits mountable Secrets.
type ServiceAccount struct{ names *kernel.Rand }

// Name implements Plugin.
func (*ServiceAccount) Name() string { return "ServiceAccount" }

// Admit implements Mutator.
func (p *ServiceAccount) Admit(a *Attributes, c Cluster) error {
	if !a.isPod(Create) {
		return nil
	}
	pod := a.Object.(*corev1.Pod)
	if mirror(pod) {
		return p.Validate(a, c)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
		pod.Spec.DeprecatedServiceAccount = "default"
	}
	sa, err := account(a, c, pod)
	if err != nil {
		return err
	}
	if automount(sa, pod) {
		p.mount(pod)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append([]corev1.LocalObjectReference(nil), sa.ImagePullSecrets...)
	}
	return nil
}

// Validate implements Validator.
func (*ServiceAccount) Validate(a *Attributes, c Cluster) error {
	if !a.isPod(Create) {
		return nil
	}
	pod := a.Object.(*corev1.Pod)
	if mirror(pod) {
		if pod.Spec.ServiceAccountName != "" {
			return a.forbid(fmt.Errorf("a mirror pod may not reference service accounts"))
		}
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		return a.forbid(fmt.Errorf("no service account specified for pod %s/%s", a.Namespace, pod.Name))
	}
	_, err := account(a, c, pod)
	return err
}

func mirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

func account(a *Attributes, c Cluster, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	name := pod.Spec.ServiceAccountName
	o, ok := c.Get(kube.ServiceAccounts, a.Namespace, name)
	if !ok {
		return nil, a.forbid(fmt.Errorf("error looking up service account %s/%s: %w", a.Namespace, name,
			apierrors.NewNotFound(corev1.Resource("serviceaccount"), name)))
	}
	return o.(*corev1.ServiceAccount), nil
}

func automount(sa *corev1.ServiceAccount, pod *corev1.Pod) bool {
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case sa.AutomountServiceAccountToken != nil:
		return *sa.AutomountServiceAccountToken
	}
	return true
}

// mount adds the token's volume, and a mount of it to each container that has nothing at
// its path.
func (p *ServiceAccount) mount(pod *corev1.Pod) {
	name, had := "", false
	for _, v := range pod.Spec.Volumes {
		if strings.HasPrefix(v.Name, tokenVolume) {
			name, had = v.Name, true
			break
		}
	}
	if name == "" {
		name = tokenVolume + p.names.Suffix(5)
	}
	needed := false
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenMountPath }) {
				continue
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenMountPath})
			needed = true
		}
	}
	if !had && needed {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: tokenSource()}})
	}
}

func tokenSource() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}
}
