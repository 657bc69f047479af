package controllers_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// BenchmarkPods makes Pods that no controller owns, lets them run and deletes them: what
// a Pod costs in a cluster with all controllers.
func BenchmarkPods(b *testing.B) {
	w := newWorld(b, "node01", "node02")
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("pod-%d", i)
		w.do(wire.Request{Verb: wire.Create, Resource: kube.Pods, Namespace: "default", Object: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
		}})
		w.advance(time.Second)
		w.do(wire.Request{Verb: wire.Delete, Resource: kube.Pods, Namespace: "default", Name: name})
		w.advance(time.Second)
	}
}
