// podwalk teaches the life of a Kubernetes Pod in a terminal.
package main

import (
	"os"

	"podwalk/engine/kubectl"
	"podwalk/tui/cli"
)

func main() {
	kubectl.ChildMain() // does not return in a process that is kubectl
	os.Exit(cli.Main())
}
