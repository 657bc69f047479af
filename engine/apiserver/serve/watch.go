package serve

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/kube"
)

// watch streams the events of a watch until the client hangs up or its time is over.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, req wire.Request) {
	a, stream := h.Backend.Watch(r.Context(), req)
	if a.Err() != nil || stream == nil {
		h.write(w, r, req, a)
		return
	}
	defer stream.Close()
	f := formOf(r)
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	headers := true
	for {
		ev, ok := stream.Next(r.Context())
		if !ok {
			return
		}
		frame, err := h.frame(f, ev, headers)
		if err != nil {
			return
		}
		headers = false
		if _, err := w.Write(append(frame, '\n')); err != nil {
			return
		}
		if rc.Flush() != nil {
			return
		}
	}
}

// frame is one watch event as JSON. In the Table form only the first has the columns.
func (h *Handler) frame(f form, ev wire.WatchEvent, headers bool) ([]byte, error) {
	var obj runtime.Object
	switch {
	case ev.Status != nil:
		s := *ev.Status
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		obj = &s
	case ev.Type == wire.Bookmark:
		obj = h.bookmark(ev)
	default:
		obj = h.shift().Outbound(ev.Object)
	}
	obj, err := f.transform(obj, headers)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return json.Marshal(metav1.WatchEvent{Type: string(ev.Type), Object: runtime.RawExtension{Raw: raw}})
}

func (h *Handler) bookmark(ev wire.WatchEvent) runtime.Object {
	var obj runtime.Object
	if ev.Object != nil {
		obj = ev.Object.DeepCopyObject()
	} else if k, ok := kube.ByResource(ev.Resource); ok {
		obj = k.New()
	} else {
		obj = &metav1.PartialObjectMetadata{}
	}
	m := kube.Meta(obj)
	if m.GetResourceVersion() == "" {
		m.SetResourceVersion(strconv.FormatInt(ev.Revision, 10))
	}
	if ev.Initial {
		ann := map[string]string{}
		for k, v := range m.GetAnnotations() {
			ann[k] = v
		}
		ann[metav1.InitialEventsAnnotationKey] = "true"
		m.SetAnnotations(ann)
	}
	return obj
}

// followStep is how often a followed log is looked at, in virtual time.
const followStep = 200 * time.Millisecond

// follow streams a container's log: what there is, then what is added, until the
// container has ended or the client hangs up.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, req wire.Request) {
	flags := req.Options.Params
	req.Options.Params = map[string]string{}
	for k, v := range flags {
		if k != "follow" {
			req.Options.Params[k] = v
		}
	}
	first := h.do(r.Context(), req)
	if first.Err() != nil || first.Body == nil {
		h.write(w, r, req, first)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	send := func(b []byte) bool {
		_, err := w.Write(b)
		return err == nil && rc.Flush() == nil
	}
	// tailLines, sinceSeconds and the like only choose where to begin: from here on the
	// whole log is compared with what it was.
	whole := req
	whole.Background = true
	whole.Options.Params = map[string]string{}
	for _, k := range []string{"container", "previous", "timestamps"} {
		if v, ok := req.Options.Params[k]; ok {
			whole.Options.Params[k] = v
		}
	}
	seen := len(h.do(r.Context(), whole).Body)
	if !send(first.Body) {
		return
	}
	for running := true; running && r.Context().Err() == nil; {
		h.Backend.Wait(r.Context(), followStep)
		running = h.running(r, req)
		a := h.do(r.Context(), whole)
		if a.Err() != nil {
			return
		}
		if len(a.Body) > seen {
			if !send(a.Body[seen:]) {
				return
			}
			seen = len(a.Body)
		}
	}
}
