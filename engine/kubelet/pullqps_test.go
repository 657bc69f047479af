package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPullQPS: what has queued up behind a slow registry comes at once. The kubelet lets
// ten through and then five a second; the others try again (d02).
func TestPullQPS(t *testing.T) {
	for pods, some := range map[int]bool{10: false, 20: true} {
		s := newStory(t, nil)
		s.rt.pullErr["slow:v1"] = "i/o timeout"
		s.apply("{apiVersion: v1, kind: Pod, metadata: {name: slow}, spec: {containers: [{name: app, image: 'slow:v1'}]}}")
		s.run(200 * time.Millisecond)
		for i := range pods {
			s.apply(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p%d}, spec: {containers: [{name: app, image: 'busybox:1.36', imagePullPolicy: Always}]}}", i))
		}
		out := s.run(3 * time.Second)
		refused := strings.Count(out, `Failed to pull image "busybox:1.36": pull QPS exceeded`)
		if some != (refused > 0) || refused > pods-10 {
			t.Errorf("%d Pods: %d were refused", pods, refused)
		}
		out += s.run(time.Minute)
		if n := strings.Count(out, "Started p"); n != pods {
			t.Errorf("%d of %d Pods started", n, pods)
		}
	}
}
