package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"podwalk/tui/cli"
)

// endless never stops giving zeros; it counts what was taken.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.taken += len(p)
	return len(p), nil
}

// TestEndlessInput: what has no end is read only as far as the limit.
func TestEndlessInput(t *testing.T) {
	in := &endless{}
	var errs bytes.Buffer
	code := cli.Run(context.Background(), []string{"trace", "-f", "-"}, []string{"HOME=" + t.TempDir()}, in, io.Discard, &errs)
	if code != 2 || !strings.Contains(errs.String(), "-: the manifest is larger than") || in.taken > 8<<20 {
		t.Errorf("exit code %d after %d bytes: %s", code, in.taken, errs.String())
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "-f", "/dev/zero"}, "/dev/zero: the manifest is larger than"},
		{[]string{"trace", "--config", "/dev/zero"}, "settings take at most"},
		{[]string{"trace", "--run", "kubectl apply -f /dev/zero"}, "/dev/zero is a device, not a file"},
		{[]string{"trace", "--run", "kubectl create configmap c --from-file=key=/dev/zero"}, "/dev/zero is a device, not a file"},
		{[]string{"trace", "-f", t.TempDir()}, "is a directory; name a file in it"},
	} {
		if _, stderr, code := run(t, "", c.args...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// TestBadCommands: a command that kubectl does not take is bad input, whatever came
// before it.
func TestBadCommands(t *testing.T) {
	before := []string{"trace", "--run", "kubectl run x --image=nginx"}
	for _, c := range []struct{ line, want string }{
		{"kubectl frob", `kubectl frob: error: unknown command "frob"`},
		{"kubectl edit pod x", "kubectl edit needs a terminal"},
		{"kubectl get pod nope", `pods "nope" not found`},
		{`kubectl get "pod`, `the quote " is not closed`},
		{"kubectl get pods > x", "redirection does not work here"},
		{"", "a command is missing"},
		{"kubectl", "a command is missing"},
	} {
		out, stderr, code := run(t, "", append(before, "--run", c.line)...)
		if code != 2 || !strings.Contains(stderr, c.want) || strings.Contains(out, "ready") {
			t.Errorf("%q: exit code %d, %s", c.line, code, stderr)
		}
	}
}

// TestMoreBadInput: names that are empty or given twice, faults that find nothing to act
// on.
func TestMoreBadInput(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: nginx}]}\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{""}, "there is an empty argument"},
		{[]string{"trace", ""}, "there is an empty argument"},
		{[]string{"play", "--theme", "xx"}, `setting theme (from flag): "xx" is not one of: auto, `},
		{[]string{"trace", "-f", ""}, "-f is empty"},
		{[]string{"trace", "-f", "-", "-f", "-"}, "standard input was already read"},
		{[]string{"trace", "-f", "-", "--fault", "quota-exceeded-deployment"}, "fault quota-exceeded-deployment needs a Deployment in the story"},
		{[]string{"trace", "-f", "-", "--fault", "service-selector-mismatch"}, "fault service-selector-mismatch needs a Service in the story"},
		{[]string{"trace", "-f", "-", "--run", "kubectl create service clusterip other --tcp=80", "--fault", "service-selector-mismatch"}, `cannot be injected into this story: services "web" not found`},
		{[]string{"trace", "-f", file(t, strings.Replace(pod, "containers: [{", "containers: {a: {", 1)+"}")}, "document 1"},
		{[]string{"trace", "-f", file(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: hello}\n")}, "document 1 (Pod a): spec.containers is a string, not a list"},
		{[]string{"trace", "-f", file(t, "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Nope}]\n")}, `document 1, items[0]: no matches for kind "Nope"`},
	} {
		if _, stderr, code := run(t, pod, c.args...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// TestTraceSaysWhatItDoes: without a question it says which one it takes.
func TestTraceSaysWhatItDoes(t *testing.T) {
	if _, stderr, code := run(t, "", "trace"); code != 0 || !strings.Contains(stderr, "kubectl run nginx --image=nginx") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestTraceShowsWhatLooks: what a command prints that only looks is shown; a watch ends
// when nothing more happens.
func TestTraceShowsWhatLooks(t *testing.T) {
	out, stderr, code := run(t, "", "trace", "--run", "kubectl run x --image=nginx", "--run", "kubectl get pods -w")
	if code != 0 || !strings.HasSuffix(out, "\nready\n") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{"$ kubectl get pods -w\nNAME", "ContainerCreating", "1/1     Running", "the watch is ended: nothing more happens"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
}

// TestTraceComesAsItGoes: hops are written while the run goes on, and an interrupt ends it
// at once.
func TestTraceComesAsItGoes(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	seen := &watched{of: "CrashLoopBackOff", then: interrupt}
	ended := make(chan int)
	go func() {
		ended <- cli.Run(ctx, []string{"trace", "--fault", "crash-loop", "--deadline", "87600h"}, []string{"HOME=" + t.TempDir()}, strings.NewReader(""), seen, io.Discard)
	}()
	select {
	case code := <-ended:
		if code != 130 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it shows nothing, or does not end")
	}
}

// TestDeletedOnPurpose: what was deleted by whoever asked for it is missed by nobody.
func TestDeletedOnPurpose(t *testing.T) {
	for _, line := range []string{"kubectl delete pod x", "kubectl delete pods --all", "kubectl drain node01 node02 --force --ignore-daemonsets"} {
		out, stderr, code := run(t, "", "trace", "--run", "kubectl run x --image=nginx", "--run", "kubectl wait --for=condition=Ready pod/x", "--run", line)
		if code != 0 || !strings.HasSuffix(out, "\nready\n") {
			t.Errorf("%s: exit code %d, %s %s", line, code, out[max(0, len(out)-200):], stderr)
		}
	}
}

// watched waits for words in what is written.
type watched struct {
	bytes.Buffer
	of   string
	then func()
}

func (w *watched) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.of) {
		w.then()
	}
	return len(p), nil
}

// TestVerdicts: the last line says what is wrong, in the words of whoever said so, or who
// was silent.
func TestVerdicts(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {%s containers: [{name: a, image: nginx}]}\n"
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing to delete", []string{"--run", "kubectl run x --image=nginx", "--run", "kubectl delete pod nope"}, `persist (NotFound: pods "nope" not found)`},
		{"no such scheduler", []string{"-f", file(t, fmt.Sprintf(pod, "schedulerName: nope,"))}, "control-plane (Pod a has no node and no PodScheduled condition: no scheduler took it up, spec.schedulerName: nope)"},
		{"no scheduler", []string{"--fault", "scheduler-stopped"}, "control-plane (Pod nginx has no node and no PodScheduled condition: no scheduler took it up, spec.schedulerName: default-scheduler)"},
		{"more than can be counted", []string{"--run", "kubectl create deployment d --image=nginx --replicas=2147483647"}, "controllers (MinimumReplicasUnavailable: Deployment does not have minimum availability.)"},
		{"no such node", []string{"-f", file(t, fmt.Sprintf(pod, "nodeName: nope,"))}, "node-lifecycle (DeletionByPodGC: PodGC: node no longer exists)"},
	} {
		out, stderr, code := run(t, "", append([]string{"trace"}, c.args...)...)
		if want := "\nfailed at: " + c.want + "\n"; code != 1 || !strings.HasSuffix(out, want) {
			t.Errorf("%s: exit code %d, it ends %q, want %q %s", c.name, code, out[max(0, len(out)-400):], want, stderr)
		}
	}
}
