package plugins

import (
	"strings"

	"podwalk/engine/scheduler/framework"
)

// ImageLocality prefers nodes that have the Pod's images already; big ones count more,
// and one that only few nodes have counts less, so that not everything goes there.
type ImageLocality struct{}

const (
	mb                    int64 = 1024 * 1024
	minThreshold                = 23 * mb
	maxContainerThreshold       = 1000 * mb
)

// Name implements Plugin.
func (ImageLocality) Name() string { return "ImageLocality" }

// PreScore implements PreScorePlugin: it spells the image names out once.
func (p ImageLocality) PreScore(state *framework.CycleState, pod *framework.PodInfo, _ []*framework.NodeInfo) *framework.Status {
	var names []string
	for i := range pod.Pod.Spec.InitContainers {
		names = append(names, normalizedImageName(pod.Pod.Spec.InitContainers[i].Image))
	}
	for i := range pod.Pod.Spec.Containers {
		names = append(names, normalizedImageName(pod.Pod.Spec.Containers[i].Image))
	}
	for i := range pod.Pod.Spec.Volumes {
		if im := pod.Pod.Spec.Volumes[i].Image; im != nil {
			names = append(names, normalizedImageName(im.Reference))
		}
	}
	state.Write(p.Name(), names)
	return nil
}

// Score implements ScorePlugin.
func (p ImageLocality) Score(state *framework.CycleState, _ *framework.PodInfo, node *framework.NodeInfo) (int64, *framework.Status) {
	names, _ := state.Read(p.Name()).([]string)
	var sum int64
	if len(node.Images) > 0 {
		all := state.Snapshot.Nodes.Len()
		for _, n := range names {
			if size, ok := node.Images[n]; ok {
				spread := float64(state.Snapshot.ImageNodes[n]) / float64(all)
				sum += int64(float64(size) * spread)
			}
		}
	}
	top := maxContainerThreshold * int64(len(names))
	sum = min(max(sum, minThreshold), top)
	return framework.MaxNodeScore * (sum - minThreshold) / (top - minThreshold), nil
}

// normalizedImageName adds the tag latest where there is none.
func normalizedImageName(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		name += ":latest"
	}
	return name
}
