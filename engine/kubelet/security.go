package kubelet

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// userOf returns the user and group that a container runs as, and whether the Pod says
// so itself (rather than its image, whose user is given).
func userOf(pod *corev1.Pod, spec *corev1.Container, image string) (uid, gid int64, given bool) {
	if p := pod.Spec.SecurityContext; p != nil {
		if p.RunAsUser != nil {
			uid, given = *p.RunAsUser, true
		}
		if p.RunAsGroup != nil {
			gid = *p.RunAsGroup
		}
	}
	if c := spec.SecurityContext; c != nil {
		if c.RunAsUser != nil {
			uid, given = *c.RunAsUser, true
		}
		if c.RunAsGroup != nil {
			gid = *c.RunAsGroup
		}
	}
	if !given {
		uid, _ = imageUser(image)
	}
	return uid, gid, given
}

// imageUser is the numeric user of an image's config; ok is false for a name.
func imageUser(user string) (uid int64, ok bool) {
	user, _, _ = strings.Cut(user, ":")
	if user == "" || user == "root" {
		return 0, true
	}
	uid, err := strconv.ParseInt(user, 10, 64)
	return uid, err == nil
}

// verifyNonRoot is upstream's verifyRunAsNonRoot.
func verifyNonRoot(pod *corev1.Pod, spec *corev1.Container, image string) error {
	var nonRoot bool
	if p := pod.Spec.SecurityContext; p != nil && p.RunAsNonRoot != nil {
		nonRoot = *p.RunAsNonRoot
	}
	if c := spec.SecurityContext; c != nil && c.RunAsNonRoot != nil {
		nonRoot = *c.RunAsNonRoot
	}
	if !nonRoot {
		return nil
	}
	if uid, _, given := userOf(pod, spec, ""); given {
		if uid == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy (pod: %q, container: %s)", podName(pod), spec.Name)
		}
		return nil
	}
	uid, numeric := imageUser(image)
	switch {
	case image == "root", !numeric:
		name, _, _ := strings.Cut(image, ":")
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root (pod: %q, container: %s)", name, podName(pod), spec.Name)
	case uid == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root (pod: %q, container: %s)", podName(pod), spec.Name)
	}
	return nil
}
