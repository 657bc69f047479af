package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"podwalk/engine/apiserver/serve"
)

// Over opens a session on a run in which waiting clients make time pass.
func Over(run serve.Run, cfg Config) (*Session, error) {
	return Open(serve.NewShared(run, serve.Automatic), cfg)
}

// Public opens a session for clients in other terminals: time is real while one of them
// is connected.
func Public(run serve.Run, cfg Config) (*Session, error) {
	cfg.RealTime = true
	return Open(serve.NewShared(run, serve.Followed), cfg)
}

// Kubectl runs one command line and returns what it printed and its exit code. It fits
// engine.Shell.
func (s *Session) Kubectl(line string) (stdout, stderr string, code int) {
	r := s.Run(context.Background(), line, nil)
	return r.Stdout, r.Stderr, r.Exit
}

// Exec runs kubectl in the caller's own directory and on his own terminal, with the
// kubeconfig of a session that another process has open. It returns kubectl's exit code.
// Where it can, the process becomes kubectl and does not return: whoever stops it, stops
// kubectl and not its parent.
func Exec(ctx context.Context, kubeconfig string, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if l := parse(args); slices.Contains(unserved, l.verb) && !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		fmt.Fprintln(stderr, "error: "+l.streams())
		return 1, nil
	}
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	c := exec.CommandContext(ctx, program)
	c.Args = append([]string{"kubectl"}, args...)
	c.Env = append(os.Environ(), childEnv+"=0", "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(filepath.Dir(kubeconfig), "cache"))
	if stdin == os.Stdin && stdout == os.Stdout && stderr == os.Stderr {
		_ = syscall.Exec(program, c.Args, c.Env) // it returns only where the system has no such thing
	}
	c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
	err = c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
