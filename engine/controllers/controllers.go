// Package controllers is kube-controller-manager: loops that each watch some kinds,
// compare what is wanted with what is there, and send the requests that bring the two
// closer. One file a controller; the registry below is the list of them.
//
// Upstream runs every controller as goroutines over shared informers and a work queue.
// Here every controller is an actor "controller/NAME" with a client (and so an identity
// and RBAC rights) of its own, caches, client-go's work queue in virtual time and an
// event recorder. Syncs are level-triggered and read like upstream's (see run). A key is
// not synced again before the caches show what its last sync wrote, which is what
// upstream's expectations and consistency stores are for.
//
// Left out: leader election, client-side rate limits, and the controllers that are not
// in the registry.
package controllers

import (
	"time"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
	"podwalk/engine/fault"
	"podwalk/engine/kernel"
	"podwalk/engine/trace"
)

// Config are the controller manager's settings; the defaults are Kubernetes' own.
type Config struct {
	Notice time.Duration // from a key's turn in the queue to its sync

	NodeMonitorPeriod      time.Duration // --node-monitor-period
	NodeMonitorGracePeriod time.Duration // --node-monitor-grace-period
	NodeStartupGracePeriod time.Duration // --node-startup-grace-period
	NodeEvictionRate       float64       // --node-eviction-rate, nodes a second in a healthy zone
	SecondaryEvictionRate  float64       // --secondary-node-eviction-rate
	UnhealthyZoneThreshold float64       // --unhealthy-zone-threshold
	LargeClusterSize       int           // --large-cluster-size-threshold
	PodGCPeriod            time.Duration // how often the pod garbage collector looks around
	TerminatedPodThreshold int           // --terminated-pod-gc-threshold
	QuotaSyncPeriod        time.Duration // --resource-quota-sync-period
	CABundle               string        // the ca.crt of kube-root-ca.crt
}

// DefaultConfig returns kube-controller-manager's defaults.
func DefaultConfig() Config {
	return Config{
		Notice:                 time.Millisecond,
		NodeMonitorPeriod:      5 * time.Second,
		NodeMonitorGracePeriod: 50 * time.Second,
		NodeStartupGracePeriod: time.Minute,
		NodeEvictionRate:       0.1,
		SecondaryEvictionRate:  0.01,
		UnhealthyZoneThreshold: 0.55,
		LargeClusterSize:       50,
		PodGCPeriod:            20 * time.Second,
		TerminatedPodThreshold: 12500,
		QuotaSyncPeriod:        5 * time.Minute,
		CABundle:               "-----BEGIN CERTIFICATE-----\npodwalk\n-----END CERTIFICATE-----\n",
	}
}

// entry is one controller of the manager.
type entry struct {
	name    string // of the actor: "controller/" + name
	account string // the service account in kube-system
	source  string // the component that its events name
	build   func(*actor) logic
}

// registry lists the controllers.
var registry = []entry{
	{"deployment", "deployment-controller", "deployment-controller", newDeployments},
	{"replicaset", "replicaset-controller", "replicaset-controller", newReplicaSets},
	{"endpointslice", "endpointslice-controller", "endpoint-slice-controller", newEndpointSlices},
	{"endpoint", "endpoint-controller", "endpoint-controller", newEndpoints},
	{"daemonset", "daemon-set-controller", "daemonset-controller", newDaemonSets},
	{"statefulset", "statefulset-controller", "statefulset-controller", newStatefulSets},
	{"disruption", "disruption-controller", "controllermanager", newDisruption},
	{"clusterrole-aggregation", "clusterrole-aggregation-controller", "clusterrole-aggregation-controller", newAggregation},
	{"serviceaccount", "service-account-controller", "service-account-controller", newServiceAccounts},
	{"root-ca-publisher", "root-ca-cert-publisher", "root-ca-cert-publisher", newRootCAPublisher},
	{"namespace", "namespace-controller", "namespace-controller", newNamespaces},
	{"node-lifecycle", "node-controller", "node-controller", newNodeLifecycle},
	{"taint-eviction", "node-controller", "taint-eviction-controller", newTaintEviction},
	{"garbage-collector", "generic-garbage-collector", "garbage-collector-controller", newGarbage},
	{"resourcequota", "resourcequota-controller", "resourcequota-controller", newQuotas},
	{"pod-garbage-collector", "pod-garbage-collector", "pod-garbage-collector", newPodGC},
}

// Manager is the set of all controllers.
type Manager struct{ actors []*actor }

// NewClient makes the client of an actor that speaks as a user.
type NewClient func(self kernel.ActorID, user string) *client.Client

// Identified returns the usual NewClient: the controller manager speaks to the API server
// of this run, with a name and the groups of a service account in kube-system.
func Identified(k *kernel.Kernel) NewClient {
	return func(self kernel.ActorID, user string) *client.Client {
		return client.New(k, self, component, wire.Credential{
			CommonName: user, Orgs: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"},
		}).ReadAs(wire.Credential{CommonName: "system:kube-controller-manager"})
	}
}

// New builds every controller and registers it with the kernel.
func New(k *kernel.Kernel, log *trace.Log, board *fault.Board, newClient NewClient, cfg Config) *Manager {
	m := &Manager{}
	for _, e := range registry {
		a := newActor(k, log, board, newClient, cfg, e)
		k.Register(a.id, a)
		m.actors = append(m.actors, a)
	}
	return m
}

// Start sends every controller its first event.
func (m *Manager) Start() {
	for _, a := range m.actors {
		a.k.Send(a.id, 0, begin{})
	}
}

// Actors returns the ids of all controllers.
func (m *Manager) Actors() []kernel.ActorID {
	ids := make([]kernel.ActorID, 0, len(m.actors))
	for _, a := range m.actors {
		ids = append(ids, a.id)
	}
	return ids
}
