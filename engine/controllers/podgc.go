package controllers

import (
	"maps"
	"slices"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/client"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// podGC is the Pod garbage collector: every 20 s it deletes Pods whose node is gone for
// 40 s, terminating Pods that never got a node, and finished Pods beyond a limit.
// Upstream: pkg/controller/podgc.
type podGC struct {
	a     *actor
	pods  *client.Cache[*corev1.Pod]
	nodes *client.Cache[*corev1.Node]
	// quarantine holds the nodes that Pods name and nobody knows, since when.
	quarantine map[string]kernel.Time
}

const (
	podGCRound      = "round" // the only key
	podGCQuarantine = 40 * time.Second
)

func newPodGC(a *actor) logic {
	c := &podGC{a: a, quarantine: map[string]kernel.Time{}}
	c.pods = watch(a, quiet[*corev1.Pod])
	c.nodes = watch(a, quiet[*corev1.Node])
	return c
}

func (c *podGC) start() { c.a.q.add(podGCRound) }

// podGCInput is what one round will delete.
type podGCInput struct {
	Lost    []*corev1.Pod // on nodes that are gone
	Others  []*corev1.Pod
	Unknown []string // their nodes
}

// gather looks around and sees to the next round.
func (c *podGC) gather(string) any {
	c.a.q.addAfter(podGCRound, c.a.cfg.PodGCPeriod)
	now := c.a.k.Now()
	in := podGCInput{}
	named := map[string]bool{}
	var finished, orphans []*corev1.Pod
	c.pods.Each("", func(p *corev1.Pod) bool {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			finished = append(finished, p)
		}
		if p.Spec.NodeName == "" {
			if p.DeletionTimestamp != nil {
				in.Others = append(in.Others, p)
			}
			return true
		}
		if _, known := c.nodes.Get("", p.Spec.NodeName); !known {
			named[p.Spec.NodeName] = true
			orphans = append(orphans, p)
		}
		return true
	})
	for node := range c.quarantine {
		if !named[node] {
			delete(c.quarantine, node)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(named)) {
		since, waits := c.quarantine[node]
		switch {
		case !waits:
			c.quarantine[node] = now
		case now.Sub(since) >= podGCQuarantine:
			in.Unknown = append(in.Unknown, node)
			delete(c.quarantine, node)
		}
	}
	for _, p := range orphans {
		if slices.Contains(in.Unknown, p.Spec.NodeName) {
			in.Lost = append(in.Lost, p)
		}
	}
	if excess := len(finished) - c.a.cfg.TerminatedPodThreshold; excess > 0 && c.a.cfg.TerminatedPodThreshold > 0 {
		sort.SliceStable(finished, func(i, j int) bool {
			return finished[i].CreationTimestamp.Before(&finished[j].CreationTimestamp)
		})
		in.Others = append(in.Others, finished[:excess]...)
	}
	if len(in.Lost)+len(in.Others) == 0 {
		return nil
	}
	return in
}

func (c *podGC) sync(r *run, input any) error {
	in := input.(podGCInput)
	gone := map[string]bool{}
	for _, node := range in.Unknown { // asked again, past the cache
		_, err := r.do(get(kube.Nodes, "", node))
		gone[node] = apierrors.IsNotFound(err)
	}
	for _, p := range in.Lost {
		if !gone[p.Spec.NodeName] {
			continue
		}
		r.hop(trace.Hop{
			Stage: stage.NodeLifecycle, Verb: "delete Pod " + p.Name, Object: ref("Pod", p), Reason: "DeletionByPodGC",
			Message: "PodGC: node no longer exists",
		})
		c.failAndDelete(r, p, &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
		})
	}
	for _, p := range in.Others {
		c.failAndDelete(r, p, nil)
	}
	return nil // what failed is tried again in the next round
}

// failAndDelete sets the phase of a Pod that has not finished to Failed, so that whoever
// counts it (a Job) does not wait for its node, and then deletes it at once.
func (c *podGC) failAndDelete(r *run, p *corev1.Pod, cond *corev1.PodCondition) {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		failed := p.DeepCopy()
		failed.Status.Phase = corev1.PodFailed
		if cond != nil {
			setPodCondition(r, failed, *cond)
		}
		if _, err := r.do(patchStatus(failed)); err != nil {
			return
		}
	}
	now := int64(0)
	_, _ = r.do(remove(p, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID))}))
}

// setPodCondition replaces or adds a condition.
func setPodCondition(r *run, p *corev1.Pod, cond corev1.PodCondition) {
	cond.LastTransitionTime, cond.ObservedGeneration = r.now(), p.Generation
	for i, was := range p.Status.Conditions {
		if was.Type == cond.Type {
			if was.Status == cond.Status {
				cond.LastTransitionTime = was.LastTransitionTime
			}
			p.Status.Conditions[i] = cond
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, cond)
}

func (c *podGC) forget() { c.quarantine = map[string]kernel.Time{} }

func (c *podGC) snapshot() any { return maps.Clone(c.quarantine) }

func (c *podGC) restore(s any) { c.quarantine = maps.Clone(s.(map[string]kernel.Time)) }
