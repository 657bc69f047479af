// Package network is the cluster's wires: who listens where, who reaches whom, and what
// a caller sees when nobody answers. Probes, webhooks, image pulls, exec, logs and curl
// all go through it. Upstream: the kernel's sockets and the fabric between hosts.
//
// Left out: bandwidth, congestion, packets as such; a call is one question and one answer.
package network

import (
	"time"

	"podwalk/engine/kernel"
)

// Protocol of a call.
type Protocol string

// The protocols.
const (
	TCP   Protocol = "tcp" // connect only
	HTTP  Protocol = "http"
	HTTPS Protocol = "https"
	GRPC  Protocol = "grpc"
)

// Call is one question to an address.
type Call struct {
	Tag      any    // comes back in the Result: plain data
	From     string // IP of the caller
	To       string // "10.244.1.7:80"
	Protocol Protocol
	Method   string
	Path     string // with query
	Host     string // header
	Headers  map[string]string
	Body     []byte
	Timeout  time.Duration // the caller gives up after this; 0 means 30 s
}

// Result is the answer, delivered to the calling actor as its next event.
type Result struct {
	Tag  any
	Call Call
	// Err is what Go's net package would say, without the URL:
	// "dial tcp 10.244.1.93:8080: connect: connection refused",
	// "context deadline exceeded". Empty when an answer came.
	Err  string
	Code int // HTTP status code
	Body []byte
}

// Self is the network's own actor: those who listen send their Answers to it.
const Self kernel.ActorID = "network"

// Request is a call as it reaches the actor that listens on its address. The actor ends
// it with an Answer of the same ID.
type Request struct {
	ID   uint64
	Call Call
}

// Answer ends a Request: Code and Body, or an Err as the caller's side shall see it.
type Answer struct {
	ID   uint64
	Err  string
	Code int
	Body []byte
}
