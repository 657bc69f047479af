package kubelet

import (
	"podwalk/engine/cri"
	"podwalk/engine/kernel"
)

// serving is a caller of the kubelet's server that waits for the runtime.
type serving struct{ What string }

func (kl *Kubelet) serve(ev kernel.Event)                      {}
func (kl *Kubelet) servedByRuntime(seq uint64, r cri.Response) {}
