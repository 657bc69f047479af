package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podwalk/engine/kubectl"
	"podwalk/tui/cli"
	"podwalk/tui/progress"
)

// asProgram makes the test program be podwalk.
const asProgram = "PODWALK_AS_PROGRAM"

func TestMain(m *testing.M) {
	kubectl.ChildMain() // this program is its own kubectl
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	code = cli.Run(context.Background(), args, []string{"HOME=" + home, "PODWALK_LANG=en"}, strings.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), code
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestBadInput: every kind of bad input ends with exit code 2 and a text that says what is
// wrong and where.
func TestBadInput(t *testing.T) {
	good := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: nginx}]}\n---\n"
	cases := []struct {
		name string
		args []string
		want string
	}{
		{"indentation", []string{"trace", "-f", file(t, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n spec:\n")}, "document 1: yaml: line 4"},
		{"unknown field", []string{"trace", "-f", file(t, good+"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containerz: []}\n")}, `document 2 (Pod x): unknown field "spec.containerz"`},
		{"wrong version", []string{"trace", "-f", file(t, "apiVersion: v2\nkind: Pod\nmetadata: {name: x}\n")}, `no matches for kind "Pod" in version "v2"`},
		{"empty", []string{"trace", "-f", file(t, "")}, "there is no object in it"},
		{"binary", []string{"trace", "-f", file(t, "\x7fELF\x00\x01")}, "binary file"},
		{"huge", []string{"trace", "-f", file(t, strings.Repeat("x", 4<<20))}, "the API server takes at most"},
		{"missing file", []string{"trace", "-f", "/nowhere/x.yaml"}, "no such file"},
		{"unknown fault", []string{"trace", "--fault", "nosuch"}, `there is no fault "nosuch"`},
		{"unknown flag", []string{"trace", "--nosuch"}, "unknown flag: --nosuch"},
		{"unknown command", []string{"plya"}, "did you mean play"},
		{"unknown format", []string{"trace", "-o", "xml"}, "text, json or mermaid"},
		{"unknown verb", []string{"trace", "--run", "kubectl frobnicate"}, `unknown command "frobnicate"`},
		{"unknown kubectl flag", []string{"trace", "--run", "kubectl run x --image=nginx --nosuch"}, "unknown flag: --nosuch"},
		{"a pipe", []string{"trace", "--run", "kubectl get pods | grep x"}, "pipes do not work here"},
		{"unknown language", []string{"stages", "--lang", "tlh"}, "lang"},
		{"unknown lesson", []string{"learn", "nosuch"}, "there is no lesson"},
		{"unknown exercise", []string{"drill", "nosuch"}, "there is no exercise"},
		{"no sandbox", []string{"kubectl", "get", "pods"}, "podwalk play"},
		{"no terminal", []string{"play"}, "needs a terminal"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, code := run(t, "", c.args...)
			if code != 2 || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, %q; want 2 and %q", code, stderr, c.want)
			}
		})
	}
}

// TestTrace: the headless run of the commands that the README names.
func TestTrace(t *testing.T) {
	out, _, code := run(t, "", "trace", "--run", "kubectl run nginx --image=nginx")
	if code != 0 || !strings.HasSuffix(out, "\nready\n") {
		t.Errorf("exit code %d, ends %q", code, out[max(0, len(out)-200):])
	}
	out, stderr, code := run(t, "", "trace", "-o", "json", "--run", "kubectl create deployment web --image=nginx --replicas=3")
	if code != 0 || stderr != "ready\n" {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	steps := ""
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var h struct{ Step string }
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !strings.HasSuffix(steps, h.Step+" ") {
			steps += h.Step + " "
		}
	}
	if !strings.HasPrefix(steps, "0 1 2 3 4 C 1 2 3 4 C 1 2 3 4 ") {
		t.Errorf("the objects of a Deployment do not each make their lap: %s", steps)
	}
	_, _, code = run(t, "", "trace", "--fault", "image-tag-missing")
	if code != 1 {
		t.Errorf("a run that fails ends with exit code %d", code)
	}
	out, stderr, code = run(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}\n", "trace", "-f", "-")
	if code != 0 || !strings.Contains(stderr, "Job j is stored, but nothing") {
		t.Errorf("a kind that nothing acts on: exit code %d, %q %q", code, out, stderr)
	}
}

