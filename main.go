// podwalk teaches the life of a Kubernetes Pod in a terminal.
package main

func main() {}
