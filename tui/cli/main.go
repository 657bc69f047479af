package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"podwalk/engine/kubectl"
)

// grace is how long the program may take to put the terminal right after a signal.
const grace = 500 * time.Millisecond

// Main is podwalk as a process. An interrupt, a termination or a terminal that hangs up
// ends it at once, whatever it is doing, and leaves nothing behind.
func Main() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup stays in force
			signal.Notify(asked, s)
		}
	}
	done := make(chan int, 1)
	go func() { done <- Run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case code := <-done:
		return code
	case s := <-asked:
		cancel()
		select {
		case <-done:
		case <-time.After(grace):
		}
		kubectl.CloseAll()
		code := 1
		if n, ok := s.(syscall.Signal); ok {
			code = 128 + int(n) // as a shell tells it
		}
		return code
	}
}
