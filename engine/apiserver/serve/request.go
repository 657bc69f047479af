package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
	"podwalk/engine/stage"
)

// bodyMax is the real server's limit of a request body.
const bodyMax = 3 << 20

// connects are the subresources behind which the kubelet answers, not etcd.
var connects = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true, "log": true}

// parse turns an HTTP request into the request that goes through the API server's gates.
func (h *Handler) parse(r *http.Request) (wire.Request, error) {
	req := wire.Request{
		Client: h.Client, UserAgent: r.UserAgent(), Credential: h.credential(r), Path: r.URL.RequestURI(),
	}
	if req.Client == "" {
		req.Client = stage.Kubectl
	}
	req.Verb = verbOf(r.Method)
	query := r.URL.Query()
	if !h.target(&req, r.URL.Path) {
		return req, nil
	}
	refine(&req, r.Method, query)
	if err := h.options(&req, query); err != nil {
		return req, err
	}
	return req, h.body(&req, r)
}

// verbOf is the verb of a path that is no resource: the method.
func verbOf(method string) wire.Verb { return wire.Verb(strings.ToLower(method)) }

// target reads resource, namespace, name and subresource from the path. It reports false
// for a path that names no resource. Upstream: endpoints/request.RequestInfoFactory.
func (h *Handler) target(req *wire.Request, path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv.Version = parts[1]
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv.Group, gv.Version = parts[1], parts[2]
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		req.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	req.Resource = gv.WithResource(parts[0])
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Subresource = parts[2]
	}
	return true
}

// refine finds the verb of a request for a resource.
func refine(req *wire.Request, method string, query url.Values) {
	switch method {
	case http.MethodGet, http.MethodHead:
		req.Verb = wire.Get
		if req.Name == "" {
			req.Verb = wire.List
			if truthy(query.Get("watch")) {
				req.Verb = wire.Watch
			}
		}
	case http.MethodPost:
		req.Verb = wire.Create
	case http.MethodPut:
		req.Verb = wire.Update
	case http.MethodPatch:
		req.Verb = wire.Patch
	case http.MethodDelete:
		req.Verb = wire.Delete
		if req.Name == "" {
			req.Verb = wire.DeleteCollection
		}
	}
	if connects[req.Subresource] {
		req.Verb = wire.Connect
	}
}

func truthy(s string) bool { return s != "" && s != "0" && !strings.EqualFold(s, "false") }

func (h *Handler) options(req *wire.Request, q url.Values) error {
	o := &req.Options
	o.FieldManager, o.FieldValidation = q.Get("fieldManager"), q.Get("fieldValidation")
	o.DryRun = q.Get("dryRun") == metav1.DryRunAll
	o.LabelSelector, o.FieldSelector = q.Get("labelSelector"), q.Get("fieldSelector")
	o.ResourceVersion, o.RVMatch = q.Get("resourceVersion"), q.Get("resourceVersionMatch")
	o.Continue = q.Get("continue")
	o.SendInitial, o.Bookmarks = truthy(q.Get("sendInitialEvents")), truthy(q.Get("allowWatchBookmarks"))
	if s := q.Get("limit"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.NewBadRequest(err.Error())
		}
		o.Limit = n
	}
	if s := q.Get("timeoutSeconds"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.NewBadRequest(err.Error())
		}
		o.Timeout = time.Duration(n) * time.Second
	}
	if req.Verb == wire.Connect {
		o.Params = map[string]string{}
		for k, v := range q {
			o.Params[k] = strings.Join(v, "\x00") // a command's words
		}
	}
	return nil
}

func (h *Handler) body(req *wire.Request, r *http.Request) error {
	if r.Body == nil || req.Verb == wire.Connect {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyMax+1))
	if err != nil {
		return errors.NewBadRequest(err.Error())
	}
	if len(body) > bodyMax {
		return errors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", bodyMax))
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch req.Verb {
	case wire.Delete, wire.DeleteCollection:
		return h.deleteOptions(req, media, body)
	case wire.Patch:
		req.PatchType = types.PatchType(media)
	case wire.Create, wire.Update:
		if body, media, err = toJSON(body, media); err != nil {
			return err
		}
	default:
		return nil
	}
	req.Body, req.MediaType = body, media
	if kind, ok := kube.ByResource(req.Resource); ok && req.PatchType != types.JSONPatchType {
		req.Body = h.shift().Inbound(body, kind.New())
	}
	return nil
}

func (h *Handler) deleteOptions(req *wire.Request, media string, body []byte) error {
	o := &metav1.DeleteOptions{}
	if len(bytes.TrimSpace(body)) > 0 {
		body, _, err := toJSON(body, media)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, o); err != nil {
			return errors.NewBadRequest(err.Error())
		}
	}
	q := url.Values{}
	if u, err := url.ParseRequestURI(req.Path); err == nil {
		q = u.Query()
	}
	if s := q.Get("gracePeriodSeconds"); s != "" && o.GracePeriodSeconds == nil {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.NewBadRequest(err.Error())
		}
		o.GracePeriodSeconds = &n
	}
	if s := q.Get("propagationPolicy"); s != "" && o.PropagationPolicy == nil {
		p := metav1.DeletionPropagation(s)
		o.PropagationPolicy = &p
	}
	if len(o.DryRun) > 0 {
		req.Options.DryRun = true
	}
	req.Options.Delete = o
	return nil
}

// toJSON brings protobuf and YAML bodies into the form that the decode gate shows:
// kubectl's typed clients send protobuf, and JSON says the same for a learner to read.
func toJSON(body []byte, media string) ([]byte, string, error) {
	switch media {
	case runtime.ContentTypeProtobuf:
		obj, gvk, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, nil)
		if err != nil {
			return nil, "", errors.NewBadRequest(err.Error())
		}
		obj.GetObjectKind().SetGroupVersionKind(*gvk)
		out, err := json.Marshal(obj)
		return out, runtime.ContentTypeJSON, err
	case runtime.ContentTypeYAML:
		out, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, "", errors.NewBadRequest(err.Error())
		}
		return out, runtime.ContentTypeJSON, nil
	}
	return body, media, nil
}

// credential collects what the client proves itself with. Judging it is the business of
// the authentication gate.
func (h *Handler) credential(r *http.Request) wire.Credential {
	var c wire.Credential
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		leaf := r.TLS.PeerCertificates[0]
		c.CommonName, c.Orgs = leaf.Subject.CommonName, leaf.Subject.Organization
		c.NotAfter = h.shift().In(leaf.NotAfter)
		if h.Verify != nil {
			if err := h.Verify(leaf); err != nil {
				c.BadCert = err.Error()
			}
		}
	}
	if kind, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(kind, "bearer") {
		c.Token = strings.TrimSpace(token)
	}
	c.AsUser = r.Header.Get("Impersonate-User")
	c.AsGroups = r.Header.Values("Impersonate-Group")
	return c
}
