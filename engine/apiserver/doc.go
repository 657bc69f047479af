// Package apiserver is the actor "kube-apiserver": the only component that talks to etcd.
//
// A request goes gate by gate: request, authentication, authorization, decode, mutating
// admission, schema validation, validating admission, persist, answer; there is one file
// a gate (gate_*.go). Each gate is an event of its own at its own virtual time and says in
// a hop how it decided, so a request is state that lies between two gates: it can wait for
// etcd, be snapshotted, or meet a fault on its way. Reads stop after authorization.
//
// Kinds are rows of one registry (package resources) over the strategies of
// k8s.io/kubernetes/pkg/registry, which prepare, validate and canonicalise objects exactly
// as the real server does; defaulting and conversion are those of its scheme. Ours are the
// chain, the clock, names and uids, deletion, watches and the allocation of Service
// addresses.
//
// A write that a component sends as a typed object is never encoded: the object is copied
// once, at the decode gate, and is immutable from the commit on. The gates of background
// requests (leases, events, heartbeats) run in one turn.
//
// Left out: API priority and fairness, audit logs, aggregation, encryption at rest,
// managedFields and server-side apply (answered with 415), periodic bookmarks (only the one
// that ends a streaming list is sent), streaming connects (a log or a command's output
// comes as a whole), counting an eviction down in its disruption budget.
package apiserver
