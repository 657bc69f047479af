package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/etcd"
)

// serveRead answers get, list and watch. Reads never pass admission.
func (s *Server) serveRead(f *flight) error {
	r := &f.Req
	if r.Resource.Resource == "" {
		return s.servePath(f)
	}
	row, ok := resources.Get(r.Resource)
	if !ok {
		return s.readUnstored(f)
	}
	// A read at version 0 may come from the server's own cache; any other asks etcd.
	if s.etcd.Stopped() && r.Options.ResourceVersion != "0" {
		return s.park(f, s.cfg.ReadTimeout)
	}
	switch r.Verb {
	case wire.Get:
		return s.get(f, row)
	case wire.List:
		return s.list(f, row)
	}
	return s.watch(f, row)
}

// servePath answers for what is no resource. The documents (discovery, OpenAPI, version)
// lie at the HTTP edge; how the server is doing, only the server knows.
func (s *Server) servePath(f *flight) error {
	path, _, _ := strings.Cut(f.Req.Path, "?")
	switch path {
	case "/healthz", "/livez", "/readyz":
		if s.etcd.Stopped() && path != "/livez" {
			s.text(f, 500, []byte("[-]etcd failed: reason withheld\n"+strings.TrimPrefix(path, "/")+" check failed\n"))
			return errDone
		}
		s.text(f, 200, []byte("ok"))
		return errDone
	}
	s.object(f, 200, nil, s.etcd.Revision())
	return errDone
}

func (s *Server) get(f *flight, row *resources.Resource) error {
	kv, ok := s.etcd.Get(row.Key(f.Req.Namespace, f.Req.Name))
	if !ok {
		return apierrors.NewNotFound(f.Req.Resource.GroupResource(), f.Req.Name)
	}
	obj := row.Served(kv.Value)
	switch sub := f.Req.Subresource; {
	case sub == "scale":
		scale, ok := resources.ScaleOf(kv.Value)
		if !ok {
			return notFoundPath(&f.Req)
		}
		obj = scale
	case sub != "" && row.Subresources[sub] == nil:
		return notFoundPath(&f.Req)
	}
	s.object(f, 200, obj, kv.ModRev)
	return errDone
}

// selection is which objects of a resource a reader wants.
type selection struct {
	labels labels.Selector
	fields fields.Selector
	row    *resources.Resource
}

func newSelection(o wire.Options, row *resources.Resource) (selection, error) {
	sel := selection{row: row}
	if o.LabelSelector != "" {
		l, err := labels.Parse(o.LabelSelector)
		if err != nil {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
		}
		sel.labels = l
	}
	if o.FieldSelector != "" {
		fs, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			return sel, apierrors.NewBadRequest(err.Error())
		}
		for _, r := range fs.Requirements() {
			if !row.Selectable(r.Field) {
				return sel, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
			}
		}
		sel.fields = fs
	}
	return sel, nil
}

func (s selection) matches(obj runtime.Object) bool {
	if s.labels != nil && !s.labels.Matches(labels.Set(obj.(metav1.Object).GetLabels())) {
		return false
	}
	return s.fields == nil || s.fields.Matches(s.row.Fields(obj))
}

// continueToken is where a list that was cut goes on.
type continueToken struct {
	Version string `json:"v"`
	Rev     int64  `json:"rv"`
	Start   string `json:"start"` // key
}

func (s *Server) list(f *flight, row *resources.Resource) error {
	o := f.Req.Options
	sel, err := newSelection(o, row)
	if err != nil {
		return err
	}
	if f.Req.Name != "" { // a list of one, as a field selector on the name
		sel.fields = fields.OneTermEqualSelector("metadata.name", f.Req.Name)
	}
	var from string
	rev := int64(0)
	if o.Continue != "" {
		t, err := parseContinue(o.Continue)
		if err != nil {
			return apierrors.NewBadRequest("continue key is not valid: " + err.Error())
		}
		from, rev = t.Start, t.Rev
	} else if o.ResourceVersion != "" && o.ResourceVersion != "0" && o.RVMatch == string(metav1.ResourceVersionMatchExact) {
		if rev, err = strconv.ParseInt(o.ResourceVersion, 10, 64); err != nil {
			return apierrors.NewBadRequest("invalid resourceVersion")
		}
	}
	a := answerTo(&f.Req)
	a.Code, a.Revision, a.Warnings = 200, s.etcd.Revision(), f.Warnings
	if rev != 0 {
		a.Revision = rev
	}
	next := ""
	ok := s.etcd.Range(row.KeyPrefix(f.Req.Namespace), from, rev, func(kv *etcd.KV) bool {
		if !sel.matches(kv.Value) {
			return true
		}
		if o.Limit > 0 && int64(len(a.Items)) >= o.Limit {
			if next == "" {
				next = kv.Key
			}
			a.Remain++
			return true
		}
		a.Items = append(a.Items, row.Served(kv.Value))
		return true
	})
	if !ok {
		return expired(rev, s.etcd.Compacted())
	}
	if next != "" {
		t, _ := json.Marshal(continueToken{"meta.k8s.io/v1", a.Revision, next})
		a.Continue = base64.RawURLEncoding.EncodeToString(t)
		if o.LabelSelector != "" || o.FieldSelector != "" {
			a.Remain = 0 // not counted where a selector is in force
		}
	}
	s.finish(f, a)
	return errDone
}

func parseContinue(token string) (t continueToken, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(b, &t)
}

// expired is the answer to a read from before the last compaction.
func expired(rev, oldest int64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", rev, oldest))
}
