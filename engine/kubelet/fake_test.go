package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/cri"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/network"
)

// fakeAPI is just enough of an API server: objects, watches, status patches.
type fakeAPI struct {
	k        *kernel.Kernel
	objects  map[string]kube.Object // resource/namespace/name
	watches  []wire.Request
	revision int64
	lines    func(format string, args ...any)
	requests map[string]int
}

func (f *fakeAPI) key(resource, ns, name string) string { return resource + "/" + ns + "/" + name }

func (f *fakeAPI) Handle(ev kernel.Event) {
	r, ok := ev.(wire.Request)
	if !ok {
		return
	}
	f.requests[string(r.Verb)+" "+r.Resource.Resource+"/"+r.Subresource]++
	a := wire.Answer{Tag: r.Tag, Verb: r.Verb, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name, Code: 200}
	key := f.key(r.Resource.Resource, r.Namespace, r.Name)
	have := f.objects[key]
	gr := r.Resource.GroupResource()
	refuse := func(err *apierrors.StatusError) { a.Status, a.Code = &err.ErrStatus, int(err.ErrStatus.Code) }
	switch {
	case r.Verb == wire.List:
		for _, k := range slices.Sorted(maps.Keys(f.objects)) {
			if strings.HasPrefix(k, r.Resource.Resource+"/") && f.selects(r, f.objects[k]) {
				a.Items = append(a.Items, f.objects[k])
			}
		}
		a.Revision = f.revision
	case r.Verb == wire.Watch:
		f.watches = append(f.watches, r)
	case r.Verb == wire.Create && r.Subresource == "token":
		a.Object = &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "token-of-" + r.Name}}
	case r.Verb == wire.Create && have != nil:
		refuse(apierrors.NewAlreadyExists(gr, r.Name))
	case r.Verb == wire.Create:
		obj := r.Object.DeepCopyObject().(kube.Object)
		f.put(r.Resource.Resource, obj, wire.Added)
		a.Object = obj
	case have == nil:
		refuse(apierrors.NewNotFound(gr, r.Name))
	case r.Verb == wire.Get:
		a.Object = have
	case r.Verb == wire.Update:
		f.put(r.Resource.Resource, r.Object.DeepCopyObject().(kube.Object), wire.Modified)
		a.Object = f.objects[key]
	case r.Verb == wire.Patch:
		obj := have.DeepCopyObject().(kube.Object)
		switch o := obj.(type) {
		case *corev1.Pod:
			o.Status = r.Object.(*corev1.Pod).Status
		case *corev1.Node:
			o.Status = r.Object.(*corev1.Node).Status
		}
		f.put(r.Resource.Resource, obj, wire.Modified)
		a.Object = obj
	case r.Verb == wire.Delete:
		delete(f.objects, key)
		f.revision++
		f.notify(r.Resource.Resource, have, wire.Deleted)
	}
	f.k.Send(r.ReplyTo, time.Millisecond, a)
}

func (f *fakeAPI) selects(r wire.Request, o kube.Object) bool {
	if node, ok := strings.CutPrefix(r.Options.FieldSelector, "spec.nodeName="); ok {
		p, is := o.(*corev1.Pod)
		return is && p.Spec.NodeName == node
	}
	if name, ok := strings.CutPrefix(r.Options.FieldSelector, "metadata.name="); ok {
		return o.GetName() == name
	}
	return true
}

func (f *fakeAPI) put(resource string, obj kube.Object, t wire.EventType) {
	f.revision++
	obj.SetResourceVersion(fmt.Sprint(f.revision))
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid-of-" + obj.GetName()))
	}
	f.objects[f.key(resource, obj.GetNamespace(), obj.GetName())] = obj
	f.notify(resource, obj, t)
}

func (f *fakeAPI) notify(resource string, obj kube.Object, t wire.EventType) {
	if ev, ok := obj.(*corev1.Event); ok && ev.InvolvedObject.Kind == "Pod" {
		f.lines("event  %-7s %s %s: %s", ev.Type, ev.Reason, ev.InvolvedObject.Name, ev.Message)
	}
	if p, ok := obj.(*corev1.Pod); ok {
		f.lines("pod    %s", podLine(p, t))
	}
	for _, w := range f.watches {
		if w.Resource.Resource == resource && f.selects(w, obj) {
			f.k.Send(w.ReplyTo, time.Millisecond, wire.WatchEvent{Tag: w.Tag, Type: t, Resource: w.Resource, Object: obj, Revision: f.revision})
		}
	}
}

