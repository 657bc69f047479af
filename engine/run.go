package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podwalk/engine/kube"
	"podwalk/engine/scenario"
	"podwalk/engine/trace"
)

// Shell runs kubectl against a timeline.
type Shell interface {
	// Kubectl runs one command line, with or without the word kubectl.
	Kubectl(line string) (stdout, stderr string, code int)
	Close() error
}

// Output is what a kubectl command printed, and its exit code.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// Run is a scenario on a timeline, with a kubectl for it. Lessons, exercises, the sandbox
// and the headless trace are all runs.
type Run struct {
	*Timeline
	Scenario scenario.Scenario
	shell    Shell
	// mistake is what is wrong in the manifests that are still to be written.
	mistake Mistake
	// clean are the manifests of workloads as they were before a mistake came in.
	clean map[trace.Ref][]byte
	// Printed, where it is set, is told what each kubectl command of the story printed.
	Printed func(line string, out Output)
}

// CommandError is a command of a story that kubectl itself did not take, or that asked
// for something that there is not. What the cluster refuses is no error.
type CommandError struct {
	Line string
	Output
}

func (e *CommandError) Error() string {
	why := strings.TrimSpace(e.Stderr)
	if why == "" {
		why = fmt.Sprintf("it ends with exit code %d", e.Code)
	}
	return e.Line + ": " + why
}

// Mistake is a patch of a workload's Pod spec: something that is wrong in a manifest.
type Mistake struct {
	Pod       map[string]any // of the Pod spec
	Container map[string]any // of its first container
}

// Empty reports whether there is nothing wrong.
func (m Mistake) Empty() bool { return len(m.Pod) == 0 && len(m.Container) == 0 }

// StartRun makes the scenario's cluster and its setup. newShell makes the kubectl; it may
// be nil for a scenario without kubectl steps. The caller closes the run.
func StartRun(s scenario.Scenario, newShell func(t *Timeline, namespace string) (Shell, error)) (*Run, error) {
	if len(s.Cluster.Nodes) == 0 {
		seed := s.Cluster.Seed
		s.Cluster = scenario.Default()
		if seed != 0 {
			s.Cluster.Seed = seed
		}
	}
	e, err := New(s.Cluster)
	if err != nil {
		return nil, err
	}
	t, err := NewTimeline(e)
	if err != nil {
		return nil, err
	}
	r := &Run{Timeline: t, Scenario: s, clean: map[trace.Ref][]byte{}}
	if newShell != nil {
		if r.shell, err = newShell(t, s.Namespace); err != nil {
			return nil, err
		}
	}
	if len(s.Setup) > 0 {
		if err := r.Play(s.Setup); err != nil {
			return nil, fmt.Errorf("setup: %w", err)
		}
		r.Settle(0)
		r.restart()
	}
	return r, nil
}

// restart makes the head's present the beginning of the story.
func (r *Run) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head.Begin()
	r.frames, r.gap = nil, keyframeTurns
	r.keyframe()
	r.cursor = 0
}

// Close ends the run's kubectl.
func (r *Run) Close() error {
	if r.shell == nil {
		return nil
	}
	return r.shell.Close()
}

// Kubectl runs one command line at the cursor.
func (r *Run) Kubectl(line string) (Output, error) {
	if err := r.Look(); err != nil {
		return Output{}, err
	}
	return r.kubectl(line)
}

// KubectlAside runs a command line at the cursor that only looks: what is refused to it is
// not what the run is judged by.
func (r *Run) KubectlAside(line string) (out Output, err error) {
	r.aside(func() { out, err = r.Kubectl(line) })
	return out, err
}

// aside has somebody else do something, and returns what was refused of it.
func (r *Run) aside(do func()) (refused []uint64) {
	a := &aside{}
	set := func(a *aside) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.head.aside = a
	}
	set(a)
	defer set(nil)
	do()
	return a.refused
}

func (r *Run) kubectl(line string) (Output, error) {
	if r.shell == nil {
		return Output{}, fmt.Errorf("this run has no kubectl")
	}
	stdout, stderr, code := r.shell.Kubectl(line)
	return Output{stdout, stderr, code}, nil
}

