package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"podwalk/engine/cri"
)

// volumeFiles is what a volume holds when it is mounted, or why it cannot be.
func (kl *Kubelet) volumeFiles(w *worker, v *corev1.Volume) (map[string]string, error) {
	got := func(key string) fetched { return w.Got[v.Name+"\x00"+key] }
	files := map[string]string{}
	switch {
	case v.ConfigMap != nil:
		return files, fromConfigMap(files, got(configMapKey(v.ConfigMap.Name)), v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		return files, fromSecret(files, got(secretKey(v.Secret.SecretName)), v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		return files, kl.fromDownward(w, files, v.DownwardAPI.Items)
	case v.Projected != nil:
		return files, kl.fromProjected(w, files, v.Projected, got)
	case v.HostPath != nil:
		return nil, hostPathError(v.HostPath)
	case v.CSI != nil:
		if !slices.Contains(kl.cfg.CSIDrivers, v.CSI.Driver) {
			return nil, fmt.Errorf("kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name %s not found in the list of registered CSI drivers", v.CSI.Driver)
		}
		if err := got(publishKey).Err; err != "" {
			return nil, fmt.Errorf("%s", err)
		}
	case v.PersistentVolumeClaim != nil:
		if err := kl.claimError(w, v, got); err != nil {
			return nil, claimUnusable{err}
		}
		return nil, kl.attachError(v, got, got(claimKey(v.PersistentVolumeClaim.ClaimName)).Object.(*corev1.PersistentVolumeClaim))
	case v.NFS != nil:
		return nil, nfsError(w, v)
	}
	return nil, nil
}

// nfsError is what mount says on a node that has no client for NFS.
func nfsError(w *worker, v *corev1.Volume) error {
	dir := fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~nfs/%s", w.UID, v.Name)
	return fmt.Errorf("mount failed: exit status 32\nMounting command: mount\nMounting arguments:  -t nfs %s:%s %s\n"+
		"Output: mount: %s: unknown filesystem type 'nfs'.\n       dmesg(1) may have more information after failed mount system call.\n",
		v.NFS.Server, v.NFS.Path, dir, dir)
}

// claimUnusable is an error of the volume manager's desired state: it is told by the pass
// that waits for it, not by an operation on the volume.
type claimUnusable struct{ error }

func fromConfigMap(files map[string]string, got fetched, items []corev1.KeyToPath, optional *bool) error {
	if got.Err != "" {
		if got.Absent && yes(optional) {
			return nil
		}
		return fmt.Errorf("%s", got.Err)
	}
	cm := got.Object.(*corev1.ConfigMap)
	all := maps.Clone(cm.Data)
	if all == nil {
		all = map[string]string{}
	}
	for k, b := range cm.BinaryData {
		all[k] = string(b)
	}
	return pick(files, all, items, optional, "configmap references non-existent config key: %s")
}

func fromSecret(files map[string]string, got fetched, items []corev1.KeyToPath, optional *bool) error {
	if got.Err != "" {
		if got.Absent && yes(optional) {
			return nil
		}
		return fmt.Errorf("%s", got.Err)
	}
	all := map[string]string{}
	for k, b := range got.Object.(*corev1.Secret).Data {
		all[k] = string(b)
	}
	return pick(files, all, items, optional, "references non-existent secret key: %s")
}

func pick(files, all map[string]string, items []corev1.KeyToPath, optional *bool, missing string) error {
	if items == nil {
		maps.Copy(files, all)
		return nil
	}
	for _, it := range items {
		content, ok := all[it.Key]
		if !ok {
			if yes(optional) {
				continue
			}
			return fmt.Errorf(missing, it.Key)
		}
		files[it.Path] = content
	}
	return nil
}

func (kl *Kubelet) fromDownward(w *worker, files map[string]string, items []corev1.DownwardAPIVolumeFile) error {
	for _, it := range items {
		var value string
		var err error
		if it.FieldRef != nil {
			value, err = kl.fieldValue(w, it.FieldRef)
		} else if it.ResourceFieldRef != nil {
			spec, _ := w.spec(it.ResourceFieldRef.ContainerName)
			if spec == nil {
				return fmt.Errorf("container %s not found", it.ResourceFieldRef.ContainerName)
			}
			value, err = kl.resourceValue(w, spec, it.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		files[it.Path] = value
	}
	return nil
}

func (kl *Kubelet) fromProjected(w *worker, files map[string]string, p *corev1.ProjectedVolumeSource, got func(string) fetched) error {
	for _, s := range p.Sources {
		var err error
		switch {
		case s.ConfigMap != nil:
			err = fromConfigMap(files, got(configMapKey(s.ConfigMap.Name)), s.ConfigMap.Items, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = fromSecret(files, got(secretKey(s.Secret.Name)), s.Secret.Items, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = kl.fromDownward(w, files, s.DownwardAPI.Items)
		case s.ServiceAccountToken != nil:
			t := got(tokenKey)
			if t.Err != "" {
				return fmt.Errorf("%s", t.Err)
			}
			if req, ok := t.Object.(*authenticationv1.TokenRequest); ok {
				files[s.ServiceAccountToken.Path] = req.Status.Token
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hostPaths are the paths of a node that host-path checks can find, by kind.
var hostPaths = map[string]string{
	"/": "Directory", "/etc": "Directory", "/tmp": "Directory", "/var": "Directory", "/var/log": "Directory", "/var/lib": "Directory", "/opt": "Directory",
	"/home": "Directory", "/root": "Directory", "/usr": "Directory", "/proc": "Directory", "/sys": "Directory", "/dev": "Directory", "/run": "Directory", "/mnt": "Directory", "/srv": "Directory",
	"/etc/kubernetes": "Directory", "/etc/kubernetes/manifests": "Directory", "/etc/kubernetes/pki": "Directory", "/var/lib/etcd": "Directory", "/var/lib/kubelet": "Directory",
	"/etc/passwd": "File", "/etc/hosts": "File", "/etc/hostname": "File", "/etc/resolv.conf": "File", "/etc/os-release": "File",
	"/run/containerd/containerd.sock": "Socket", "/dev/null": "CharDevice", "/dev/zero": "CharDevice",
}

// hostPathError is upstream's check of the type of a hostPath.
func hostPathError(h *corev1.HostPathVolumeSource) error {
	if h.Type == nil {
		return nil
	}
	path := strings.TrimSuffix(h.Path, "/")
	if path == "" {
		path = "/"
	}
	is, there := hostPaths[path]
	var want, word string
	switch *h.Type {
	case corev1.HostPathDirectory:
		want, word = "Directory", "directory"
	case corev1.HostPathFile:
		want, word = "File", "file"
	case corev1.HostPathSocket:
		want, word = "Socket", "socket file"
	case corev1.HostPathCharDev:
		want, word = "CharDevice", "character device"
	case corev1.HostPathBlockDev:
		want, word = "BlockDevice", "block device"
	case corev1.HostPathDirectoryOrCreate:
		want, word, there = "Directory", "directory", there || is == ""
		if is == "" {
			return nil
		}
	case corev1.HostPathFileOrCreate:
		want, word = "File", "file"
		if is == "" {
			return nil
		}
	default:
		return nil
	}
	switch {
	case !there:
		return fmt.Errorf("hostPath type check failed, %s is not a %s, unable to determine its type: path %q does not exist", h.Path, word, h.Path)
	case is != want:
		return fmt.Errorf("hostPath type check failed: %s is not a %s, it's a %s", h.Path, word, is)
	}
	return nil
}

// mounts are a container's file systems: its volumes, and the files that the kubelet
// manages itself.
func (kl *Kubelet) mounts(w *worker, spec *corev1.Container, env []cri.EnvVar) ([]cri.Mount, error) {
	vars := map[string]string{}
	for _, e := range env {
		vars[e.Name] = e.Value
	}
	var out []cri.Mount
	hosts := false
	for _, m := range spec.VolumeMounts {
		st := w.Volumes[m.Name]
		if st == nil || !st.Mounted {
			return nil, fmt.Errorf("cannot find volume %q to mount into container %q", m.Name, spec.Name)
		}
		sub := m.SubPath
		if m.SubPathExpr != "" {
			for _, name := range referenced(m.SubPathExpr) {
				if _, ok := vars[name]; !ok {
					return nil, fmt.Errorf("missing value for %s", name)
				}
			}
			sub = expansion.Expand(m.SubPathExpr, expansion.MappingFuncFor(vars))
		}
		hosts = hosts || m.MountPath == "/etc/hosts"
		share := m.Name
		if st.Share != "" {
			share = st.Share
		}
		host, nodes := hostPathOf(w.Pod, m.Name)
		if nodes {
			share = host
		}
		out = append(out, cri.Mount{
			Volume: share, Path: m.MountPath, ReadOnly: m.ReadOnly, SubPath: sub, Files: st.Files, Medium: mediumOf(w.Pod, m.Name),
			HostPath: host, Outlives: nodes || st.Share != "",
		})
	}
	if !hosts && w.PodIP != "" {
		out = append(out, cri.Mount{Path: "/etc/hosts", Files: map[string]string{"": kl.hostsFile(w)}})
	}
	out = append(out, cri.Mount{Path: "/etc/resolv.conf", Files: map[string]string{"": kl.resolvConf(w.Pod)}})
	return out, nil
}

// referenced returns the variables that an expression names, in order.
func referenced(expr string) []string {
	var names []string
	expansion.Expand(expr, func(name string) string {
		names = append(names, name)
		return ""
	})
	return names
}

// hostPathOf is where a volume is on the node; nodes says that it is the node's own.
func hostPathOf(pod *corev1.Pod, name string) (path string, nodes bool) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Name != name {
			continue
		}
		plugin := "csi"
		switch {
		case v.HostPath != nil:
			return v.HostPath.Path, true
		case v.EmptyDir != nil:
			plugin = "empty-dir"
		case v.ConfigMap != nil:
			plugin = "configmap"
		case v.Secret != nil:
			plugin = "secret"
		case v.Projected != nil:
			plugin = "projected"
		case v.DownwardAPI != nil:
			plugin = "downward-api"
		}
		return fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~%s/%s", pod.UID, plugin, name), false
	}
	return "", false
}

func mediumOf(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name && v.EmptyDir != nil {
			return string(v.EmptyDir.Medium)
		}
	}
	return ""
}

// hostsFile is the /etc/hosts that the kubelet writes for a Pod.
func (kl *Kubelet) hostsFile(w *worker) string {
	var b strings.Builder
	if w.Pod.Spec.HostNetwork {
		b.WriteString("127.0.0.1\tlocalhost\n" + kl.cfg.IP + "\t" + kl.cfg.Node + "\n")
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
		b.WriteString("fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
		name := hostname(w.Pod)
		if sub := w.Pod.Spec.Subdomain; sub != "" {
			name = name + "." + sub + "." + w.Pod.Namespace + ".svc.cluster.local\t" + name
		}
		b.WriteString(w.PodIP + "\t" + name + "\n")
	}
	if len(w.Pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range w.Pod.Spec.HostAliases {
			b.WriteString(a.IP + "\t" + strings.Join(a.Hostnames, "\t") + "\n")
		}
	}
	return b.String()
}

// resolvConf is the /etc/resolv.conf of a Pod, by its dnsPolicy.
func (kl *Kubelet) resolvConf(pod *corev1.Pod) string {
	policy := pod.Spec.DNSPolicy
	if policy == corev1.DNSClusterFirst && pod.Spec.HostNetwork {
		policy = corev1.DNSDefault
	}
	var servers, search, options []string
	switch policy {
	case corev1.DNSDefault:
		servers = []string{"127.0.0.53"}
	case corev1.DNSNone:
	default:
		servers, options = []string{kl.cfg.ClusterDNS}, []string{"ndots:5"}
		search = []string{pod.Namespace + ".svc.cluster.local", "svc.cluster.local", "cluster.local"}
	}
	if c := pod.Spec.DNSConfig; c != nil {
		servers, search = append(servers, c.Nameservers...), append(search, c.Searches...)
		for _, o := range c.Options {
			if o.Value != nil {
				options = append(options, o.Name+":"+*o.Value)
			} else {
				options = append(options, o.Name)
			}
		}
	}
	var b strings.Builder
	if len(search) > 0 {
		b.WriteString("search " + strings.Join(search, " ") + "\n")
	}
	for _, s := range servers {
		b.WriteString("nameserver " + s + "\n")
	}
	if len(options) > 0 {
		b.WriteString("options " + strings.Join(options, " ") + "\n")
	}
	return b.String()
}
