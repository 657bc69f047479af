// podwalk teaches the life of a Kubernetes Pod in a terminal.
package main

import "podwalk/engine/kubectl"

func main() {
	kubectl.ChildMain() // does not return in a process that is kubectl
}
