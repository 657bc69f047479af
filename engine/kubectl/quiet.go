package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// How long children get to react to an event before virtual time goes on: until all their
// threads sleep (where the system tells, under /proc), or else a fixed time.
const (
	quietStep  = 3 * time.Millisecond
	quietMax   = 3 * time.Second
	quietBlind = 60 * time.Millisecond
)

// alive notes a child; gone forgets it.
func (s *Session) alive(pid int) (gone func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids[pid] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pids, pid)
	}
}

// quiet waits until every child has nothing left to do but wait. A busy machine makes it
// wait longer; that is the point: what a child does must not depend on the machine.
func (s *Session) quiet(ctx context.Context) {
	calm := 0
	for waited := time.Duration(0); waited < quietMax && calm < 3; waited += quietStep {
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietStep):
		}
		s.mu.Lock()
		asleep := true
		for pid := range s.pids {
			sleeps, known := sleeping(pid)
			if !known {
				asleep = asleep && waited >= quietBlind
				continue
			}
			asleep = asleep && sleeps
		}
		s.mu.Unlock()
		if asleep {
			calm++
		} else {
			calm = 0
		}
	}
}

// sleeping reports whether all threads of a process wait for something.
func sleeping(pid int) (yes, known bool) {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		return false, false
	}
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the name, which is in parentheses and may contain any.
		if i := bytes.LastIndexByte(b, ')'); i < 0 || i+2 >= len(b) || b[i+2] != 'S' && b[i+2] != 'Z' {
			return false, true
		}
	}
	return true, true
}
