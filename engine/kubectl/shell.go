package kubectl

import (
	"context"

	"podwalk/engine/apiserver/serve"
)

// Over opens a session on a run in which waiting clients make time pass.
func Over(run serve.Run, cfg Config) (*Session, error) {
	return Open(serve.NewShared(run, serve.Automatic), cfg)
}

// Kubectl runs one command line and returns what it printed and its exit code. It fits
// engine.Shell.
func (s *Session) Kubectl(line string) (stdout, stderr string, code int) {
	r := s.Run(context.Background(), line, nil)
	return r.Stdout, r.Stderr, r.Exit
}
