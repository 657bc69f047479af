package frame_test

import (
	"testing"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/frame"
)

// TestPodStagesAreThePodsOwn: a Deployment, or a Pod of another namespace, may have the
// same name.
func TestPodStagesAreThePodsOwn(t *testing.T) {
	pod := trace.Ref{Kind: "Pod", Namespace: "default", Name: "web"}
	f := frame.Frame{Pod: pod, Hops: []trace.Hop{
		{Stage: stage.Start, Object: pod, Outcome: trace.OK},
		{Stage: stage.Start, Object: trace.Ref{Kind: "Pod", Namespace: "other", Name: "web"}, Outcome: trace.Failed},
		{Stage: stage.Persist, Object: trace.Ref{Kind: "Service", Namespace: "default", Name: "web"}, Outcome: trace.Denied},
		{Stage: stage.QueueSort, Outcome: trace.OK},
	}}
	got := f.PodStages()
	if got[stage.Start] != frame.Done {
		t.Errorf("the Pod has started, its box says %v", got[stage.Start])
	}
	if s, told := got[stage.Persist]; told {
		t.Errorf("what became of a Service is told of the Pod: %v", s)
	}
}
