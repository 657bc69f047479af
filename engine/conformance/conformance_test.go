package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"podwalk/engine"
	"podwalk/engine/apiserver/serve"
	"podwalk/engine/kubectl"
	"podwalk/engine/scenario"
)

func newCluster(c scenario.Cluster) (serve.Run, error) { return engine.New(c) }

var (
	rewrite = flag.Bool("rewrite", false, "write the number of identical outputs to testdata/baseline.txt")
	only    = flag.String("only", "", "replay only recordings whose names begin so, and show the differences")
)

func TestMain(m *testing.M) {
	kubectl.ChildMain()
	os.Exit(m.Run())
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// slack is how many outputs of one recording may differ from run to run: kubectl is a
// process of its own, and on a busy machine it may look a moment later.
const slack = 2

// TestRecordings replays recordings of a real cluster. No recording may have fewer
// identical outputs than the baseline says: it only gets better.
func TestRecordings(t *testing.T) {
	recordings, err := Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" {
		var some []*Recording
		for _, r := range recordings {
			if strings.HasPrefix(r.Name, *only) {
				some = append(some, r)
			}
		}
		recordings = some
	}
	reports, err := Run(context.Background(), newCluster, recordings, ParseKnown(read(t, "differences.txt")), runtime.NumCPU())
	if err != nil {
		t.Fatal(err)
	}
	var sum strings.Builder
	Summary(&sum, reports)
	t.Log("\n" + sum.String())
	if *only != "" {
		for _, r := range reports {
			for _, o := range r.Outcomes {
				if !o.Identical {
					fmt.Println(o.Diff())
				}
			}
		}
		return
	}
	if *rewrite {
		var b strings.Builder
		b.WriteString("# Outputs of each recording that are identical to those of a real cluster, at least.\n")
		for _, r := range reports {
			fmt.Fprintf(&b, "%s %d\n", r.Name, r.Identical)
		}
		if err := os.WriteFile("testdata/baseline.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	baseline, err := ParseBaseline(read(t, "baseline.txt"))
	if err != nil {
		t.Fatal(err)
	}
	total, wanted := 0, 0
	for _, r := range reports {
		total, wanted = total+r.Identical, wanted+baseline[r.Name]
	}
	if total < wanted*99/100 {
		t.Errorf("%d outputs are identical in all, %d were", total, wanted)
	}
	for _, r := range reports {
		if want := baseline[r.Name]; r.Identical < want-slack {
			t.Errorf("%s: %d outputs are identical, %d were", r.Name, r.Identical, want)
			for _, o := range r.Outcomes {
				if !o.Identical && o.Skipped == "" {
					t.Log(o.Diff())
				}
			}
		}
	}
}

// Every line of the list of differences names a command that exists and says why.
func TestDifferencesHaveReasons(t *testing.T) {
	recordings, err := Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, r := range recordings {
		for _, c := range r.Commands {
			exists[r.Name+"/"+c.ID] = true
		}
	}
	for k, why := range ParseKnown(read(t, "differences.txt")) {
		if !exists[k] {
			t.Errorf("%s: there is no such command", k)
		}
		if why == "" {
			t.Errorf("%s has no reason", k)
		}
	}
}

func TestNormalise(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"NAME  AGE\nweb-69c6f74b8b-7xk2p   5m   x\n\ncpu: 500m\n", "NAME  AGE\nweb-HASH-SUFFIX  AGE  x\n\ncpu: 500m"},
		{"uid: 9e00633c-0793-4db4-aae8-087375fd3d2c", "uid: UID"},
		{"  resourceVersion: \"3739\"", "  resourceVersion: \"RV\""},
		{"pod/nginx   10.244.5.2", "pod/nginx  IP"},
		{"Warning BackOff 2s (x3 over 9s) kubelet", "Warning BackOff 2s (COUNT) kubelet"},
		{"real\t0m1.0s\nuser\t0m0.1s\nsys\t0m0.0s\n", ""},
		{"default-token nginx-web", "default-token nginx-web"},
		{"HEAD request to http://127.0.0.1:5000/v2/team/web/manifests/v1?ns=a.example.com: 403", "HEAD request to https://a.example.com/v2/team/web/manifests/v1: 403"},
		{"  resources:\n    limits:\n      memory: 9007199254740988Ki\n", "  resources: {}"},
	} {
		if got := Normalise(c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}
