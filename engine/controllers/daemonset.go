package controllers

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	upstream "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"

	"podwalk/engine/client"
	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// daemonSets is the DaemonSet controller: one Pod on every node that fits. Upstream:
// pkg/controller/daemon, whose rule of which node fits is used as it is.
//
// Left out: maxSurge.
type daemonSets struct {
	a         *actor
	sets      *client.Cache[*appsv1.DaemonSet]
	pods      *client.Cache[*corev1.Pod]
	nodes     *client.Cache[*corev1.Node]
	revisions *client.Cache[*appsv1.ControllerRevision]
}

var daemonSetKind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

func newDaemonSets(a *actor) logic {
	c := &daemonSets{a: a}
	c.sets = watch(a, func(ch client.Change[*appsv1.DaemonSet]) { a.q.add(kube.KeyOf(ch.Object())) })
	c.pods = watch(a, func(ch client.Change[*corev1.Pod]) {
		for _, p := range []*corev1.Pod{ch.Old, ch.New} {
			if p == nil {
				continue
			}
			if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind == daemonSetKind.Kind {
				a.q.add(kube.Key(p.Namespace, owner.Name))
			} else if owner == nil && ch.Old == nil {
				c.enqueueSelecting(p)
			}
		}
	})
	c.nodes = watch(a, c.nodeChanged)
	c.revisions = watch(a, quiet[*appsv1.ControllerRevision])
	return c
}

func (c *daemonSets) enqueueSelecting(p *corev1.Pod) {
	c.sets.Each(p.Namespace, func(ds *appsv1.DaemonSet) bool {
		if sel, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector); err == nil && !sel.Empty() && sel.Matches(labels.Set(p.Labels)) {
			c.a.q.add(kube.KeyOf(ds))
		}
		return true
	})
}

// nodeChanged looks at the DaemonSets for which a node fits now and did not, or the
// other way round.
func (c *daemonSets) nodeChanged(ch client.Change[*corev1.Node]) {
	if ch.Old != nil && ch.New != nil && equality.Semantic.DeepEqual(ch.Old.Labels, ch.New.Labels) &&
		equality.Semantic.DeepEqual(ch.Old.Spec, ch.New.Spec) {
		return // a heartbeat
	}
	c.sets.Each("", func(ds *appsv1.DaemonSet) bool {
		var was, is [2]bool
		if ch.Old != nil {
			was[0], was[1] = daemon.NodeShouldRunDaemonPod(silent, ch.Old, ds)
		}
		if ch.New != nil {
			is[0], is[1] = daemon.NodeShouldRunDaemonPod(silent, ch.New, ds)
		}
		if was != is {
			c.a.q.add(kube.KeyOf(ds))
		}
		return true
	})
}

// daemonSetInput is what a sync of one DaemonSet looks at.
type daemonSetInput struct {
	Set       *appsv1.DaemonSet
	Pods      []*corev1.Pod // its own and orphans
	Nodes     []*corev1.Node
	Revisions []*appsv1.ControllerRevision
}

func (c *daemonSets) gather(key string) any {
	ns, name := split(key)
	ds, ok := c.sets.Get(ns, name)
	if !ok || ds.DeletionTimestamp != nil {
		return nil
	}
	in := daemonSetInput{Set: ds, Nodes: c.nodes.List("")}
	c.pods.Each(ns, func(p *corev1.Pod) bool {
		if owner := metav1.GetControllerOfNoCopy(p); owner == nil || owner.UID == ds.UID {
			in.Pods = append(in.Pods, p)
		}
		return true
	})
	c.revisions.Each(ns, func(cr *appsv1.ControllerRevision) bool {
		if metav1.IsControlledBy(cr, ds) {
			in.Revisions = append(in.Revisions, cr)
		}
		return true
	})
	return in
}

// daemonSync is one sync.
type daemonSync struct {
	*run
	ds     *appsv1.DaemonSet
	nodes  []*corev1.Node
	byNode map[string][]*corev1.Pod // oldest first
	hash   string
}

