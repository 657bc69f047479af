// Package kubelet is the node agent: it watches the Pods that are bound to its node,
// admits them, mounts their volumes, drives the container runtime until what runs is
// what the Pods ask for, probes the containers, and reports: the Pods' status, the
// node's status, and a Lease that says that it is alive.
//
// Each node's kubelet is one actor, "kubelet/NODE". A Pod has a worker, as upstream; a
// worker does one pass at a time (sync, then terminating, then terminated), and a pass
// is a list of operations, each of which asks somebody (the API server, containerd, the
// network) and goes on with the answer. Everything that a worker knows is plain data.
// Between two passes of one Pod the kubelet waits for the next relist of the PLEG (one a
// second), which is what gives restarts and deletions their rhythm.
//
// Modelled: registration, heartbeat and conditions of the node; admission (resources,
// node affinity, ports, NoExecute taints); volumes of the types emptyDir, configMap,
// secret, projected, downwardAPI, hostPath, CSI and PVC; environment; image policies and
// back-off with serialised pulls; init containers, sidecars, hooks, restart policies and
// CrashLoopBackOff; probes; graceful termination; static Pods with their mirrors;
// activeDeadlineSeconds; logs and exec. A node that is played by kwok is a mode of its own.
//
// Left out: the GET of a Pod before each patch of its status; eviction and disk pressure;
// garbage collection of images; ephemeral containers; resizing in place;
// terminationMessagePolicy FallbackToLogsOnError; following a log; content of mounted
// ConfigMaps that changes under a running container; cgroups (a status shows the
// resources that were asked for).
package kubelet
