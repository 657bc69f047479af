package kubelet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// fetched is a ConfigMap or Secret that a Pod names, or why the kubelet has it not.
type fetched struct {
	Object runtime.Object
	Err    string // as the kubelet says it: `configmap "settings" not found`
	Absent bool
}

// fetchTag is the tag of a GET for the operation that is under way.
type fetchTag struct {
	UID  types.UID
	Pass uint64
	Key  string
}

func configMapKey(name string) string { return "configmap/" + name }
func secretKey(name string) string    { return "secret/" + name }

// envSources lists what a container's environment is made from.
func envSources(spec *corev1.Container) []string {
	var keys []string
	for _, f := range spec.EnvFrom {
		if f.ConfigMapRef != nil {
			keys = append(keys, configMapKey(f.ConfigMapRef.Name))
		}
		if f.SecretRef != nil {
			keys = append(keys, secretKey(f.SecretRef.Name))
		}
	}
	for i := range spec.Env {
		v := spec.Env[i].ValueFrom
		if v == nil {
			continue
		}
		if v.ConfigMapKeyRef != nil {
			keys = append(keys, configMapKey(v.ConfigMapKeyRef.Name))
		}
		if v.SecretKeyRef != nil {
			keys = append(keys, secretKey(v.SecretKeyRef.Name))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (kl *Kubelet) fetchForEnv(w *worker, spec *corev1.Container) { kl.fetchAll(w, envSources(spec)) }

func (kl *Kubelet) fetchPullSecrets(w *worker) {
	var keys []string
	for _, s := range w.Pod.Spec.ImagePullSecrets {
		keys = append(keys, secretKey(s.Name))
	}
	slices.Sort(keys)
	kl.fetchAll(w, slices.Compact(keys))
}

// fetchAll asks for everything that the operation needs and goes on when all is there.
func (kl *Kubelet) fetchAll(w *worker, keys []string) {
	w.Wanted = len(keys)
	if w.Wanted == 0 {
		kl.haveAll(w)
		return
	}
	for _, key := range keys {
		kl.get(w, key, fetchTag{w.UID, w.Pass, key})
	}
}

func (kl *Kubelet) get(w *worker, key string, tag any) {
	kind, name := splitKey(key)
	gvr := kube.ConfigMaps
	switch kind {
	case "secret":
		gvr = kube.Secrets
	case "persistentvolumeclaim":
		gvr = kube.PVCs
	}
	kl.c.Do(wire.Request{Verb: wire.Get, Resource: gvr, Namespace: w.Pod.Namespace, Name: name, Tag: tag, Background: true})
}

func splitKey(key string) (kind, name string) {
	for i := range len(key) {
		if key[i] == '/' {
			return key[:i], key[i+1:]
		}
	}
	return key, ""
}

// result words an answer as the kubelet's managers do.
func result(key string, a wire.Answer) fetched {
	err := a.Err()
	switch {
	case err == nil:
		return fetched{Object: a.Object}
	case apierrors.IsNotFound(err):
		kind, name := splitKey(key)
		return fetched{Err: fmt.Sprintf("%s %q not found", kind, name), Absent: true}
	}
	return fetched{Err: err.Error()}
}

func (kl *Kubelet) fetchedOne(t fetchTag, a wire.Answer) {
	w := kl.Workers[t.UID]
	if w == nil || !w.Running || w.Pass != t.Pass {
		return
	}
	got := result(t.Key, a)
	w.Got[t.Key] = got
	st := stage.Create
	if w.Op.Step == stepPull || w.Op.Step == stepVerify {
		st = stage.Image
	}
	kl.fetchHop(w, st, t.Key, got)
	if w.Wanted--; w.Wanted == 0 {
		kl.haveAll(w)
	}
}

// fetchHop tells what the API server gave or refused.
func (kl *Kubelet) fetchHop(w *worker, st stage.ID, key string, got fetched) {
	kind, name := splitKey(key)
	h := trace.Hop{Stage: st, From: kl.me, To: stage.APIServer, Verb: "GET " + kind, Message: name}
	if got.Err != "" {
		h.Outcome, h.Message = trace.Retry, got.Err
	}
	kl.hop(w, h)
}

func (kl *Kubelet) haveAll(w *worker) {
	switch w.Op.Step {
	case stepVerify:
		kl.verify(w)
	case stepPull:
		kl.enqueuePull(w)
	default:
		kl.configured(w)
	}
}