func (c *daemonSets) sync(r *run, input any) error {
	in := input.(daemonSetInput)
	s := &daemonSync{run: r, ds: in.Set, nodes: in.Nodes, byNode: map[string][]*corev1.Pod{}}
	if reflect.DeepEqual(s.ds.Spec.Selector, &metav1.LabelSelector{}) {
		r.event(s.ds, corev1.EventTypeWarning, daemon.SelectingAllReason, "This daemon set is selecting all pods. A non-empty selector is required.")
		return nil
	}
	if err := s.claimPods(in.Pods); err != nil {
		return err
	}
	current, old, err := s.history(in.Revisions)
	if err != nil {
		return fmt.Errorf("failed to construct revisions of DaemonSet: %v", err)
	}
	s.hash = current.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	changed, err := s.manage()
	if err == nil && !changed && s.ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		err = s.rollingUpdate()
	}
	if err == nil {
		err = s.cleanup(old)
	}
	if statusErr := s.writeStatus(); err == nil {
		err = statusErr
	}
	return err
}

func (s *daemonSync) claimPods(pods []*corev1.Pod) error {
	sel, err := metav1.LabelSelectorAsSelector(s.ds.Spec.Selector)
	if err != nil {
		return err
	}
	for _, p := range pods {
		mine, err := claim(s.run, s.ds, daemonSetKind, sel, p)
		if err != nil {
			return err
		}
		if !mine || podutil.IsPodTerminal(p) && p.DeletionTimestamp != nil {
			continue
		}
		if node, err := daemonutil.GetTargetNodeName(p); err == nil {
			s.byNode[node] = append(s.byNode[node], p)
		}
	}
	for _, list := range s.byNode {
		slices.SortStableFunc(list, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	}
	return nil
}

// manage puts Pods on nodes that need one and takes them from nodes that must not have
// one; it reports whether there was something to do.
func (s *daemonSync) manage() (bool, error) {
	var missing []string
	var excess []*corev1.Pod
	for _, n := range s.nodes {
		run, stay := daemon.NodeShouldRunDaemonPod(silent, n, s.ds)
		pods, any := s.byNode[n.Name]
		switch {
		case run && !any:
			missing = append(missing, n.Name)
		case stay:
			excess = append(excess, s.surplus(n.Name, pods)...)
		case any:
			for _, p := range pods {
				if p.DeletionTimestamp == nil {
					excess = append(excess, p)
				}
			}
		}
	}
	return len(missing)+len(excess) > 0, s.apply(missing, excess)
}

// surplus are the Pods on a node that have ended, and all running ones but the oldest.
func (s *daemonSync) surplus(node string, pods []*corev1.Pod) (out []*corev1.Pod) {
	running := 0
	for _, p := range pods {
		switch {
		case p.DeletionTimestamp != nil:
		case p.Status.Phase == corev1.PodFailed:
			s.event(s.ds, corev1.EventTypeWarning, daemon.FailedDaemonPodReason,
				fmt.Sprintf("Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, node))
			out = append(out, p)
		case p.Status.Phase == corev1.PodSucceeded:
			s.event(s.ds, corev1.EventTypeNormal, daemon.SucceededDaemonPodReason,
				fmt.Sprintf("Found succeeded daemon pod %s/%s on node %s, will try to delete it", p.Namespace, p.Name, node))
			out = append(out, p)
		default:
			if running++; running > 1 {
				out = append(out, p)
			}
		}
	}
	return out
}

func (s *daemonSync) apply(missing []string, excess []*corev1.Pod) error {
	if len(missing)+len(excess) == 0 {
		return nil
	}
	s.hop(trace.Hop{
		Verb: "reconcile DaemonSet " + s.ds.Name, Object: ref("DaemonSet", s.ds),
		Message: fmt.Sprintf("DaemonSet %s wants a Pod on every node that fits: create %d, delete %d", s.ds.Name, len(missing), len(excess)),
	})
	generation, err := daemonutil.GetTemplateGeneration(s.ds)
	if err != nil {
		generation = nil
	}
	template := daemonutil.CreatePodTemplate(s.ds.Spec.Template, generation, s.hash)
	next := 0
	failure := createPods(s.run, s.ds, len(missing), func() *corev1.Pod {
		pod, _ := upstream.GetPodFromTemplate(&template, s.ds, metav1.NewControllerRef(s.ds, daemonSetKind))
		pod.Namespace = s.ds.Namespace
		pod.Spec.Affinity = daemonutil.ReplaceDaemonSetPodNodeNameNodeAffinity(pod.Spec.Affinity, missing[next])
		next++
		return pod
	})
	if err := deletePods(s.run, s.ds, excess); failure == nil {
		failure = err
	}
	return failure
}

// rollingUpdate deletes old Pods as far as maxUnavailable allows; manage replaces them.
func (s *daemonSync) rollingUpdate() error {
	want := 0
	for _, n := range s.nodes {
		if run, _ := daemon.NodeShouldRunDaemonPod(silent, n, s.ds); run {
			want++
		}
	}
	most, err := daemonutil.UnavailableCount(s.ds, want)
	if err != nil {
		return err
	}
	unavailable := 0
	var broken, candidates []*corev1.Pod
	for _, n := range s.nodes {
		for _, p := range s.byNode[n.Name] {
			switch up := s.available(p); {
			case p.DeletionTimestamp != nil || s.updated(p):
				if !up || p.DeletionTimestamp != nil {
					unavailable++
				}
			case !up:
				unavailable++
				broken = append(broken, p)
			default:
				candidates = append(candidates, p)
			}
		}
	}
	n := min(max(0, max(1, most)-unavailable), len(candidates))
	return s.apply(nil, append(broken, candidates[:n]...))
}

func (s *daemonSync) updated(p *corev1.Pod) bool {
	generation, err := daemonutil.GetTemplateGeneration(s.ds)
	if err != nil {
		generation = nil
	}
	return daemonutil.IsPodUpdated(p, s.hash, generation)
}

func (s *daemonSync) available(p *corev1.Pod) bool {
	return podutil.IsPodAvailable(p, s.ds.Spec.MinReadySeconds, metav1.NewTime(s.state.Started.Wall()))
}

// writeStatus counts nodes.
func (s *daemonSync) writeStatus() error {
	status := *s.ds.Status.DeepCopy()
	status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.NumberMisscheduled = 0, 0, 0
	status.NumberReady, status.UpdatedNumberScheduled, status.NumberAvailable = 0, 0, 0
	for _, n := range s.nodes {
		run, _ := daemon.NodeShouldRunDaemonPod(silent, n, s.ds)
		pods := s.byNode[n.Name]
		switch {
		case !run && len(pods) > 0:
			status.NumberMisscheduled++
		case run:
			status.DesiredNumberScheduled++
			if len(pods) == 0 {
				continue
			}
			status.CurrentNumberScheduled++
			if podutil.IsPodReady(pods[0]) {
				status.NumberReady++
			}
			if s.available(pods[0]) {
				status.NumberAvailable++
			}
			if s.updated(pods[0]) {
				status.UpdatedNumberScheduled++
			}
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	status.ObservedGeneration = s.ds.Generation
	if status.NumberReady != status.NumberAvailable && s.ds.Spec.MinReadySeconds > 0 {
		s.once(func() {
			s.a.q.addAfter(s.state.Key, time.Duration(s.ds.Spec.MinReadySeconds)*time.Second)
		})
	}
	if equality.Semantic.DeepEqual(status, s.ds.Status) {
		return nil
	}
	fresh := s.ds.DeepCopy()
	fresh.Status = status
	_, err := s.do(updateStatus(fresh))
	return err
}
