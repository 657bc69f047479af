package engine

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/scenario"
	"podwalk/engine/trace"
)

// Play carries out one step of a scenario. namespace is that of the kubeconfig's
// context. A request that the cluster refuses is no error: it is part of the story.
func (e *Engine) Play(s scenario.Step, namespace string) error {
	switch {
	case s.Apply != "":
		return e.ApplyManifest([]byte(s.Apply), namespace)
	case s.Patch != nil:
		return e.patch(*s.Patch, namespace)
	case s.Delete != nil:
		k, err := kube.Named(s.Delete.Kind)
		if err != nil {
			return err
		}
		e.deleteObject(k, inNamespace(k, s.Delete.Namespace, namespace), s.Delete.Name, nil)
		return nil
	case s.Switch != nil:
		return e.Switch(*s.Switch)
	case s.Advance != 0:
		e.Advance(time.Duration(s.Advance))
	case s.Settle:
		e.Settle(0)
	case s.Kubectl != "":
		return fmt.Errorf("a kubectl step needs a kubectl session")
	}
	return nil
}

// ApplyManifest creates every object of a manifest file, as kubectl create does. An
// object that the cluster refuses is part of the story, not an error; an error is a
// manifest that no kubectl would send.
func (e *Engine) ApplyManifest(data []byte, namespace string) error {
	docs, err := scenario.Documents(data)
	if err != nil {
		return err
	}
	for _, d := range docs {
		gvk := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
		k, ok := kube.ByKind(gvk)
		if !ok {
			return noMatches(d)
		}
		ns := inNamespace(k, d.Namespace, namespace)
		e.Do(wire.Request{
			Verb: wire.Create, Resource: k.Resource, Namespace: ns, Name: "", Body: d.JSON, MediaType: runtime.ContentTypeJSON,
			Path:       path(k, ns, "", "", url.Values{"fieldManager": {"kubectl-create"}, "fieldValidation": {"Strict"}}),
			Credential: Admin, UserAgent: "kubectl/" + kube.Version,
			Options: wire.Options{FieldManager: "kubectl-create", FieldValidation: metav1.FieldValidationStrict},
		})
	}
	return nil
}

// CheckManifest reports what kubectl would refuse about a manifest file before it sends
// anything: broken YAML, something that is no object, a kind that does not exist.
func CheckManifest(data []byte) error {
	docs, err := scenario.Documents(data)
	if err != nil {
		return err
	}
	for _, d := range docs {
		k, ok := kube.ByKind(schema.FromAPIVersionAndKind(d.APIVersion, d.Kind))
		if !ok {
			return noMatches(d)
		}
		strict, err := json.UnmarshalStrict(d.JSON, k.New(), json.DisallowUnknownFields)
		if err == nil {
			err = errors.Join(strict...)
		}
		if err != nil {
			return fmt.Errorf("%s (%s %s): %w", d.Where(), d.Kind, d.Name, scenario.Plainly(err))
		}
	}
	return nil
}

func noMatches(d scenario.Document) error {
	return fmt.Errorf("%s: no matches for kind %q in version %q; there is no such kind in this cluster, check the spelling of both", d.Where(), d.Kind, d.APIVersion)
}

// path is the URL path of a request, as it stands in kubectl -v=8.
func path(k kube.Kind, namespace, name, subresource string, query url.Values) string {
	var b strings.Builder
	if k.Resource.Group == "" {
		b.WriteString("/api/" + k.Resource.Version)
	} else {
		b.WriteString("/apis/" + k.Resource.Group + "/" + k.Resource.Version)
	}
	if k.Namespaced {
		b.WriteString("/namespaces/" + namespace)
	}
	b.WriteString("/" + k.Resource.Resource)
	for _, part := range []string{name, subresource} {
		if part != "" {
			b.WriteString("/" + part)
		}
	}
	if len(query) > 0 {
		b.WriteString("?" + query.Encode())
	}
	return b.String()
}

func inNamespace(k kube.Kind, own, context string) string {
	switch {
	case !k.Namespaced:
		return ""
	case own != "":
		return own
	case context != "":
		return context
	}
	return metav1.NamespaceDefault
}

func (e *Engine) patch(p scenario.Patch, namespace string) error {
	k, err := kube.Named(p.Kind)
	if err != nil {
		return err
	}
	ns := inNamespace(k, p.Namespace, namespace)
	body, err := yaml.YAMLToJSON([]byte(p.With))
	if err != nil {
		return fmt.Errorf("the patch of %s %s: %w", p.Kind, p.Name, err)
	}
	if p.Replace {
		old, ok := e.Get(k.Resource, ns, p.Name)
		if !ok {
			return fmt.Errorf("there is no %s %s to replace", k.Kind.Kind, p.Name)
		}
		if body, err = patched(k, old, body); err != nil {
			return err
		}
		return e.replace(k, ns, p.Name, body)
	}
	e.Do(wire.Request{
		Verb: wire.Patch, Resource: k.Resource, Namespace: ns, Name: p.Name, Body: body,
		PatchType: types.StrategicMergePatchType, MediaType: string(types.StrategicMergePatchType),
		Path:       path(k, ns, p.Name, "", url.Values{"fieldManager": {"kubectl-patch"}}),
		Credential: Admin, UserAgent: "kubectl/" + kube.Version, Options: wire.Options{FieldManager: "kubectl-patch"},
	})
	return nil
}

// replace deletes an object and creates another in its place, as kubectl replace --force.
func (e *Engine) replace(k kube.Kind, ns, name string, body []byte) error {
	now := int64(0) // --force does not wait for a graceful end
	e.deleteObject(k, ns, name, &metav1.DeleteOptions{GracePeriodSeconds: &now})
	for range 300 { // finalizers and the garbage collector may hold it a while
		if _, still := e.Get(k.Resource, ns, name); !still {
			break
		}
		e.Advance(100 * time.Millisecond)
	}
	if e.aside == nil { // it is asked for again
		e.perform(e.record(Command{Forget: &trace.Ref{Kind: k.Kind.Kind, Namespace: ns, Name: name}}))
	}
	return e.ApplyManifest(body, ns)
}

func patched(k kube.Kind, old runtime.Object, patch []byte) ([]byte, error) {
	clean := old.DeepCopyObject()
	m, err := meta.Accessor(clean)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion("")
	m.SetUID("")
	m.SetGeneration(0)
	m.SetCreationTimestamp(metav1.Time{})
	m.SetManagedFields(nil)
	clean.GetObjectKind().SetGroupVersionKind(k.Kind)
	before, err := stdjson.Marshal(clean)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, k.New())
	if err != nil {
		return nil, err
	}
	// What the cluster decided for the old one is not part of a manifest.
	var o map[string]any
	if err := stdjson.Unmarshal(after, &o); err != nil {
		return nil, err
	}
	delete(o, "status")
	if spec, ok := o["spec"].(map[string]any); ok && k.Kind.Kind == "Pod" {
		delete(spec, "nodeName")
	}
	return stdjson.Marshal(o)
}

func (e *Engine) deleteObject(k kube.Kind, ns, name string, o *metav1.DeleteOptions) {
	e.Do(wire.Request{
		Verb: wire.Delete, Resource: k.Resource, Namespace: ns, Name: name,
		Path: path(k, ns, name, "", nil), Credential: Admin, UserAgent: "kubectl/" + kube.Version,
		Options: wire.Options{Delete: o},
	})
}
