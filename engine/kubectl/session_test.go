package kubectl_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/apiserver/serve"
	"podwalk/engine/apiserver/serve/servetest"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kernel"
	"podwalk/engine/kubectl"
)

func TestMain(m *testing.M) {
	kubectl.ChildMain()
	os.Exit(m.Run())
}

func pod(name string, ready bool, created kernel.Time) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(created.Wall())},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if ready {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func open(t *testing.T, run *servetest.Run, cfg kubectl.Config) *kubectl.Session {
	t.Helper()
	s, err := kubectl.Open(serve.NewShared(run, serve.Automatic), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestKubectlIsTheRealOne(t *testing.T) {
	run := servetest.New(pod("web", true, 0))
	run.At = kernel.Time(90 * time.Minute)
	s := open(t, run, kubectl.Config{})
	for _, c := range []struct {
		line, out, err string
		exit           int
	}{
		{"kubectl version", "Client Version: v1.37.2\nKustomize Version: v5.8.1\nServer Version: v1.37.2\n", "", 0},
		{"k get pods", "NAME   READY   STATUS    RESTARTS   AGE\nweb    0/1     Running   0          90m\n", "", 0},
		{"get pod nope", "", "Error from server (NotFound): pods \"nope\" not found\n", 1},
		{"kubectl run other --image=nginx", "pod/other created\n", "", 0},
		{"kubectl frobnicate", "", "error: unknown command \"frobnicate\" for \"kubectl\"\n", 1},
		{"kubectl get pods | grep web", "", "error: \"|\": this prompt runs", 2},
		{"kubectl get pods -o 'jsonpath={.items[*].metadata.name}'", "other web", "", 0},
		{"kubectl config current-context", "kubernetes-admin@podwalk\n", "", 0},
		{"kubectl edit pod web", "", "error: kubectl edit needs a terminal", 1},
		{"kubectl proxy --port=0", "", "error: this simulation has no kubectl proxy", 1},
		{"kubectl port-forward web 8080:80", "", "error: this simulation has no kubectl port-forward", 1},
		{"kubectl apply -f https://example.org/pod.yaml", "", "error: the simulation does not reach the network", 1},
		{"kubectl get pods --server=https://10.0.0.1", "", "error: kubectl is connected to the simulated cluster", 1},
	} {
		r := s.Run(context.Background(), c.line, nil)
		if r.Stdout != c.out || !strings.HasPrefix(r.Stderr, c.err) || r.Exit != c.exit {
			t.Errorf("$ %s\nexit %d\n%s%s", c.line, r.Exit, r.Stdout, r.Stderr)
		}
	}
	if h := s.History(); len(h) != 13 || h[1] != "k get pods" {
		t.Errorf("history: %q", h)
	}
	if got := strings.Join(s.Complete(context.Background(), "kubectl get pod w"), " "); got != "web" {
		t.Errorf("completion of a name: %q", got)
	}
	if got := s.Complete(context.Background(), "kubectl exp"); strings.Join(got, " ") != "explain expose" {
		t.Errorf("completion of a verb: %q", got)
	}
}

// Another cluster that runs on this machine, with whoever's credentials, is not reached;
// an address at which nobody answers may be tried, and says so itself.
func TestOtherClustersAreNotReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := "https://" + l.Addr().String()
	file := filepath.Join(t.TempDir(), "config")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: real, cluster: {server: '" + other + "'}}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, servetest.New(), kubectl.Config{})
	for _, line := range []string{"delete pod web --server=" + other, "-s " + other + " get pods", "--kubeconfig=" + file + " get pods"} {
		r := s.Run(context.Background(), line, nil)
		if r.Exit != 1 || !strings.HasPrefix(r.Stderr, "error: kubectl is connected to the simulated cluster here") {
			t.Errorf("$ %s\nexit %d\n%s", line, r.Exit, r.Stderr)
		}
	}
	l.Close()
	r := s.Run(context.Background(), "get pods --server="+other, nil)
	if !strings.Contains(r.Stderr, "was refused - did you specify the right host or port?") {
		t.Errorf("exit %d\n%s", r.Exit, r.Stderr)
	}
	r = s.Run(context.Background(), "get pods --kubeconfig=/nonexistent", nil)
	if r.Stderr != "error: stat /nonexistent: no such file or directory\n" {
		t.Errorf("exit %d\n%s", r.Exit, r.Stderr)
	}
}

