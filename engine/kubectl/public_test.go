package kubectl_test

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"podwalk/engine/apiserver/serve/servetest"
	"podwalk/engine/kernel"
	"podwalk/engine/kubectl"
)

// safe is a run that a test may look into while it is used.
type safe struct {
	sync.Mutex
	*servetest.Run
}

func (s *safe) now() kernel.Time { s.Lock(); defer s.Unlock(); return s.At }

func (s *safe) Advance(d time.Duration) { s.Lock(); defer s.Unlock(); s.Run.Advance(d) }
func (s *safe) Now() kernel.Time        { return s.now() }

// TestPublicTimeIsReal: a client in another terminal that watches makes time go on like
// real time, and when it is killed time stands still.
func TestPublicTimeIsReal(t *testing.T) {
	run := &safe{Run: servetest.New(pod("web", true, 0))}
	s, err := kubectl.Public(run, kubectl.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := s.Command(ctx, []string{"get", "pods", "-w"})
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it has begun to print
		t.Fatal(err)
	}
	before, began := run.now(), time.Now()
	time.Sleep(500 * time.Millisecond)
	passed, real := run.now().Sub(before), time.Since(began)
	if passed == 0 || passed > real+200*time.Millisecond {
		t.Errorf("in %s of real time the cluster went on by %s", real, passed)
	}
	if err := c.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	still := time.Duration(-1)
	for last, until := run.now(), time.Now().Add(5*time.Second); time.Now().Before(until); {
		time.Sleep(200 * time.Millisecond)
		now := run.now()
		if still = now.Sub(last); still == 0 {
			break
		}
		last = now
	}
	if still != 0 {
		t.Error("after its client was killed time still goes on")
	}
}

// TestUnservedStreams: what this API server has no stream for is refused at once in other
// terminals too.
func TestUnservedStreams(t *testing.T) {
	var errs strings.Builder
	code, err := kubectl.Exec(context.Background(), "none", []string{"port-forward", "web", "8080:80"}, strings.NewReader(""), io.Discard, &errs)
	if err != nil || code != 1 || !strings.Contains(errs.String(), "no kubectl port-forward") {
		t.Errorf("exit %d, %v: %s", code, err, errs.String())
	}
}