// Play carries out steps, one after the other. What the cluster refuses is part of the
// story and no error.
func (r *Run) Play(steps []scenario.Step) error {
	r.Here()
	for _, s := range steps {
		if err := r.play(s); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) play(s scenario.Step) error {
	if s.Kubectl != "" {
		if err := r.command(s.Kubectl); err != nil {
			return err
		}
		if r.others() {
			return nil
		}
		return r.writeMistake()
	}
	if s.Apply != "" && !r.mistake.Empty() && !r.others() {
		if err := r.remember([]byte(s.Apply)); err != nil {
			return err
		}
		text, err := r.mistake.inManifest([]byte(s.Apply))
		if err != nil {
			return err
		}
		s.Apply = string(text)
	}
	return r.Act(func(e *Engine) error { return e.Play(s, r.Scenario.Namespace) })
}

// command runs one command of the story. It is an error where kubectl ends with one that
// no refusal of the cluster is behind; a wait that was in vain is judged by the verdict.
func (r *Run) command(line string) error {
	refused := r.refusals()
	out, err := r.kubectl(line)
	if err != nil {
		return err
	}
	inVain := strings.Contains(out.Stderr, "timed out waiting for the condition") || strings.Contains(out.Stderr, "exceeded its progress deadline")
	if out.Code != 0 && !inVain && r.refusals() == refused {
		return &CommandError{line, out}
	}
	if r.Printed != nil {
		r.Printed(line, out)
	}
	return nil
}

// others reports whether somebody else is acting: his manifests have no mistake.
func (r *Run) others() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head.aside != nil
}

func (r *Run) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.head.refused)
	if r.head.aside != nil {
		n += len(r.head.aside.refused)
	}
	return n
}

// PlayAside carries out steps of somebody else: what they create is not part of what the
// story asks for, and is neither judged nor written again. That the cluster refuses one is
// an error.
func (r *Run) PlayAside(steps []scenario.Step) error {
	var err error
	refused := r.aside(func() { err = r.Play(steps) })
	if len(refused) == 0 {
		return err
	}
	return errors.Join(err, r.Engine(func(e *Engine) error {
		h, _ := e.log.Get(refused[0])
		return errors.New(h.Message)
	}))
}

// Asked reports whether the story has asked for an object of that kind, and whether the
// cluster has refused something of it.
func (r *Run) Asked(kind string) (asked, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range r.head.asked {
		asked = asked || ref.Kind == kind
	}
	return asked, len(r.head.refused) > 0
}

// Engine gives access to the cluster at the head, for as long as f runs.
func (r *Run) Engine(f func(e *Engine) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f(r.head)
}

// Mistake declares what is wrong in the workload's manifest. Manifests that the story
// still brings have it; a workload that exists is written again with it.
func (r *Run) Mistake(m Mistake) error {
	r.Here()
	r.mistake = m
	return r.writeMistake()
}

