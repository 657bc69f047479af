package apiserver

import (
	"time"

	"podwalk/engine/apiserver/admission"
)

// Config is how the server is set up.
type Config struct {
	Authenticator Authenticator
	Authorizer    Authorizer
	Tokens        TokenIssuer
	// The admission plugins in the order in which they run.
	Mutators   []admission.Mutator
	Validators []admission.Validator

	Address        string // host:port that clients dial
	ServiceCIDR    string
	ServiceIP      string // of the Service default/kubernetes
	NodePortFirst  int32
	NodePortLast   int32
	EventTTL       time.Duration // how long Event objects are kept
	ReadTimeout    time.Duration // of a read that etcd does not answer
	WriteTimeout   time.Duration // of a write that etcd does not answer
	PollEtcd       time.Duration // how often a parked read tries again
	MaxUpdateTries int           // of a write without resourceVersion that met another write

	// How long each gate takes, and the way back to the client.
	Request        time.Duration
	Authentication time.Duration
	Authorization  time.Duration
	Decode         time.Duration
	Mutating       time.Duration
	Schema         time.Duration
	Validating     time.Duration
	Persist        time.Duration // until the transaction is with etcd
	Answer         time.Duration // until the client has the answer
	Watch          time.Duration // until a watcher has the event
}

// DefaultConfig has the latencies of a small, idle control plane and no plugins; the
// caller sets Authenticator, Authorizer and plugins.
func DefaultConfig() Config {
	return Config{
		Address: "172.30.0.2:6443", ServiceCIDR: "10.96.0.0/12", ServiceIP: "10.96.0.1",
		NodePortFirst: 30000, NodePortLast: 32767, EventTTL: time.Hour,
		ReadTimeout: 60 * time.Second, WriteTimeout: 34 * time.Second,
		PollEtcd: 500 * time.Millisecond, MaxUpdateTries: 5,
		Request: 40 * time.Microsecond, Authentication: 120 * time.Microsecond, Authorization: 80 * time.Microsecond,
		Decode: 150 * time.Microsecond, Mutating: 300 * time.Microsecond, Schema: 200 * time.Microsecond,
		Validating: 250 * time.Microsecond, Persist: 200 * time.Microsecond,
		Answer: 300 * time.Microsecond, Watch: 500 * time.Microsecond,
	}
}
