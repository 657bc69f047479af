package resources

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"podwalk/engine/kube"
)

// Every kind makes the round trip through the internal version.
func TestEveryKind(t *testing.T) {
	for _, k := range kube.Kinds() {
		row, ok := Get(k.Resource)
		if !ok {
			t.Errorf("%s is not in the registry", k.Resource)
			continue
		}
		obj := k.New()
		obj.SetName("x")
		legacyscheme.Scheme.Default(obj)
		stored, err := row.Stored(obj)
		if err != nil {
			t.Errorf("%s: %v", k.Kind, err)
			continue
		}
		if back := row.Served(stored).(metav1.Object); back.GetName() != "x" || fmt.Sprintf("%T", back) != fmt.Sprintf("%T", obj) {
			t.Errorf("%s came back as %T %q", k.Kind, back, back.GetName())
		}
	}
}

func TestEventsAreOneObjectInTwoVersions(t *testing.T) {
	newer, _ := Get(kube.EventsV1)
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Scheduled", Note: "Successfully assigned default/a to node01",
		Regarding: corev1.ObjectReference{Kind: "Pod", Name: "a"}, ReportingController: "default-scheduler",
	}
	stored, err := newer.Stored(e)
	if err != nil {
		t.Fatal(err)
	}
	old := stored.(*corev1.Event)
	if old.Message != e.Note || old.InvolvedObject.Name != "a" || old.ReportingController != "default-scheduler" {
		t.Errorf("as core/v1: %+v", old)
	}
	if newer.KeyOf(stored) != "/registry/events/e" && newer.KeyOf(stored) != "/registry/events//e" {
		t.Errorf("key = %s", newer.KeyOf(stored))
	}
}