func (f *fakeAPI) delete(ns, name string, grace int64) {
	p := f.objects[f.key("pods", ns, name)].DeepCopyObject().(*corev1.Pod)
	now := metav1.NewTime(f.k.Now().Add(time.Duration(grace) * time.Second).Wall())
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	p.Generation++
	f.put("pods", p, wire.Modified)
}

func podLine(p *corev1.Pod, t wire.EventType) string {
	word := summary(&p.Status)
	if p.DeletionTimestamp != nil {
		word = "deleting, " + word
	}
	if p.Status.PodIP != "" {
		word += ", " + p.Status.PodIP
	}
	return fmt.Sprintf("%s %s %s", t, p.Name, word)
}

// fakeRuntime is a containerd by script.
type fakeRuntime struct {
	k          *kernel.Kernel
	n          int
	images     map[string]cri.ImageInfo
	pullErr    map[string]string
	logins     map[string]string // by image: what makes its error go away
	sandboxErr string
	startErr   map[string]string
	exits      map[string]exit // by container name
	stops      map[string]exit
	execs      map[string]cri.Response // by first word of the command
	running    map[string]*fakeContainer
	networkErr string
	created    []cri.CreateContainer
	logs       map[string][]cri.LogLine
}

type exit struct {
	after time.Duration
	code  int32
}

type fakeContainer struct {
	id, uid, name string
	timer         kernel.Timer
}

type containerExit struct {
	ID   string
	Code int32
}

func (f *fakeRuntime) reply(to kernel.ActorID, after time.Duration, r cri.Response) {
	f.k.Send(to, after, r)
}

const kubeletActor kernel.ActorID = "kubelet/node01"

func (f *fakeRuntime) Handle(ev kernel.Event) {
	switch r := ev.(type) {
	case cri.Status:
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag, NetworkReady: f.networkErr == "", NetworkMessage: f.networkErr})
	case cri.ListImages:
		var list []cri.ImageInfo
		for _, k := range slices.Sorted(maps.Keys(f.images)) {
			list = append(list, f.images[k])
		}
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag, Images: list})
	case cri.ImageStatus:
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag, Image: f.images[r.Image]})
	case cri.ListContainers:
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag})
	case cri.ContainerLog:
		log, ok := f.logs[r.ContainerID]
		if !ok {
			f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag, Err: "not found"})
			return
		}
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag, Log: log})
	case cri.RemoveContainer:
		delete(f.logs, r.ContainerID)
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag})
	case cri.RunPodSandbox:
		f.n++
		f.reply(r.ReplyTo, 150*time.Millisecond, cri.Response{Tag: r.Tag, Err: f.sandboxErr, SandboxID: fmt.Sprintf("sandbox-%d", f.n), PodIP: fmt.Sprintf("10.244.%d.%d", 1+f.n/250, f.n%250)})
	case cri.StopPodSandbox:
		f.reply(r.ReplyTo, 40*time.Millisecond, cri.Response{Tag: r.Tag})
	case cri.RemovePodSandbox:
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag})
	case cri.PullImage:
		f.pull(r)
	case cri.CreateContainer:
		f.n++
		id := fmt.Sprintf("container-%d", f.n)
		f.running[id] = &fakeContainer{id: id, uid: r.PodUID, name: r.Name}
		f.created = append(f.created, r)
		f.reply(r.ReplyTo, 20*time.Millisecond, cri.Response{Tag: r.Tag, ContainerID: id})
	case cri.StartContainer:
		c := f.running[r.ContainerID]
		err := f.startErr[c.name]
		f.reply(r.ReplyTo, 60*time.Millisecond, cri.Response{Tag: r.Tag, Err: err})
		for i := range 3 {
			f.logs[c.id] = append(f.logs[c.id], cri.LogLine{At: f.k.Now().Add(time.Duration(i) * time.Second), Text: fmt.Sprintf("line %d of %s", i+1, c.id)})
		}
		if e, ok := f.exits[c.name]; ok && err == "" {
			c.timer = f.k.Send("containerd/node01", 60*time.Millisecond+e.after, containerExit{c.id, e.code})
		}
	case cri.StopContainer:
		f.stop(r)
	case cri.ExecSync:
		out := f.execs[r.Command[0]]
		out.Tag = r.Tag
		f.reply(r.ReplyTo, 10*time.Millisecond, out)
	case containerExit:
		f.exit(r.ID, r.Code, 0)
	}
}

