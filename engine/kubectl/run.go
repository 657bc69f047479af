package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"podwalk/engine/kernel"
)

var discard = log.New(io.Discard, "", 0)

// outputMax bounds what is kept of a child's output.
const outputMax = 4 << 20

// Result is what a command printed and how it ended.
type Result struct {
	Stdout, Stderr string
	Exit           int
}

// waiter is a child under way.
type waiter struct {
	deadline kernel.Time
	cancel   context.CancelFunc
}

// Run runs a command line, with or without the word kubectl (or k) in front.
func (s *Session) Run(ctx context.Context, line string, stdin []byte) Result {
	s.Remember(strings.TrimSpace(line))
	args, err := Words(line)
	if err != nil {
		return Result{Stderr: "error: " + err.Error() + "\n", Exit: 2}
	}
	return s.RunArgs(ctx, command(args), stdin)
}

// RunArgs runs kubectl with arguments. env overrides the child's environment.
func (s *Session) RunArgs(ctx context.Context, args []string, stdin []byte, env ...string) Result {
	l := parse(args)
	if err := s.unreadable(args); err != nil {
		return Result{Exit: 1, Stderr: "error: " + err.Error() + "\n"}
	}
	if l.verb == "edit" && s.cfg.Editor == "" {
		return Result{Exit: 1, Stderr: "error: kubectl edit needs a terminal of its own. Use kubectl patch, kubectl set image or kubectl scale, " +
			"or: kubectl get TYPE NAME -o yaml, change the text, kubectl apply -f FILE\n"}
	}
	why := l.streams()
	if why == "" {
		why = s.reachesOut(l, args)
	}
	if why != "" {
		return Result{Exit: 1, Stderr: "error: " + why + "\n"}
	}
	patience := s.cfg.Patience
	if l.timeout > 0 {
		patience = l.timeout
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deadline := s.shared.Now().Add(patience)
	forget := s.expect(waiter{deadline, cancel})
	defer forget()
	reached := make(chan bool, 1)
	go func() {
		if s.until(ctx, l, deadline) {
			s.quiet(ctx) // what happened at the very deadline still reaches the child
			reached <- true
			cancel()
		}
	}()
	stop := s.pace(ctx, l)
	r := s.exec(ctx, l.unhurried(args), stdin, env...)
	stop()
	select {
	case <-reached:
		if r.Exit == interrupted {
			return s.expired(l, args, patience, r, env)
		}
	default:
	}
	return r
}

// until blocks until the deadline, and for a command that watches until nothing more
// happens in the cluster. It reports false when ctx ended first.
func (s *Session) until(ctx context.Context, l line, deadline kernel.Time) bool {
	for l.watches && s.shared.Now() < deadline {
		if !s.shared.Until(ctx, min(deadline, s.shared.Now().Add(watchStep))) {
			return false
		}
		if s.shared.Settled() {
			return true
		}
	}
	return s.shared.Until(ctx, deadline)
}

// watchStep is how often it is asked whether a watch may end.
const watchStep = 500 * time.Millisecond

// fileMax bounds the files that a command line names: kubectl reads them whole.
const fileMax = 16 << 20

// unreadable reports a file among the arguments that has no end, or hardly one.
func (s *Session) unreadable(args []string) error {
	for _, a := range args {
		if a == "--" {
			break
		}
		names := strings.Split(a, "=")
		names = append(names, strings.TrimPrefix(a, "-f"))
		for _, name := range names {
			if !filepath.IsAbs(name) {
				name = filepath.Join(s.Dir(), name)
			}
			st, err := os.Stat(name)
			switch {
			case err != nil || name == os.DevNull:
			case st.Mode()&os.ModeDevice != 0:
				return fmt.Errorf("%s is a device, not a file; kubectl would read it without an end", name)
			case st.Mode().IsRegular() && st.Size() > fileMax:
				return fmt.Errorf("%s has %d bytes; the API server takes at most 3 MiB in one request", name, st.Size())
			}
		}
	}
	return nil
}

// interrupted is the exit code of a child that was stopped, as a shell tells it.
const interrupted = 130

// expect keeps automatic time from running beyond what the children wait for.
func (s *Session) expect(w waiter) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	id := s.next
	s.waiting[id] = w
	s.limit()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
		s.limit()
	}
}

