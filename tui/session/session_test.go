package session

import (
	"strings"
	"testing"

	"podwalk/engine"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/tuitest"
)

const nginx = `apiVersion: v1
kind: Pod
metadata:
  name: nginx
  labels: {run: nginx}
spec:
  containers:
  - name: nginx
    image: nginx
`

func sandbox(t testing.TB) *app.Session {
	t.Helper()
	r, err := engine.StartRun(scenario.Scenario{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Play([]scenario.Step{{Apply: nginx}}); err != nil {
		t.Fatal(err)
	}
	return Play("sandbox", r, scenario.Text{"en": "Sandbox", "zh-TW": "沙盒"})
}

// TestLiveRun plays a real run from the first hop to Ready and back.
func TestLiveRun(t *testing.T) {
	d, err := tuitest.New(120, 36, i18n.English, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Start(sandbox(t))
	var seen []stage.Step
	for range 80 {
		d.Keys("n")
		for _, s := range stage.Steps() {
			if strings.Contains(d.Screen(), " "+string(s)+"  ") && (len(seen) == 0 || seen[len(seen)-1] != s) {
				seen = append(seen, s)
			}
		}
		if strings.Contains(d.Screen(), "The story ends here") {
			break
		}
	}
	s := d.Screen()
	if !strings.Contains(s, "ready") || !strings.Contains(s, "Running") {
		t.Fatalf("the run does not come to Ready\n%s", s)
	}
	d.Keys("g")
	if s := d.Screen(); !strings.Contains(s, "hop 0 of") {
		t.Errorf("not back at the start\n%s", s)
	}
}
