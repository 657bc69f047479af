package kubelet

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/pkg/util/parsers"

	"podwalk/engine/cri"
	"podwalk/engine/kernel"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// pull is one place in the queue of pulls: the kubelet pulls one image at a time.
type pull struct {
	UID       types.UID
	Container string
	Image     string // with its tag
	// Creds are what is left to try, the first of them now; none for a pull without.
	Creds  []credential
	Errors []string // of those that were tried
	Since  kernel.Time
}

// The waiting reasons of images.
const (
	errImagePull      = "ErrImagePull"
	imagePullBackOff  = "ImagePullBackOff"
	errImageNeverPull = "ErrImageNeverPull"
	errImageInspect   = "ImageInspectError"
	invalidImageName  = "InvalidImageName"
)

// ensureImage is upstream's EnsureImageExists up to the question whether the image is
// there.
func (kl *Kubelet) ensureImage(w *worker) {
	spec, _ := w.spec(w.Op.Container)
	_, tag, digest, err := parsers.ParseImageName(spec.Image)
	if err != nil {
		message := fmt.Sprintf("Failed to apply default image tag %q: %v", spec.Image, err)
		kl.event(w, spec.Name, corev1.EventTypeWarning, "InspectFailed", message)
		kl.imageFailed(w, spec, invalidImageName, message, trace.Failed)
		return
	}
	w.Op.Image = spec.Image
	if digest == "" && tag != "" && !strings.HasSuffix(spec.Image, ":"+tag) {
		w.Op.Image += ":" + tag
	}
	if spec.ImagePullPolicy == corev1.PullAlways {
		kl.pullImage(w, spec)
		return
	}
	w.Op.Step = stepInspect
	kl.askFor(w, cri.ImageStatus{Image: w.Op.Image})
}

func (kl *Kubelet) imageInspected(w *worker, r cri.Response) {
	spec, _ := w.spec(w.Op.Container)
	switch {
	case r.Err != "":
		message := fmt.Sprintf("Failed to inspect image %q: %v", "", r.Err)
		kl.event(w, spec.Name, corev1.EventTypeWarning, "InspectFailed", message)
		kl.imageFailed(w, spec, errImageInspect, message, trace.Retry)
	case r.Image.ID != "":
		switch kl.accessTo(w, r.Image.ID) {
		case allowed:
			kl.imageFound(w, r.Image)
		case denied:
			kl.imageDenied(w)
		case asksFor:
			w.Op.Step, w.Op.Present = stepVerify, r.Image
			kl.fetchPullSecrets(w)
		}
	case spec.ImagePullPolicy == corev1.PullNever:
		kl.neverPulled(w, spec)
	default:
		kl.pullImage(w, spec)
	}
}

// imageFound goes on with an image that is there and that the Pod may use.
func (kl *Kubelet) imageFound(w *worker, image cri.ImageInfo) {
	spec, _ := w.spec(w.Op.Container)
	message := fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", spec.Image)
	kl.event(w, spec.Name, corev1.EventTypeNormal, "Pulled", message)
	kl.hop(w, trace.Hop{Stage: stage.Image, From: kl.me, To: kl.containerd(), Verb: "ImageStatus", Reason: "Pulled", Message: message,
		Detail: trace.Pull{Image: spec.Image, Layers: image.Layers, Cached: image.Layers, SizeBytes: image.SizeBytes}})
	kl.imageReady(w, image)
}

func (kl *Kubelet) neverPulled(w *worker, spec *corev1.Container) {
	message := fmt.Sprintf("Container image %q is not present with pull policy of Never", spec.Image)
	kl.event(w, spec.Name, corev1.EventTypeWarning, errImageNeverPull, message)
	kl.imageFailed(w, spec, errImageNeverPull, message, trace.Retry)
}

// imageFailed ends the start of a container for want of its image.
func (kl *Kubelet) imageFailed(w *worker, spec *corev1.Container, reason, message string, outcome trace.Outcome) {
	kl.event(w, spec.Name, corev1.EventTypeWarning, "Failed", "Error: "+reason)
	kl.hop(w, trace.Hop{Stage: stage.Image, From: kl.containerd(), To: kl.me, Verb: "PullImage", Outcome: outcome, Reason: reason, Message: message})
	kl.startFailed(w, reason, message)
}