func (f *fakeRuntime) pull(r cri.PullImage) {
	if err := f.pullErr[r.Image]; err != "" && (f.logins[r.Image] == "" || f.logins[r.Image] != r.Username+":"+r.Password) {
		f.reply(r.ReplyTo, 500*time.Millisecond, cri.Response{Tag: r.Tag, Err: err})
		return
	}
	im, ok := f.images[r.Image]
	if !ok {
		im = cri.ImageInfo{Ref: "docker.io/library/" + r.Image, ID: "docker.io/library/" + strings.Split(r.Image, ":")[0] + "@sha256:1", SizeBytes: 5798490, Layers: 3}
		f.images[r.Image] = im
	}
	f.reply(r.ReplyTo, 26*time.Millisecond, cri.Response{Tag: r.Tag, Image: im, Took: 26 * time.Millisecond})
}

func (f *fakeRuntime) stop(r cri.StopContainer) {
	c := f.running[r.ContainerID]
	if c == nil {
		f.reply(r.ReplyTo, time.Millisecond, cri.Response{Tag: r.Tag})
		return
	}
	e, ok := f.stops[c.name]
	if !ok {
		e = exit{after: 50 * time.Millisecond}
	}
	if e.after > r.Timeout {
		e = exit{after: r.Timeout, code: 137}
	}
	f.k.Cancel(c.timer)
	f.k.Send("containerd/node01", e.after, containerExit{c.id, e.code})
	f.reply(r.ReplyTo, e.after+time.Millisecond, cri.Response{Tag: r.Tag, ExitCode: e.code})
}

func (f *fakeRuntime) exit(id string, code int32, after time.Duration) {
	c := f.running[id]
	if c == nil {
		return
	}
	delete(f.running, id)
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	f.k.Send(kubeletActor, after, cri.ContainerEvent{PodUID: c.uid, ContainerID: id, Name: c.name, Type: cri.Stopped, ExitCode: code, Reason: reason, At: f.k.Now()})
}

// fakeNet answers calls by address.
type fakeNet struct {
	k       *kernel.Kernel
	answers map[string]network.Result

	listening map[string]bool
	got       string
}

func (f *fakeNet) Do(replyTo kernel.ActorID, c network.Call) {
	r, ok := f.answers[c.To+c.Path]
	if !ok {
		r = network.Result{Err: "dial tcp " + c.To + ": connect: connection refused"}
	}
	r.Tag, r.Call = c.Tag, c
	f.k.Send(replyTo, time.Millisecond, r)
}

func (f *fakeNet) Listen(address string, _ kernel.ActorID) { f.listening[address] = true }
func (f *fakeNet) Unlisten(address string)                 { delete(f.listening, address) }

// Handle takes the answers of those who listen.
func (f *fakeNet) Handle(ev kernel.Event) {
	if a, ok := ev.(network.Answer); ok {
		f.got = strings.TrimSpace(fmt.Sprintf("%d %s %s", a.Code, a.Err, a.Body)) + "\n"
	}
}

type runtimeState struct {
	N       int
	Images  map[string]cri.ImageInfo
	Running map[string]fakeContainer
	Logs    map[string][]cri.LogLine
}

// Snapshot implements kernel.State.
func (f *fakeRuntime) Snapshot() any {
	s := runtimeState{f.n, maps.Clone(f.images), map[string]fakeContainer{}, map[string][]cri.LogLine{}}
	for id, c := range f.running {
		s.Running[id] = *c
	}
	for id, l := range f.logs {
		s.Logs[id] = slices.Clone(l)
	}
	return s
}

// Restore implements kernel.State.
func (f *fakeRuntime) Restore(snap any) {
	s := snap.(runtimeState)
	f.n, f.images = s.N, maps.Clone(s.Images)
	clear(f.running)
	clear(f.logs)
	for id, c := range s.Running {
		f.running[id] = &c
	}
	for id, l := range s.Logs {
		f.logs[id] = slices.Clone(l)
	}
}