// TestLists: each list is one array in JSON, with the promised keys.
func TestLists(t *testing.T) {
	for what, keys := range map[string][]string{
		"stages": {"id", "step", "component", "title"}, "faults": {"id", "step", "stage", "verdict", "title", "symptom"},
		"lessons": {"id", "title", "minutes"}, "exercises": {"id", "kind", "stage", "difficulty", "domains", "title"},
	} {
		for _, lang := range []string{"en", "zh-TW"} {
			out, stderr, code := run(t, "", what, "-o", "json", "--lang", lang)
			var rows []map[string]any
			if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 || len(rows) == 0 {
				t.Fatalf("%s: exit code %d, %v, %s", what, code, err, stderr)
			}
			for _, k := range keys {
				if _, ok := rows[0][k]; !ok {
					t.Errorf("%s -o json has no %q", what, k)
				}
			}
			if len(rows[0]) != len(keys) {
				t.Errorf("%s -o json has %d keys, not %d", what, len(rows[0]), len(keys))
			}
		}
	}
}

// at runs podwalk with a home directory that stays.
func at(t *testing.T, home, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Run(context.Background(), args, []string{"HOME=" + home, "PODWALK_LANG=en"}, strings.NewReader(stdin), &out, &errs); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, errs.String())
	}
	return out.String(), errs.String()
}

// TestPlainTimeIsTheLearners: commands that are not what the lesson asks for cost no more
// than a moment of the cluster's time.
func TestPlainTimeIsTheLearners(t *testing.T) {
	out, _, code := run(t, "1\n\n"+strings.Repeat("kubectl get pods -A\n", 5)+"\n\nkubectl get pod nginx\n", "learn", "first-pod", "--plain")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if n := strings.Count(out, "That did not bring about"); n != 5 {
		t.Fatalf("%d lines of 5 were refused:\n%s", n, out)
	}
	if !strings.Contains(out, "\n  0.0") || strings.Contains(out, "\n 10.") {
		t.Errorf("looking has cost time: the command was sent late\n%s", out)
	}
}

// TestPlainLessonsResume: a lesson is taken up where it was left, with what was done
// there; the saved step never goes back.
func TestPlainLessonsResume(t *testing.T) {
	home := t.TempDir()
	first, _ := at(t, home, "1\n\n\n\n\n2\n1\n3\nq\n", "learn", "first-pod", "--plain")
	saved := progressIn(t, home)
	if saved.Step < 3 {
		t.Fatalf("the lesson stands at step %d:\n%s", saved.Step, first)
	}
	again, _ := at(t, home, "q\n", "learn", "first-pod", "--plain")
	if want := fmt.Sprintf("You go on at step %d of", saved.Step+1); !strings.Contains(again, want) {
		t.Errorf("it does not say %q:\n%s", want, again)
	}
	if now := progressIn(t, home); now.Step < saved.Step || len(now.Answers) != len(saved.Answers) {
		t.Errorf("it was at %+v and is now at %+v", saved, now)
	}
}

func progressIn(t *testing.T, home string) progress.Lesson {
	t.Helper()
	s, err := progress.Open(filepath.Join(home, ".local", "state", "podwalk", "progress.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Get().Lessons["first-pod"]
}

// TestPlainPutsDamagedProgressAside: it says where the damaged file is, and goes on.
func TestPlainPutsDamagedProgressAside(t *testing.T) {
	home := t.TempDir()
	name := filepath.Join(home, ".local", "state", "podwalk", "progress.json")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(`{"version":1,"les`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr := at(t, home, "q\n", "learn", "--plain")
	if !strings.Contains(stderr, name+".damaged-1") {
		t.Errorf("it says %q", stderr)
	}
}

// TestPlainSessions goes through a whole lesson and a drill line by line, always pressing
// enter and answering by number until the answer is right.
func TestPlainSessions(t *testing.T) {
	for _, lang := range []string{"en", "zh-TW"} {
		for _, lesson := range []string{"first-pod", "deployment"} {
			// After each answer the next numbers are tried too; where none is asked for, a number
			// counts as enter.
			out, stderr, code := run(t, strings.Repeat("\n1\n2\n3\n4\n5\n", 60), "learn", lesson, "--plain", "--lang", lang)
			if code != 0 || stderr != "" {
				t.Fatalf("%s %s: exit code %d, %s", lang, lesson, code, stderr)
			}
			end := map[string]string{"en": "The lesson is over.", "zh-TW": "課程結束。"}[lang]
			if !strings.Contains(out, end) || strings.Contains(out, "{{") || strings.Contains(out, "plain.") {
				t.Errorf("%s %s does not come to its end: …%s", lang, lesson, out[max(0, len(out)-400):])
			}
		}
		out, stderr, code := run(t, "h\nkubectl get pods\n1\nq\n", "drill", "pending", "--plain", "--lang", lang)
		if code != 0 || !strings.Contains(out, "NAME") || strings.Contains(out, "plain.") {
			t.Errorf("%s drill: exit code %d, %s\n%s", lang, code, stderr, out)
		}
	}
}
