package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podwalk/engine"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
	"podwalk/engine/stage"
	"podwalk/lessons"
	"podwalk/tui/app"
	"podwalk/tui/i18n"
	"podwalk/tui/progress"
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

func TestMain(m *testing.M) {
	kubectl.ChildMain() // this program is its own kubectl
	os.Exit(m.Run())
}

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

// typist is a kubectl that knows two commands.
type typist struct{ t *engine.Timeline }

func (s typist) Kubectl(line string) (stdout, stderr string, code int) {
	switch {
	case strings.Contains(line, "run nginx"):
		if err := s.t.Act(func(e *engine.Engine) error { return e.ApplyManifest([]byte(nginx), "default") }); err != nil {
			return "", err.Error(), 1
		}
		return "pod/nginx created\n", "", 0
	case strings.Contains(line, "get"):
		return "NAME   READY\n", "", 0
	}
	return "", "error: unknown command\n", 1
}

func (typist) Close() error { return nil }

func shell(t *engine.Timeline, _ string) (engine.Shell, error) { return typist{t}, nil }

func program(t *testing.T) *Program {
	t.Helper()
	store, err := progress.Open(filepath.Join(t.TempDir(), "progress.json"))
	if err != nil {
		t.Fatal(err)
	}
	return &Program{NewShell: shell, Progress: store, Seed: 1, Wall: func() time.Time { return time.Time{} }}
}

func drive(t *testing.T, p *Program, open string) *tuitest.Driver {
	t.Helper()
	d, err := tuitest.New(120, 36, i18n.English, open, func(o *app.Options) { o.Program = p })
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFirstActs walks the beginning of the first lesson as a learner does: predict, type
// the command, go on, predict again; then leaves and comes back.
func TestFirstActs(t *testing.T) {
	p := program(t)
	d := drive(t, p, "lesson/first-pod")
	if s := d.Screen(); !strings.Contains(s, "Your turn") || !strings.Contains(s, "what exists?") {
		t.Fatalf("the lesson does not begin with its question\n%s", s)
	}
	d.Keys("n")
	if s := d.Screen(); !strings.Contains(s, "Answer first") {
		t.Fatalf("the question does not hold\n%s", s)
	}
	d.Keys("1", "n")
	s := d.Screen()
	if !strings.Contains(s, "$ ") || !strings.Contains(s, "Type it yourself") {
		t.Fatalf("no terminal to type in\n%s", s)
	}
	d.Type("kubectl run nginx --image=nginx")
	d.Keys("enter")
	if s := d.Screen(); !strings.Contains(s, "Save") || strings.Contains(s, "hop 0 of") {
		t.Fatalf("the command does not bring the story to the Pod's saving\n%s", s)
	}
	if s := d.Screen(); !strings.Contains(s, "Act one: accepted") || !strings.Contains(s, "pod/nginx created") {
		t.Fatalf("the lesson does not go on with what the command said\n%s", s)
	}
	d.Keys("n", "n")
	if s := d.Screen(); !strings.Contains(s, "Where can the Pod go?") {
		t.Fatalf("not at the second prediction\n%s", s)
	}
	d.Keys("3", "n")
	if s := d.Screen(); !strings.Contains(s, "The decision is saved") {
		t.Fatalf("the lesson does not go on to the binding\n%s", s)
	}
	d.Keys("l")
	if s := d.Screen(); strings.Contains(s, "The decision is saved") || !strings.Contains(s, "spec.nodeName") {
		t.Fatalf("the lesson is not in Chinese\n%s", s)
	}
	d.Keys("l", "p", "q")
	if s := d.Screen(); !strings.Contains(s, "step 5 of") {
		t.Fatalf("progress is not kept\n%s", s)
	}
	d.Keys("enter")
	if s := d.Screen(); !strings.Contains(s, "The decision is saved") {
		t.Fatalf("the lesson is not taken up where it was left\n%s", s)
	}
}

func realKubectl(t *engine.Timeline, namespace string) (engine.Shell, error) {
	return kubectl.Over(t.Outside(), kubectl.Config{Namespace: namespace, Client: stage.Kubectl})
}

// TestLessonsToTheirEnd goes through every lesson on the screen as a learner does: answers,
// types what he is asked to, presses the key that goes on. On the way nothing that is
// healthy is called a failure.
func TestLessonsToTheirEnd(t *testing.T) {
	all, err := lessons.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		for _, still := range []bool{false, true} {
			p := program(t)
			p.NewShell = realKubectl
			d, err := tuitest.New(100, 30, i18n.English, "lesson/"+l.ID, func(o *app.Options) {
				o.Program, o.Settings.ReducedMotion = p, still
			})
			if err != nil {
				t.Fatal(err)
			}
			at, broken := 0, false
			for at < len(l.Steps)-1 {
				s := l.Steps[at]
				broken = broken && s.Repair == "" || s.Fault != ""
				for range 4 {
					if s.Ask != nil {
						d.Keys("1")
					}
					if screen := d.Screen(); !broken && strings.Contains(screen, "failed at") {
						t.Fatalf("%s, step %s: nothing has failed\n%s", l.ID, s.At, screen)
					}
					if s.Try != "" && p.Progress.Get().Lessons[l.ID].Step == at {
						d.Type(s.Try)
						d.Keys("enter")
						if strings.Contains(d.Screen(), "enter run") {
							d.Keys("esc")
						}
						s.Try = ""
					}
					if p.Progress.Get().Lessons[l.ID].Step == at {
						d.Keys("n")
					}
					if now := p.Progress.Get().Lessons[l.ID].Step; now > at {
						break
					}
				}
				now := p.Progress.Get().Lessons[l.ID].Step
				if now != at+1 {
					t.Fatalf("%s does not go on from step %s (is at %d)\n%s", l.ID, s.At, now, d.Screen())
				}
				at = now
			}
		}
	}
}

