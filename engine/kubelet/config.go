package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Config is one node and how fast it works.
type Config struct {
	Node        string
	IP          string // "172.30.0.11"
	Labels      map[string]string
	Taints      []corev1.Taint
	PodCIDR     string
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList
	StaticPods  []*corev1.Pod // the files of /etc/kubernetes/manifests
	Kwok        bool          // the node is played by kwok: its Pods turn Running at once
	ClusterDNS  string

	CSIDrivers []string // registered with the kubelet

	LeasePeriod    time.Duration // of the Lease, and of looking at the node's own state
	ReportPeriod   time.Duration // of the node's status where nothing changed
	RuntimeTimeout time.Duration // without an answer from the runtime it counts as down
	RelistPeriod   time.Duration // of the PLEG
	Resync         time.Duration // of a Pod that is as it should be
	BackOff        time.Duration // after a pass with an error
	NetworkBackOff time.Duration // after a pass that waits for the network plugin
	BackOffJitter  float64
	CrashInitial   time.Duration
	CrashMax       time.Duration
	PullInitial    time.Duration
	PullMax        time.Duration
	PullQPS        int           // pulls a second, on average
	PullBurst      int           // and at once
	VolumeDelay    time.Duration // until the volume manager has seen a new Pod
	VolumePoll     time.Duration // of a pass that waits for volumes
	VolumeTimeout  time.Duration
	SyncDelay      time.Duration // from seeing a Pod to its first pass
}

// DefaultConfig returns a node of the size of the recordings' and upstream's periods.
func DefaultConfig() Config {
	size := func(ephemeral string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
			corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse(ephemeral),
			"hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
		}
	}
	return Config{
		Capacity: size("103880640Ki"), Allocatable: size("95491281146"), ClusterDNS: "10.96.0.10",
		LeasePeriod: 10 * time.Second, ReportPeriod: 5 * time.Minute, RuntimeTimeout: 30 * time.Second,
		RelistPeriod: time.Second, Resync: time.Minute, BackOff: 10 * time.Second, NetworkBackOff: time.Second, BackOffJitter: 0.5,
		CrashInitial: 10 * time.Second, CrashMax: 300 * time.Second,
		PullInitial: 10 * time.Second, PullMax: 300 * time.Second, PullQPS: 5, PullBurst: 10,
		VolumeDelay: 150 * time.Millisecond, VolumePoll: 300 * time.Millisecond, VolumeTimeout: 2*time.Minute + 3*time.Second,
		SyncDelay: 5 * time.Millisecond,
	}
}
