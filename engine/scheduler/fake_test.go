package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// fakeServer stores and watches, and admits everything: just enough of an API server for
// the scheduler to talk to.
type fakeServer struct {
	k        *kernel.Kernel
	revision int64
	objects  map[string]kube.Object // by resource and key
	watches  []wire.Request
	requests []string // those of the scheduler that change something
	// failBind is the answer to the next bindings, by Pod key.
	failBind map[string]error
}

func (f *fakeServer) key(r schema.GroupVersionResource, key string) string {
	return r.Resource + " " + key
}

func (f *fakeServer) Handle(ev kernel.Event) {
	switch e := ev.(type) {
	case wire.Request:
		f.request(e)
	case wire.CancelWatch:
		f.watches[e.WatchID-1].ReplyTo = ""
	}
}

func (f *fakeServer) request(r wire.Request) {
	a := wire.Answer{Tag: r.Tag, Verb: r.Verb, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name, Code: 200}
	key := f.key(r.Resource, kube.Key(r.Namespace, r.Name))
	if r.Verb != wire.List && r.Verb != wire.Watch {
		f.requests = append(f.requests, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", r.Verb, key, r.Subresource), "/"))
	}
	switch r.Verb {
	case wire.List:
		for _, k := range f.keys(r.Resource) {
			a.Items = append(a.Items, f.objects[k])
		}
		a.Revision = f.revision
	case wire.Watch:
		f.watches = append(f.watches, r)
		a.WatchID = uint64(len(f.watches))
	default:
		if err := f.change(r, key); err != nil {
			st := err.(apierrors.APIStatus).Status()
			a.Status, a.Code = &st, int(st.Code)
		}
	}
	if r.ReplyTo != "" {
		f.k.Send(r.ReplyTo, time.Millisecond, a)
	}
}

func (f *fakeServer) change(r wire.Request, key string) error {
	old := f.objects[key]
	if old == nil && r.Verb != wire.Create {
		return apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	switch {
	case r.Subresource == "binding":
		if err := f.failBind[kube.Key(r.Namespace, r.Name)]; err != nil {
			return err
		}
		if old == nil {
			return apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
		}
		pod := old.DeepCopyObject().(*corev1.Pod)
		pod.Spec.NodeName = r.Object.(*corev1.Binding).Target.Name
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		pod.Status.NominatedNodeName = ""
		f.put(pod)
	case r.Subresource == "status":
		pod := old.DeepCopyObject().(*corev1.Pod)
		pod.Status = *r.Object.(*corev1.Pod).Status.DeepCopy()
		f.put(pod)
	case r.Verb == wire.Delete:
		f.remove(old)
	default:
		f.put(r.Object.DeepCopyObject().(kube.Object))
	}
	return nil
}

func (f *fakeServer) keys(r schema.GroupVersionResource) []string {
	var out []string
	for k, o := range f.objects {
		if kube.ResourceOf(o) == r {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func (f *fakeServer) put(o kube.Object) {
	f.revision++
	o.SetResourceVersion(fmt.Sprint(f.revision))
	key := f.key(kube.ResourceOf(o), kube.KeyOf(o))
	typ := wire.Modified
	if old := f.objects[key]; old == nil {
		typ = wire.Added
		o.SetUID(types.UID(fmt.Sprintf("uid-%s-%d", o.GetName(), f.revision)))
		o.SetGeneration(1)
	} else {
		o.SetUID(old.GetUID())
	}
	f.objects[key] = o
	f.tell(typ, o)
}

func (f *fakeServer) remove(o kube.Object) {
	f.revision++
	delete(f.objects, f.key(kube.ResourceOf(o), kube.KeyOf(o)))
	f.tell(wire.Deleted, o)
}

func (f *fakeServer) tell(t wire.EventType, o runtime.Object) {
	for i, w := range f.watches {
		if w.ReplyTo != "" && w.Resource == kube.ResourceOf(o) {
			f.k.Send(w.ReplyTo, time.Millisecond, wire.WatchEvent{WatchID: uint64(i + 1), Tag: w.Tag, Type: t, Resource: w.Resource, Object: o, Revision: f.revision})
		}
	}
}

// Snapshot and Restore make it part of time travel.
func (f *fakeServer) Snapshot() any {
	out := *f
	out.k = nil
	out.objects = map[string]kube.Object{}
	for k, o := range f.objects {
		out.objects[k] = o
	}
	out.watches, out.requests = slices.Clone(f.watches), slices.Clone(f.requests)
	return out
}

func (f *fakeServer) Restore(snap any) {
	v := snap.(fakeServer)
	c := v.Snapshot().(fakeServer)
	c.k = f.k
	*f = c
}

// rig is a scheduler with its fake API server.
type rig struct {
	k     *kernel.Kernel
	log   *trace.Log
	board *fault.Board
	api   *fakeServer
	s     *Scheduler
}

func newRig(t testing.TB) *rig { return newRigWith(t, DefaultConfig()) }

func newRigWith(t testing.TB, cfg Config) *rig {
	t.Helper()
	k := kernel.New(1)
	r := &rig{k: k, log: trace.New(k), board: fault.NewBoard()}
	k.Attach("faults", r.board)
	r.api = &fakeServer{k: k, objects: map[string]kube.Object{}, failBind: map[string]error{}}
	k.Register(kernel.ActorID(stage.APIServer), r.api)
	r.s = New(k, r.log, r.board, client.New(k, ID, stage.Scheduler, wire.Credential{CommonName: "system:kube-scheduler"}), cfg)
	r.s.Start()
	return r
}

func (r *rig) advance(d time.Duration) { r.k.AdvanceTo(r.k.Now().Add(d)) }

func (r *rig) pod(key string) *corev1.Pod {
	o, _ := r.api.objects["pods "+key].(*corev1.Pod)
	return o
}

// eventList returns the scheduler's events, oldest first.
func (r *rig) eventList() []*eventsv1.Event {
	var out []*eventsv1.Event
	for _, k := range r.api.keys(kube.EventsV1) {
		out = append(out, r.api.objects[k].(*eventsv1.Event))
	}
	slices.SortStableFunc(out, func(a, b *eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return out
}

func node(name string, cpu, memory string) *corev1.Node {
	q := quantities(cpu, memory)
	q[corev1.ResourcePods] = quantity("110")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:     corev1.NodeStatus{Allocatable: q, Capacity: q},
	}
}
