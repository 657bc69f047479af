package tuitest

import (
	"errors"
	"strings"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
	"podwalk/tui/app"
	"podwalk/tui/frame"
	"podwalk/tui/i18n"
	"podwalk/tui/player"
	"podwalk/tui/views"
)

// Program offers the recorded runs as if they were lessons, drills and the sandbox.
type Program struct{ Saved *app.Settings }

// Runs are the recorded runs by name.
var Runs = map[string]func() *Run{
	"happy": Happy, "notag": NoTag, "noroom": NoRoom, "refused": Refused, "deployment": Deployment,
}

// Notice implements app.Program.
func (p *Program) Notice(*i18n.Catalog) string { return "" }

// Home implements app.Program.
func (p *Program) Home(c *i18n.Catalog) ([]views.Entry, map[stage.Step]float64) {
	return []views.Entry{
		{ID: "happy", Label: c.T("home.continue"), Note: c.T("home.noteContinue")},
		{ID: "lesson", Label: c.T("home.lesson"), Note: c.T("home.minutes", "n", 10), Why: "`kubectl run nginx --image=nginx`"},
		{ID: "identify", Label: c.T("home.drill"), Note: c.T("home.due", "n", 3)},
		{ID: "notag", Label: c.T("home.sandbox"), Note: c.T("home.noteSandbox")},
		{ID: "progress", Label: c.T("home.progress"), Note: c.T("home.none"), Off: true},
		{ID: "settings", Label: c.T("home.settings")},
		{ID: "language", Label: c.T("home.language"), Note: c.T("lang.self")},
		{ID: "quit", Label: c.T("home.quit")},
	}, map[stage.Step]float64{"1": 1, "2": .9, "3": .4, "4": .8, "5": .3}
}

// Open implements app.Program.
func (p *Program) Open(id string) (*app.Session, error) {
	run, name := Happy(), id
	if f, ok := Runs[id]; ok {
		run = f()
	}
	s := &app.Session{
		ID: name, Timeline: run, Start: -1,
		Title:   func(l i18n.Lang) string { return titles[l] },
		Verdict: func(c *i18n.Catalog) string { return c.T("app.ready") },
		Faults:  faults,
		Inject:  func(int, string) (player.Timeline, error) { r := NoRoom(); r.branch = "1"; return r, nil },
		Kubectl: func(_ int, line string) app.Result { return kubectl(line) },
		Complete: func(_ int, line string) []string {
			var out []string
			for _, w := range []string{"get", "describe", "delete", "logs", "pods", "nodes"} {
				if strings.HasPrefix(w, line[strings.LastIndex(line, " ")+1:]) {
					out = append(out, w)
				}
			}
			return out
		},
	}
	switch id {
	case "lesson":
		s.Story = &story{answered: map[string]int{}}
	case "identify":
		r := NoRoom()
		s.Timeline, s.Exercise = r, &drill{hop: r.find(stage.Filter), hints: 2}
	case "broken":
		return nil, errors.New("there is no such lesson")
	}
	return s, nil
}

// Save implements app.Program.
func (p *Program) Save(s app.Settings) error { p.Saved = &s; return nil }

var titles = map[i18n.Lang]string{
	i18n.English: "From kubectl run to a running container",
	i18n.Chinese: "從 kubectl run 到容器執行",
}

func (r *Run) find(id stage.ID) int {
	for i, h := range r.hops {
		if h.Stage == id {
			return i
		}
	}
	return -1
}

func kubectl(line string) app.Result {
	if strings.Contains(line, "get") {
		return app.Result{Hop: -1, Output: "NAME      READY   STATUS    RESTARTS   AGE   IP           NODE     NOMINATED NODE   READINESS GATES\nnginx     1/1     Running   0          12s   10.244.2.7   node02   <none>           <none>\nweb-5f6   1/1     Running   0          3m    10.244.1.5   node01   <none>           <none>"}
	}
	return app.Result{Hop: -1, Failed: true, Output: "error: unknown command " + line}
}

func faults(l i18n.Lang) []views.FaultItem {
	return []views.FaultItem{
		{ID: "unauthorized", Step: "2", Title: "Unauthorized", Symptom: "error: You must be logged in to the server (Unauthorized)"},
		{ID: "rbac-forbidden", Step: "2", Title: "RBAC: forbidden", Symptom: `Error from server (Forbidden): pods is forbidden: User "dev" cannot create resource "pods"`},
		{ID: "insufficient-cpu", Step: "5", Title: "Insufficient cpu", Symptom: "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."},
		{ID: "image-tag-missing", Step: "8", Title: "Image tag missing", Symptom: "ImagePullBackOff"},
		{ID: "cni-broken", Step: "8", Title: "CNI broken", Symptom: "FailedCreatePodSandBox"},
		{ID: "crash-loop", Step: "9", Title: "Crash loop", Symptom: "CrashLoopBackOff"},
	}
}

type story struct{ answered map[string]int }

func (s *story) Title(l i18n.Lang) string { return titles[l] }

func (s *story) Answer(q string, c int) { s.answered[q] = c }

func (s *story) Matters(int, trace.Hop) (bool, bool) { return false, false }

func (s *story) Passage(f *frame.Frame) (frame.Passage, bool) {
	h, ok := f.Hop()
	if !ok || h.Stage != stage.Filter {
		return frame.Passage{}, false
	}
	q := &frame.Question{
		ID: "which-node", Prompt: "Which node wins?", Answered: -1,
		Choices: []frame.Choice{
			{Text: "node01", Feedback: "node01 has only 100m cpu left, and the Pod asks for 250m."},
			{Text: "node02", Right: true, Feedback: "It is the only node that passed every plugin."},
			{Text: "none yet: they are scored first", Feedback: "With one node left there is nothing to score."},
		},
	}
	if c, ok := s.answered[q.ID]; ok {
		q.Answered = c
	}
	return frame.Passage{Text: "node01 has 100m cpu left and the Pod asks for 250m. node02 passes every plugin.", Question: q}, true
}

type drill struct{ hop, hints int }

func (d *drill) Title(i18n.Lang) string { return "Drill" }
func (d *drill) Kind() string           { return "identify" }
func (d *drill) Task(l i18n.Lang) string {
	if l == i18n.Chinese {
		return "Pod 建立了，卻一直沒有執行。停在哪裡？"
	}
	return "The Pod was created but does not run. Where did it stop?"
}

func (d *drill) Evidence() []views.Shown {
	return []views.Shown{{Command: "kubectl get pods", Output: "NAME   READY   STATUS    RESTARTS   AGE\nbig    0/1     Pending   0          2m"}}
}

func (d *drill) Answer(id stage.ID) views.Verdict {
	return views.Verdict{
		Right: id == stage.Filter, Distance: stage.Distance(id, stage.Filter), Truth: stage.Filter, Hop: d.hop,
		Why:      map[i18n.Lang]string{i18n.English: "The Pod has no node and the event says so.", i18n.Chinese: "Pod 沒有節點，Event 也這麼說。"},
		Evidence: "Warning  FailedScheduling  0/3 nodes are available",
	}
}

func (d *drill) Check() (views.Verdict, bool) { return views.Verdict{}, false }

func (d *drill) HintsLeft() int { return d.hints }

func (d *drill) Hint(i18n.Lang) (string, int) {
	d.hints = max(d.hints-1, 0)
	return "`kubectl describe pod big`", d.hints
}