func (s *Session) limit() {
	var last kernel.Time
	for _, w := range s.waiting {
		last = max(last, w.deadline)
	}
	s.shared.SetLimit(last)
}

// pace lets virtual time pass like real time for a command that looks again and again
// rather than watch: nobody else would make it pass.
func (s *Session) pace(ctx context.Context, l line) (stop func()) {
	if !l.polls {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(50 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				s.shared.Elapse(50 * time.Millisecond)
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// expired is the end of a command whose virtual deadline came while it was waiting. What
// it would have said is asked of kubectl itself, with a timeout that is already over.
func (s *Session) expired(l line, args []string, after time.Duration, r Result, env []string) Result {
	now := []string{"--timeout=1ns"}
	switch {
	case l.watches:
		what := "nothing more happens"
		if !s.shared.Settled() {
			what = fmt.Sprintf("%s of simulated time are over", after)
		}
		return Result{Stdout: r.Stdout, Stderr: r.Stderr + "(the watch is ended: " + what + ")\n"}
	case l.timeout > 0 && (l.verb == "wait" || l.verb == "rollout"):
		late := s.exec(context.Background(), append(without(args, "--timeout", true), now...), nil, env...)
		return Result{Stdout: r.Stdout, Stderr: r.Stderr + late.Stderr, Exit: late.Exit}
	case l.timeout > 0 && l.verb == "delete":
		wait := append([]string{"wait", "--for=delete"}, without(without(args[l.at+1:], "--timeout", true), "--grace-period", true)...)
		wait = append(slices.Clone(args[:l.at]), wait...)
		late := s.exec(context.Background(), append(wait, now...), nil, env...)
		return Result{Stdout: r.Stdout, Stderr: r.Stderr + late.Stderr, Exit: late.Exit}
	}
	r.Stderr += fmt.Sprintf("kubectl was stopped after %s of simulated time\n", after)
	return r
}

// Command prepares a child for somebody who connects its input and output himself: a
// terminal that is the learner's own.
func (s *Session) Command(ctx context.Context, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, s.cfg.Program)
	c.Args = append([]string{"kubectl"}, args...)
	c.Dir = s.Dir()
	home := filepath.Join(s.dir, "home")
	s.mu.Lock()
	s.next++
	id := s.next
	s.mu.Unlock()
	c.Env = []string{
		childEnv + "=" + strconv.Itoa(id), "HOME=" + home, "KUBECONFIG=" + s.Kubeconfig(),
		"KUBECACHEDIR=" + filepath.Join(s.dir, "cache"), "LANG=C.UTF-8", "GOGC=400", "TZ=UTC",
		"PATH=" + os.Getenv("PATH"), "TERM=" + os.Getenv("TERM"), "TMPDIR=" + s.dir,
	}
	if s.cfg.Editor != "" {
		c.Env = append(c.Env, "KUBE_EDITOR="+s.cfg.Editor)
	}
	// An interrupt, and if that does not help, the end.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) }
	c.WaitDelay = 2 * time.Second
	return c
}

func (s *Session) exec(ctx context.Context, args []string, stdin []byte, env ...string) Result {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return Result{Stderr: "error: interrupted\n", Exit: interrupted}
	}
	c := s.Command(ctx, args)
	c.Env = append(c.Env, env...)
	out, errs := &capped{}, &capped{}
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(stdin), out, errs
	err := c.Start()
	if err == nil {
		gone := s.alive(c.Process.Pid)
		err = c.Wait()
		gone()
	}
	r := Result{Stdout: out.String(), Stderr: errs.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.Exit = interrupted
	case errors.As(err, &exit):
		r.Exit = exit.ExitCode()
	case err != nil:
		r.Stderr += "error: kubectl could not be started: " + err.Error() + "\n"
		r.Exit = 1
	}
	return r
}

// capped keeps the first outputMax bytes.
type capped struct {
	bytes.Buffer
	cut bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := outputMax - c.Len(); len(p) > room {
		if !c.cut {
			c.cut = true
			c.Buffer.Write(p[:max(room, 0)])
			c.Buffer.WriteString("\n[the rest of the output is left out]\n")
		}
		return len(p), nil
	}
	return c.Buffer.Write(p)
}

// line is what the session has to know of a command line.
type line struct {
	verb    string
	at      int           // index of the verb
	timeout time.Duration // how long the command waits at most; 0: it does not say
	polls   bool
	watches bool // it goes on until somebody interrupts it
}

// valued are kubectl's global flags that take their value as the next word.
var valued = map[string]bool{
	"-n": true, "--namespace": true, "--context": true, "--cluster": true, "--user": true, "--kubeconfig": true,
	"-s": true, "--server": true, "--token": true, "--as": true, "--as-group": true, "--as-uid": true,
	"--request-timeout": true, "--cache-dir": true, "--certificate-authority": true, "--client-certificate": true,
	"--client-key": true, "-v": true, "--v": true, "--tls-server-name": true,
}

func parse(args []string) line {
	l := line{at: -1}
	for i := 0; i < len(args) && l.at < 0; i++ {
		switch {
		case valued[args[i]]:
			i++
		case !strings.HasPrefix(args[i], "-"):
			l.verb, l.at = args[i], i
		}
	}
	if l.at < 0 {
		return l
	}
	rest := args[l.at+1:]
	switch l.verb {
	case "get", "events", "logs", "log":
		l.watches = watches(l.verb, rest)
		return l
	case "wait":
		l.timeout = 30 * time.Second
		l.polls = slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "--for=create") || strings.EqualFold(a, "create") })
	case "drain":
		l.polls = true
		return l // its timeout runs on the wall clock, as does everything else of it
	case "run":
		l.polls = slices.ContainsFunc(rest, func(a string) bool { return a == "--rm" || a == "-it" || a == "-i" || a == "--attach" })
		return l
	case "rollout", "delete":
	default:
		return l
	}
	if v, ok := flag(rest, "--timeout"); ok {
		if d, err := time.ParseDuration(v); err == nil {
			l.timeout = max(d, 0)
		} else if n, err := strconv.Atoi(v); err == nil {
			l.timeout = time.Duration(max(n, 0)) * time.Second
		}
	}
	return l
}