func (kl *Kubelet) imageReady(w *worker, image cri.ImageInfo) {
	w.Op.ImageID, w.Op.User = image.ID, image.User
	w.Op.Ref = image.Ref
	kl.configure(w)
}

// pullImage asks for the image unless its last pull failed a short while ago.
func (kl *Kubelet) pullImage(w *worker, spec *corev1.Container) {
	c := w.container(spec.Name)
	now := kl.k.Now()
	if c.PullImage != spec.Image { // edited meanwhile: another image, another back-off
		c.PullImage, c.Pull, c.PullError = spec.Image, backoff{}, ""
	}
	if c.Pull.On && now.Sub(c.Pull.Since) <= 2*kl.cfg.PullMax && now.Sub(c.Pull.Since) < c.Pull.Delay {
		message := fmt.Sprintf("Back-off pulling image %q", spec.Image)
		kl.event(w, spec.Name, corev1.EventTypeNormal, "BackOff", message)
		if c.PullError != "" {
			message += ": " + c.PullError
		}
		kl.imageFailed(w, spec, imagePullBackOff, message, trace.Retry)
		return
	}
	c.PullError = ""
	fetched := w.Op.Step == stepVerify
	w.Op.Step = stepPull
	if fetched {
		kl.enqueuePull(w)
		return
	}
	kl.fetchPullSecrets(w)
}

// enqueuePull has the Pod's pull secrets, if any.
func (kl *Kubelet) enqueuePull(w *worker) {
	spec, _ := w.spec(w.Op.Container)
	p := pull{UID: w.UID, Container: spec.Name, Image: w.Op.Image, Since: kl.k.Now()}
	p.Creds, w.NoSecrets = w.pullCredentials()
	message := fmt.Sprintf("Pulling image %q", spec.Image)
	kl.event(w, spec.Name, corev1.EventTypeNormal, "Pulling", message)
	kl.hop(w, trace.Hop{Stage: stage.Image, From: kl.me, To: kl.containerd(), Verb: "PullImage", Reason: "Pulling", Message: message})
	w.Stage = "pull"
	kl.Pulls = append(kl.Pulls, p)
	if len(kl.Pulls) == 1 {
		kl.nextPull()
	}
}

func (kl *Kubelet) nextPull() {
	if len(kl.Pulls) == 0 {
		return
	}
	p := kl.Pulls[0]
	if len(p.Errors) == 0 && !kl.mayPull() {
		kl.pullEnded(cri.Response{Err: "pull QPS exceeded"})
		return
	}
	q := cri.PullImage{Image: p.Image}
	if len(p.Creds) > 0 {
		q.Username, q.Password = p.Creds[0].Username, p.Creds[0].Password
	}
	kl.ask(asked{What: askPull, UID: p.UID, Container: p.Container}, q)
}

// mayPull is the kubelet's registryPullQPS and registryBurst: a bucket of so many pulls
// that fills again at so many a second. It is kept as the time at which it will be full.
func (kl *Kubelet) mayPull() bool {
	now, each := kl.k.Now(), time.Second/time.Duration(kl.cfg.PullQPS)
	full := max(kl.PullsFull, now).Add(each)
	if full.Sub(now) > time.Duration(kl.cfg.PullBurst)*each {
		return false
	}
	kl.PullsFull = full
	return true
}

