package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/util/parsers"
)

// That an image is on the node does not mean that every Pod may use it. The kubelet keeps
// a record of the images that it pulled and of what let it do so; a Pod that has neither
// the same Secret nor the same credentials has to ask the registry itself. Images that
// were there before are everybody's (NeverVerifyPreloadedImages). Upstream:
// k8s.io/kubernetes/pkg/kubelet/images/pullmanager.

// pullSecret is where credentials came from, and what they are, as a hash.
type pullSecret struct {
	UID             types.UID
	Namespace, Name string
	Hash            string
}

// credential is one way to log in to a registry.
type credential struct {
	Username, Password string
	From               pullSecret
}

// pullRecord is who may use an image. It is never changed, only replaced.
type pullRecord struct {
	Everybody bool // it was pulled without credentials
	Secrets   []pullSecret
}

// pullRecords are by the image's id and then by its name without tag or digest, as Pods
// spell it. They are on the node's disk: they outlive the kubelet's process.
type pullRecords map[string]map[string]pullRecord

func (r pullRecords) clone() pullRecords {
	out := make(pullRecords, len(r))
	for id, names := range r {
		out[id] = maps.Clone(names)
	}
	return out
}

// add takes note of a pull that went well; from is the zero value if it needed no
// credentials.
func (r pullRecords) add(image, id string, from pullSecret) {
	name := untagged(image)
	if r[id] == nil {
		r[id] = map[string]pullRecord{}
	}
	was := r[id][name]
	switch {
	case was.Everybody:
	case from == pullSecret{}:
		r[id][name] = pullRecord{Everybody: true}
	default:
		secrets := slices.DeleteFunc(slices.Clone(was.Secrets), func(s pullSecret) bool { return s.sameObject(from) })
		r[id][name] = pullRecord{Secrets: append(secrets, from)}
	}
}

func (s pullSecret) sameObject(o pullSecret) bool {
	return s.UID == o.UID && s.Namespace == o.Namespace && s.Name == o.Name
}

// untagged is a reference without its tag and digest.
func untagged(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}

// access is what the records say of a Pod and an image that is on the node.
type access int

const (
	allowed access = iota
	denied         // it has to be pulled again
	asksFor        // it depends on the Pod's Secrets
)

// accessTo answers as far as that can be said without the Pod's Secrets.
func (kl *Kubelet) accessTo(w *worker, id string) access {
	names, ours := kl.Pulled[id]
	ours = ours || slices.ContainsFunc(kl.Pulls, func(p pull) bool { return p.Image == w.Op.Image })
	r, known := names[untagged(w.Op.Image)]
	switch {
	case !ours, r.Everybody:
		return allowed
	case !known, len(w.Pod.Spec.ImagePullSecrets) == 0:
		return denied
	}
	return asksFor
}

// verify has the Pod's Secrets: are they, or what is in them, those of an earlier pull?
func (kl *Kubelet) verify(w *worker) {
	id := w.Op.Present.ID
	record := kl.Pulled[id][untagged(w.Op.Image)]
	creds, _ := w.pullCredentials()
	for _, c := range creds {
		for _, s := range record.Secrets {
			if s.Hash == c.From.Hash || s.sameObject(c.From) {
				kl.Pulled.add(w.Op.Image, id, c.From)
				kl.imageFound(w, w.Op.Present)
				return
			}
		}
	}
	kl.imageDenied(w)
}

// imageDenied pulls an image that is there, with what the Pod itself has. A Pod that may
// never pull is not even told that it is there.
func (kl *Kubelet) imageDenied(w *worker) {
	spec, _ := w.spec(w.Op.Container)
	if spec.ImagePullPolicy == corev1.PullNever {
		kl.neverPulled(w, spec)
		return
	}
	kl.pullImage(w, spec)
}

// pullCredentials looks through the Pod's Secrets for the registry of the image that the
// operation is about; missing are the Secrets that there are not.
func (w *worker) pullCredentials() (creds []credential, missing []string) {
	repo, _, _, _ := parsers.ParseImageName(w.Op.Image)
	for _, ref := range w.Pod.Spec.ImagePullSecrets {
		s, ok := w.Got[secretKey(ref.Name)].Object.(*corev1.Secret)
		if !ok {
			missing = append(missing, ref.Name)
			continue
		}
		if user, password, ok := credentials(s, repo); ok {
			sum := sha256.Sum256([]byte(user + "\x00" + password))
			creds = append(creds, credential{user, password, pullSecret{s.UID, s.Namespace, s.Name, hex.EncodeToString(sum[:])}})
		}
	}
	return creds, missing
}
