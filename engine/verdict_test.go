package engine_test

import (
	"testing"

	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

func workload(kind, image string) string {
	extra := ""
	if kind == "StatefulSet" {
		extra = "  serviceName: web\n"
	}
	return `
apiVersion: apps/v1
kind: ` + kind + `
metadata: {name: web}
spec:
` + extra + `  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "` + image + `"}
`
}

const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`

// TestVerdicts plays a story and asks how it ends.
func TestVerdicts(t *testing.T) {
	on := func(point, value string) scenario.Step {
		return scenario.Step{Switch: &scenario.Switch{Point: point, Value: value}}
	}
	apply := func(m string) scenario.Step { return scenario.Step{Apply: m} }
	for name, c := range map[string]struct {
		steps []scenario.Step
		stage stage.ID // "" for ready
	}{
		"a daemon set":                           {[]scenario.Step{apply(workload("DaemonSet", "nginx"))}, ""},
		"a daemon set with an image without tag": {[]scenario.Step{apply(workload("DaemonSet", "nginx:1.99"))}, stage.Image},
		"a daemon set that nobody looks at":      {[]scenario.Step{on("kube-controller-manager.stopped", ""), apply(workload("DaemonSet", "nginx"))}, stage.ControlPlane},
		"no API server":                          {[]scenario.Step{on("kube-apiserver.stopped", ""), apply(pod)}, stage.Request},
		"a stateful set":                         {[]scenario.Step{apply(workload("StatefulSet", "nginx"))}, ""},
		"a stateful set with a bad image":        {[]scenario.Step{apply(workload("StatefulSet", "nginx:1.99"))}, stage.Image},
		"a service":                              {[]scenario.Step{apply(workload("Deployment", "nginx")), apply(service)}, ""},
		"a service, a kube-proxy of two stopped": {[]scenario.Step{on("kube-proxy.stopped", "node02"), apply(workload("Deployment", "nginx")), apply(service)}, stage.Routing},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			for _, s := range c.steps {
				if err := e.Play(s, ""); err != nil {
					t.Fatal(err)
				}
			}
			v := e.Settle(0)
			if v.Ready != (c.stage == "") || v.Stage != c.stage {
				t.Errorf("the verdict is %q, want %q", v, c.stage)
			}
			if h, ok := e.Trace().Get(v.Hop); ok && h.Outcome == trace.OK {
				t.Errorf("the verdict is blamed on a hop that went well: %s", h.Line(0))
			}
		})
	}
}
