package controllers

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/kernel"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// taintEviction deletes Pods from nodes with a NoExecute taint that they do not tolerate,
// or no longer tolerate after tolerationSeconds. Upstream: pkg/controller/tainteviction.
type taintEviction struct {
	a     *actor
	nodes *client.Cache[*corev1.Node]
	pods  *client.Cache[*corev1.Pod]
	// scheduled holds the Pods that are counted down, by key, since when.
	scheduled map[string]kernel.Time
}

// The keys of the queue: "node/NAME", "pod/NAMESPACE/NAME" for what has to be looked at,
// and "evict/NAMESPACE/NAME" for a Pod whose time is up.
const (
	podPrefix   = "pod/"
	evictPrefix = "evict/"
)

// evictionTries is how often one eviction is tried.
const evictionTries = 5

func newTaintEviction(a *actor) logic {
	c := &taintEviction{a: a, scheduled: map[string]kernel.Time{}}
	c.nodes = watch(a, func(ch client.Change[*corev1.Node]) {
		if ch.Type == wire.Modified && equality.Semantic.DeepEqual(executing(ch.Old), executing(ch.New)) {
			return
		}
		a.q.add(nodePrefix + ch.Object().Name)
	})
	c.pods = watch(a, func(ch client.Change[*corev1.Pod]) {
		if ch.Type == wire.Modified && ch.Old.Spec.NodeName == ch.New.Spec.NodeName &&
			equality.Semantic.DeepEqual(ch.Old.Spec.Tolerations, ch.New.Spec.Tolerations) {
			return
		}
		a.q.add(podPrefix + kube.KeyOf(ch.Object()))
	})
	return c
}

// executing returns a node's NoExecute taints.
func executing(n *corev1.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, t)
		}
	}
	return out
}

func (c *taintEviction) gather(key string) any {
	switch {
	case strings.HasPrefix(key, nodePrefix):
		name := key[len(nodePrefix):]
		c.pods.Each("", func(p *corev1.Pod) bool {
			if p.Spec.NodeName == name {
				c.consider(p)
			}
			return true
		})
	case strings.HasPrefix(key, podPrefix):
		ns, name := split(key[len(podPrefix):])
		if p, ok := c.pods.Get(ns, name); ok {
			c.consider(p)
		} else {
			c.cancel(ns + "/" + name)
		}
	case strings.HasPrefix(key, evictPrefix):
		pod := key[len(evictPrefix):]
		if _, due := c.scheduled[pod]; !due {
			return nil
		}
		delete(c.scheduled, pod)
		ns, name := split(pod)
		if p, ok := c.pods.Get(ns, name); ok {
			return p
		}
	}
	return nil
}

// consider starts, changes or stops a Pod's countdown.
func (c *taintEviction) consider(p *corev1.Pod) {
	if p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
		return
	}
	key := kube.KeyOf(p)
	n, ok := c.nodes.Get("", p.Spec.NodeName)
	if !ok {
		return
	}
	taints := executing(n)
	if len(taints) == 0 {
		c.cancel(key)
		return
	}
	d, forever := tolerance(taints, p.Spec.Tolerations)
	if forever {
		c.cancel(key)
		return
	}
	now := c.a.k.Now()
	since, counting := c.scheduled[key]
	if counting {
		// The countdown that began first goes on; a shorter one replaces it.
		if since.Add(d) < now.Add(d) && d > 0 {
			return
		}
		c.cancel(key)
	}
	c.scheduled[key] = now
	c.a.q.addAfter(evictPrefix+key, d)
}

// tolerance returns how long the taints are tolerated, and whether that is forever.
func tolerance(taints []corev1.Taint, tolerations []corev1.Toleration) (d time.Duration, forever bool) {
	all, used := v1helper.GetMatchingTolerations(silent, taints, tolerations)
	if !all || len(used) == 0 {
		return 0, false
	}
	shortest := int64(-1)
	for _, t := range used {
		if t.TolerationSeconds != nil && (shortest < 0 || *t.TolerationSeconds < shortest) {
			shortest = max(0, *t.TolerationSeconds)
		}
	}
	return time.Duration(shortest) * time.Second, shortest < 0
}

// cancel stops a countdown; a Pod that is still there is told so.
func (c *taintEviction) cancel(key string) {
	if _, counting := c.scheduled[key]; !counting {
		return
	}
	delete(c.scheduled, key)
	c.a.q.cancel(evictPrefix + key)
	c.tell(key, "Cancelling deletion of Pod "+key)
}

func (c *taintEviction) tell(key, message string) {
	ns, name := split(key)
	c.a.rec.EventFor(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: name}, corev1.EventTypeNormal, "TaintManagerEviction", message)
}

func (c *taintEviction) sync(r *run, input any) error {
	p := input.(*corev1.Pod)
	key := kube.KeyOf(p)
	r.once(func() { c.tell(key, "Marking for deletion Pod "+key) })
	r.hop(trace.Hop{
		Stage: stage.NodeLifecycle, Verb: "evict Pod " + p.Name, Object: ref("Pod", p), Outcome: trace.Failed,
		Reason: "TaintManagerEviction", Message: fmt.Sprintf("Marking for deletion Pod %s", key),
	})
	var err error
	for range evictionTries {
		if err = c.markAndDelete(r, p); err == nil || apierrors.IsNotFound(err) {
			return nil
		}
	}
	return err
}

// markAndDelete writes the reason into the Pod's conditions, so that whoever owns it can
// tell a disruption from a failure, and then deletes it.
func (c *taintEviction) markAndDelete(r *run, p *corev1.Pod) error {
	ans, err := r.do(get(kube.Pods, p.Namespace, p.Name))
	if err != nil {
		return err
	}
	marked := ans.Object.(*corev1.Pod).DeepCopy()
	if marked.UID != p.UID {
		return nil // another one under that name
	}
	setPodCondition(r, marked, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "DeletionByTaintManager", Message: "Taint manager: deleting due to NoExecute taint",
	})
	if _, err := r.do(patchStatus(marked)); err != nil {
		return err
	}
	_, err = r.do(remove(p, metav1.DeleteOptions{}))
	return err
}

func (c *taintEviction) forget() { c.scheduled = map[string]kernel.Time{} }

func (c *taintEviction) snapshot() any { return maps.Clone(c.scheduled) }

func (c *taintEviction) restore(s any) { c.scheduled = maps.Clone(s.(map[string]kernel.Time)) }