// watches reports whether a command that looks goes on looking: -w, and -f of logs.
func watches(verb string, args []string) bool {
	short, long := "w", []string{"--watch", "--watch-only"}
	if strings.HasPrefix(verb, "log") {
		short, long = "f", []string{"--follow"}
	}
	for i, a := range args {
		if i > 0 && (args[i-1] == "-n" || args[i-1] == "-o" || args[i-1] == "-l") {
			continue // a value
		}
		name, value, _ := strings.Cut(a, "=")
		switch {
		case a == "--":
			return false
		case slices.Contains(long, name):
			return value != "false"
		case len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, short) && strings.Trim(a[1:], "ARp"+short) == "":
			return true
		}
	}
	return false
}

// unhurried takes the timeout off the child's wall clock: the session keeps it in virtual
// time. A wait of zero is a question and no wait, and stays.
func (l line) unhurried(args []string) []string {
	if l.timeout <= 0 || l.verb != "wait" && l.verb != "rollout" && l.verb != "delete" {
		return args
	}
	out := without(args, "--timeout", true)
	i := len(out)
	if j := slices.Index(out, "--"); j >= 0 {
		i = j
	}
	return slices.Insert(out, i, "--timeout=1h")
}

func flag(args []string, name string) (string, bool) {
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v, true
		}
		if a == name && i+1 < len(args) {
			return args[i+1], true
		}
	}
	return "", false
}

// without drops a flag that takes a value.
func without(args []string, name string, takesValue bool) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(out, args[i:]...)
		case strings.HasPrefix(args[i], name+"="):
		case args[i] == name:
			if takesValue {
				i++
			}
		default:
			out = append(out, args[i])
		}
	}
	return out
}