// credentials looks for the registry of an image in a Secret of docker's config format.
func credentials(s *corev1.Secret, repo string) (user, password string, ok bool) {
	type auth struct{ Username, Password, Auth string }
	var hosts map[string]auth
	if raw, is := s.Data[corev1.DockerConfigJsonKey]; is {
		var file struct{ Auths map[string]auth }
		if json.Unmarshal(raw, &file) != nil {
			return "", "", false
		}
		hosts = file.Auths
	} else if json.Unmarshal(s.Data[corev1.DockerConfigKey], &hosts) != nil {
		return "", "", false
	}
	best := ""
	for host := range hosts {
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(host, "https://"), "http://"), "/")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "/v1"), "/v2")
		name = strings.Replace(name, "index.docker.io", "docker.io", 1)
		if (repo == name || strings.HasPrefix(repo, name+"/")) && host > best {
			best = host
		}
	}
	if best == "" {
		return "", "", false
	}
	a := hosts[best]
	if a.Username == "" {
		if plain, err := base64.StdEncoding.DecodeString(a.Auth); err == nil {
			a.Username, a.Password, _ = strings.Cut(string(plain), ":")
		}
	}
	return a.Username, a.Password, true
}

// pulled takes the answer to the pull at the head of the queue.
func (kl *Kubelet) pulled(r cri.Response) {
	if len(kl.Pulls) == 0 {
		return
	}
	p := kl.Pulls[0]
	if r.Err != "" {
		p.Errors = append(slices.Clip(p.Errors), r.Err)
		if len(p.Creds) > 1 { // the next Secret may do
			p.Creds = p.Creds[1:]
			kl.Pulls[0] = p
			kl.nextPull()
			return
		}
		r.Err = aggregate(p.Errors)
	}
	kl.pullEnded(r)
}

// pullEnded goes on with the Pod at the head of the queue, and then with the next one.
func (kl *Kubelet) pullEnded(r cri.Response) {
	p := kl.Pulls[0]
	if kl.Pulls = kl.Pulls[1:]; len(kl.Pulls) > 0 {
		defer kl.nextPull()
	}
	if r.Err == "" {
		kl.Node.ImagesStale = true
		var from pullSecret
		if len(p.Creds) > 0 {
			from = p.Creds[0].From
		}
		kl.Pulled.add(p.Image, r.Image.ID, from)
	}
	w := kl.Workers[p.UID]
	if w == nil || !w.Running || w.Stage != "pull" || w.Op.Container != p.Container {
		return
	}
	w.Stage = "runtime"
	spec, _ := w.spec(p.Container)
	if r.Err != "" {
		kl.pullFailed(w, spec, r)
		return
	}
	took := r.Took
	total := kl.k.Now().Sub(p.Since)
	if took == 0 || took > total {
		took = total
	}
	message := fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		spec.Image, took.Truncate(time.Millisecond), total.Truncate(time.Millisecond), r.Image.SizeBytes)
	kl.event(w, spec.Name, corev1.EventTypeNormal, "Pulled", message)
	kl.hop(w, trace.Hop{Stage: stage.Image, From: kl.containerd(), To: kl.me, Verb: "PullImage", Reason: "Pulled", Message: message,
		Detail: trace.Pull{Image: spec.Image, Layers: r.Image.Layers, Cached: r.Image.Cached, SizeBytes: r.Image.SizeBytes}})
	kl.imageReady(w, r.Image)
}

// aggregate prints the errors of several attempts as one, each once.
func aggregate(errs []string) string {
	list := make([]error, len(errs))
	for i, e := range errs {
		list[i] = errors.New(e)
	}
	return utilerrors.NewAggregate(list).Error()
}

func (kl *Kubelet) pullFailed(w *worker, spec *corev1.Container, r cri.Response) {
	c := w.container(spec.Name)
	kl.event(w, spec.Name, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", spec.Image, r.Err))
	c.Pull.next(kl.k.Now(), kl.cfg.PullInitial, kl.cfg.PullMax)
	reason, message := errImagePull, r.Err
	if detail, ok := strings.CutPrefix(r.Err, "RegistryUnavailable"); ok {
		reason, message = "RegistryUnavailable", fmt.Sprintf("image pull failed for %s because the registry is unavailable%s", spec.Image, detail)
	}
	c.PullError = reason + ": " + message
	kl.imageFailed(w, spec, reason, message, trace.Retry)
	if len(w.NoSecrets) > 0 {
		kl.recorder.Event(w.Pod, corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
			fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(w.NoSecrets, ", ")))
	}
}