func (r *Run) writeMistake() error {
	if r.mistake.Empty() {
		return nil
	}
	m := r.mistake
	err := r.Act(func(e *Engine) error {
		for _, ref := range e.workloads() {
			if _, spoilt := r.clean[ref]; spoilt {
				continue // it came with the mistake
			}
			manifest, err := e.manifest(ref)
			if err != nil {
				return err
			}
			r.clean[ref] = manifest
			if err := e.rewrite(ref, m); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// remember keeps the workloads of a manifest file as they stand there.
func (r *Run) remember(data []byte) error {
	docs, err := scenario.Documents(data)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if d.Kind != "Pod" && d.Kind != "Deployment" {
			continue
		}
		ns := d.Namespace
		if ns == "" {
			ns = r.Scenario.Namespace
		}
		if ns == "" {
			ns = metav1.NamespaceDefault
		}
		r.clean[trace.Ref{Kind: d.Kind, Namespace: ns, Name: d.Name}] = d.JSON
	}
	return nil
}

// Recreate writes the story's workloads again, without a mistake, as kubectl replace
// --force does.
func (r *Run) Recreate() error {
	r.Here()
	r.mistake = Mistake{}
	return r.Act(func(e *Engine) error {
		for _, ref := range e.workloads() {
			manifest, spoilt := r.clean[ref]
			if !spoilt {
				var err error
				if manifest, err = e.manifest(ref); err != nil {
					return err
				}
			}
			delete(r.clean, ref)
			k, err := kube.Named(ref.Kind)
			if err != nil {
				return err
			}
			if err := e.replace(k, ref.Namespace, ref.Name, manifest); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forgive forgets what was refused so far: the verdict judges what comes.
func (r *Run) Forgive() {
	_ = r.Engine(func(e *Engine) error {
		e.perform(e.record(Command{Forgive: true}))
		return nil
	})
}

// Deadline returns the scenario's, as a duration.
func (r *Run) Deadline() time.Duration { return time.Duration(r.Scenario.Deadline) }

// workloads are the Pods and Deployments that were asked for and exist.
func (e *Engine) workloads() []trace.Ref {
	var out []trace.Ref
	for _, ref := range e.asked {
		k, err := kube.Named(ref.Kind)
		if err != nil || (ref.Kind != "Pod" && ref.Kind != "Deployment") {
			continue
		}
		if _, ok := e.Get(k.Resource, ref.Namespace, ref.Name); ok {
			out = append(out, ref)
		}
	}
	return out
}

// manifest is a workload as somebody would write it: without what the cluster added.
func (e *Engine) manifest(ref trace.Ref) ([]byte, error) {
	k, err := kube.Named(ref.Kind)
	if err != nil {
		return nil, err
	}
	o, ok := e.Get(k.Resource, ref.Namespace, ref.Name)
	if !ok {
		return nil, fmt.Errorf("there is no %s %s any more", ref.Kind, ref.Name)
	}
	return patched(k, o, []byte("{}"))
}

// rewrite deletes a workload and creates it again, with a mistake in it.
func (e *Engine) rewrite(ref trace.Ref, m Mistake) error {
	k, err := kube.Named(ref.Kind)
	if err != nil {
		return err
	}
	o, ok := e.Get(k.Resource, ref.Namespace, ref.Name)
	if !ok {
		return fmt.Errorf("there is no %s %s any more", ref.Kind, ref.Name)
	}
	var spec *corev1.PodSpec
	switch w := o.(type) {
	case *corev1.Pod:
		spec = &w.Spec
	case *appsv1.Deployment:
		spec = &w.Spec.Template.Spec
	}
	patch, err := m.patch(ref.Kind, spec.Containers[0].Name)
	if err != nil {
		return err
	}
	body, err := patched(k, o, patch)
	if err != nil {
		return err
	}
	return e.replace(k, ref.Namespace, ref.Name, body)
}

// patch is the mistake as a strategic merge patch of an object of that kind.
func (m Mistake) patch(kind, container string) ([]byte, error) {
	spec := map[string]any{}
	for f, v := range m.Pod {
		spec[f] = v
	}
	if len(m.Container) > 0 {
		c := map[string]any{"name": container}
		for f, v := range m.Container {
			c[f] = v
		}
		spec["containers"] = []any{c}
	}
	if kind == "Pod" {
		return json.Marshal(map[string]any{"spec": spec})
	}
	return json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
}

// inManifest puts the mistake into every Pod and Deployment of a manifest file.
func (m Mistake) inManifest(data []byte) ([]byte, error) {
	docs, err := scenario.Documents(data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, d := range docs {
		js := d.JSON
		if d.Kind == "Pod" || d.Kind == "Deployment" {
			if js, err = m.inDocument(d); err != nil {
				return nil, fmt.Errorf("%s: %w", d.Where(), err)
			}
		}
		out.WriteString("---\n")
		out.Write(js)
		out.WriteString("\n")
	}
	return out.Bytes(), nil
}

func (m Mistake) inDocument(d scenario.Document) ([]byte, error) {
	var containers []corev1.Container
	var into kube.Object
	if d.Kind == "Pod" {
		var p corev1.Pod
		if err := json.Unmarshal(d.JSON, &p); err != nil {
			return nil, err
		}
		containers, into = p.Spec.Containers, &corev1.Pod{}
	} else {
		var w appsv1.Deployment
		if err := json.Unmarshal(d.JSON, &w); err != nil {
			return nil, err
		}
		containers, into = w.Spec.Template.Spec.Containers, &appsv1.Deployment{}
	}
	if len(containers) == 0 {
		return d.JSON, nil
	}
	patch, err := m.patch(d.Kind, containers[0].Name)
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(d.JSON, patch, into)
}
