// podwalk teaches the life of a Kubernetes Pod in a terminal.
package main

import (
	"context"
	"os"
	"os/signal"

	"podwalk/engine/kubectl"
	"podwalk/tui/cli"
)

func main() {
	kubectl.ChildMain() // does not return in a process that is kubectl
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(cli.Run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