// A wait takes as much virtual time as it needs, and hardly any real time.
func TestWaitMakesVirtualTimePass(t *testing.T) {
	run := servetest.New(pod("web", false, 0))
	run.Later = []servetest.Change{{At: kernel.Time(20 * time.Second), Object: pod("web", true, 0)}}
	s := open(t, run, kubectl.Config{})
	begin := time.Now()
	r := s.Run(context.Background(), "kubectl wait --for=condition=Ready pod/web --timeout=60s", nil)
	if r.Stdout != "pod/web condition met\n" || r.Exit != 0 {
		t.Errorf("exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if at := time.Duration(run.At); at < 20*time.Second || at > 21*time.Second {
		t.Errorf("the wait ended at %s of virtual time", at)
	}
	r = s.Run(context.Background(), "kubectl wait --for=condition=Initialized pod/web --timeout=2m", nil)
	if r.Stderr != "error: timed out waiting for the condition on pods/web\n" || r.Exit != 1 {
		t.Errorf("exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("140 s of virtual time took %s", took)
	}
}

func TestRefusedDialIsKubectlsOwnError(t *testing.T) {
	run := servetest.New()
	run.Refuse = func(wire.Request) (wire.Answer, bool) {
		return wire.Answer{Transport: "dial tcp 172.30.0.2:6443: connect: connection refused"}, true
	}
	s := open(t, run, kubectl.Config{})
	r := s.Run(context.Background(), "kubectl run x --image=nginx", nil)
	want := "The connection to the server " + s.Address() + " was refused - did you specify the right host or port?\n"
	if !strings.HasSuffix(r.Stderr, want) || r.Exit != 1 {
		t.Errorf("exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
}

func TestExecCarriesOutputAndExitCode(t *testing.T) {
	run := servetest.New(pod("web", true, 0))
	result := wire.ExecResult{Stdout: []byte("out\n"), Stderr: []byte("err\n"), Exit: 3}
	run.Refuse = func(req wire.Request) (wire.Answer, bool) {
		if req.Subresource != "exec" {
			return wire.Answer{}, false
		}
		body, _ := json.Marshal(result)
		return wire.Answer{Code: 101, Body: body}, true
	}
	s := open(t, run, kubectl.Config{})
	r := s.Run(context.Background(), "kubectl exec web -- sh -c 'exit 3'", nil)
	if r.Stdout != "out\n" || r.Stderr != "err\ncommand terminated with exit code 3\n" || r.Exit != 3 {
		t.Errorf("exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if got := run.Requests[len(run.Requests)-1].Options.Params["command"]; got != "sh\x00-c\x00exit 3" {
		t.Errorf("command %q", got)
	}
	result = wire.ExecResult{Stdout: []byte("fine\n")}
	if r = s.Run(context.Background(), "kubectl exec web -- true", nil); r.Stdout != "fine\n" || r.Exit != 0 {
		t.Errorf("exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
}

func TestUsersProveWhoTheyAre(t *testing.T) {
	run := servetest.New()
	s := open(t, run, kubectl.Config{Users: []kubectl.User{
		kubectl.Admin, {Name: "jane", Groups: []string{"dev"}}, {Name: "robot", Token: "t0k"},
	}})
	for _, c := range []struct {
		args string
		want wire.Credential
	}{
		{"", wire.Credential{CommonName: "kubernetes-admin", Orgs: []string{"system:masters"}}},
		{" --context=jane@podwalk", wire.Credential{CommonName: "jane", Orgs: []string{"dev"}}},
		{" --context=robot@podwalk", wire.Credential{Token: "t0k"}},
		{" --as=bob --as-group=ops", wire.Credential{CommonName: "kubernetes-admin", Orgs: []string{"system:masters"}, AsUser: "bob", AsGroups: []string{"ops"}}},
	} {
		s.Run(context.Background(), "kubectl get pods"+c.args, nil)
		got := run.Requests[len(run.Requests)-1].Credential
		if got.CommonName != c.want.CommonName || strings.Join(got.Orgs, ",") != strings.Join(c.want.Orgs, ",") ||
			got.Token != c.want.Token || got.AsUser != c.want.AsUser || strings.Join(got.AsGroups, ",") != strings.Join(c.want.AsGroups, ",") || got.BadCert != "" {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ in, out, err string }{
		{`get pods`, "get|pods", ""},
		{`run x --image="a b" -- sh -c 'echo $HOME; ls'`, "run|x|--image=a b|--|sh|-c|echo $HOME; ls", ""},
		{`label pod a\ b x= # comment`, "label|pod|a b|x=", ""},
		{`get ''`, "get|", ""},
		{`get "x`, "", "the quote \" is not closed"},
		{`get pods > f`, "", "redirection"},
		{`get pods; ls`, "", "several commands"},
		{`get $(x)`, "", "variables"},
	} {
		got, err := kubectl.Words(c.in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v", c.in, err)
			}
			continue
		}
		if s := strings.Join(got, "|"); s != c.out || err != nil {
			t.Errorf("%s: %q %v", c.in, s, err)
		}
	}
}

func BenchmarkKubectl(b *testing.B) {
	s, err := kubectl.Open(serve.NewShared(servetest.New(pod("web", true, 0)), serve.Automatic), kubectl.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	s.Run(context.Background(), "kubectl get pods", nil)
	for b.Loop() {
		s.Run(context.Background(), "kubectl get pods", nil)
	}
}
