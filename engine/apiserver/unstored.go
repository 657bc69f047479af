package apiserver

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podwalk/engine/apiserver/wire"
)

// unstored are kinds that a real server has and of which there are none here: reading
// them finds nothing, which is not the same as their not existing. kubectl, for one, lists
// CustomResourceDefinitions before it says that a kind is unknown.
var unstored = map[schema.GroupVersionResource]string{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: "CustomResourceDefinition",
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}:             "APIService",
	{Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities"}:            "CSIStorageCapacity",
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses"}:         "VolumeAttributesClass",
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}:                 "ResourceClaim",
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"}:         "ResourceClaimTemplate",
	{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}:                  "DeviceClass",
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}:                 "ResourceSlice",
	{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"}:                 "ServiceCIDR",
	{Group: "networking.k8s.io", Version: "v1", Resource: "ipaddresses"}:                  "IPAddress",
}

// readUnstored answers a read of a kind that is not in the registry.
func (s *Server) readUnstored(f *flight) error {
	r := &f.Req
	kind, ok := unstored[r.Resource]
	switch {
	case !ok || r.Subresource != "":
		return notFoundPath(r)
	case r.Verb == wire.Get:
		return apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	case r.Verb == wire.List:
		list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{}}}
		list.SetGroupVersionKind(r.Resource.GroupVersion().WithKind(kind + "List"))
		list.SetResourceVersion(strconv.FormatInt(s.etcd.Revision(), 10))
		s.object(f, 200, list, s.etcd.Revision())
		return errDone
	}
	return apierrors.NewMethodNotSupported(r.Resource.GroupResource(), string(r.Verb))
}
