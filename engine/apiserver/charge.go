package apiserver

import (
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/etcd"
	"podwalk/engine/kube"
)

// Quotas are charged before the object is written, each by a write of its own that only
// succeeds if nobody else has charged it meanwhile; so two Pods in flight at the same time
// cannot both take the last place. What was charged for a write that fails afterwards is
// given back by the quota controller's recount, as upstream.

var errQuotaBusy = errors.New("the quota changed at every try")

// charge returns the next quota's write.
func (s *Server) charge(f *flight) (key string, value runtime.Object, expect int64) {
	quota := f.Charges[f.Charged]
	row, _ := resources.Get(kube.ResourceQuotas)
	m := kube.Meta(quota)
	expect, _ = strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	return row.KeyOf(quota), quota, expect
}

// charged goes on with the next quota or with the object itself; a quota that has changed
// meanwhile is asked again.
func (s *Server) charged(f *flight, res etcd.Result) {
	switch {
	case res.OK:
		f.Charged++
		s.again(f, gatePersist)
	case s.k.Now().Sub(f.Since) < s.cfg.WriteTimeout:
		f.Charges, f.Charged = nil, 0
		s.again(f, gateValidating)
	default:
		s.refuse(f, apierrors.NewInternalError(errQuotaBusy))
	}
}