// TestLessonSeesWhatTheLearnerDid: what he does of his own accord in a lesson is there for
// his next command, and the lesson still waits for what it asks.
func TestLessonSeesWhatTheLearnerDid(t *testing.T) {
	p := program(t)
	p.NewShell = realKubectl
	d := drive(t, p, "lesson/first-pod")
	d.Keys("1", "n")
	for _, line := range []string{"kubectl create configmap mine --from-literal=a=b", "kubectl get configmaps"} {
		d.Type(line)
		d.Keys("enter")
	}
	s := d.Screen()
	if _, after, _ := strings.Cut(s, "get configmaps"); !strings.Contains(after, "mine") {
		t.Fatalf("the second command does not see what the first did\n%s", s)
	}
	if !strings.Contains(s, "Type it yourself") {
		t.Fatalf("the lesson no longer says what to do\n%s", s)
	}
	d.Type("k run ngnix --image=nginx")
	d.Keys("enter")
	if s := d.Screen(); !strings.Contains(s, "That did not bring about what is asked for: kubectl run nginx") {
		t.Fatalf("another name is passed over in silence\n%s", s)
	}
	d.Type("kubectl run nginx --image=nginx")
	d.Keys("enter")
	if s := d.Screen(); !strings.Contains(s, "and 12 hops") {
		t.Fatalf("what was done before counts for the command that was asked for\n%s", s)
	}
	d.Keys("n", "n")
	if s := d.Screen(); !strings.Contains(s, "Where can the Pod go?") {
		t.Fatalf("the lesson does not go on\n%s", s)
	}
}

func TestSandboxBreaks(t *testing.T) {
	d := drive(t, program(t), "sandbox")
	d.Keys("n", "n", "n", "f")
	d.Type("insufficient")
	d.Keys("enter")
	if s := d.Screen(); !strings.Contains(s, "Injected") {
		t.Fatalf("nothing injected\n%s", s)
	}
	d.Keys("G")
	if s := d.Screen(); !strings.Contains(s, "failed at") && !strings.Contains(s, "FailedScheduling") {
		t.Errorf("the run does not fail\n%s", s)
	}
}

func TestComplete(t *testing.T) {
	s := sandbox(t)
	for line, want := range map[string]string{"kubectl get po": "pods", "k describe pod ng": "nginx", "kubectl desc": "describe", "ku": "kubectl"} {
		got := s.Complete(200, line)
		if len(got) == 0 || got[len(got)-1] != want && got[0] != want {
			t.Errorf("%q: %v, want %s", line, got, want)
		}
	}
}

// TestDrillLeadsOn: an answer is given on purpose, tells what it was worth, and leads to
// the next exercise.
func TestDrillLeadsOn(t *testing.T) {
	p := program(t)
	p.NewShell = realKubectl
	d := drive(t, p, "drill")
	first := strings.SplitN(d.Screen(), "\n", 2)[0]
	d.Keys("enter")
	if n := len(p.Progress.Get().Results); n != 0 {
		t.Fatalf("one careless key has answered\n%s", d.Screen())
	}
	d.Keys("h", "h")
	if s := d.Screen(); !strings.Contains(s, "Hint 1") || !strings.Contains(s, "Hint 2") {
		t.Fatalf("the first hint is gone\n%s", s)
	}
	d.Keys("enter")
	if s := d.Screen(); len(p.Progress.Get().Results) != 1 || !strings.Contains(s, " points · enter: the next exercise") {
		t.Fatalf("the answer is not told what it was worth\n%s", s)
	}
	d.Keys("enter")
	if s := strings.SplitN(d.Screen(), "\n", 2)[0]; s == first || !strings.Contains(d.Screen(), "What the user sees") {
		t.Fatalf("there is no next exercise\n%s", d.Screen())
	}
}

// TestInjectShowsTheFailure: when the fault was the right one, the picture goes to where it
// fails.
func TestInjectShowsTheFailure(t *testing.T) {
	p := program(t)
	p.NewShell = realKubectl
	d := drive(t, p, "exercise/make-it-pending")
	d.Keys("h")
	if s := d.Screen(); !strings.Contains(s, "Hint 1") {
		t.Fatalf("no hint\n%s", s)
	}
	d.Keys("G", "f")
	d.Type("as much CPU")
	d.Keys("enter")
	if s := d.Screen(); !strings.Contains(s, "Done.") || !strings.Contains(s, "Insufficient cpu") || !strings.Contains(s, "enter: the next") {
		t.Fatalf("the failure is not shown\n%s", s)
	}
}
