package apiserver

import (
	"fmt"
	"net/http"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// finish answers a flight and forgets it.
func (s *Server) finish(f *flight, a wire.Answer) {
	delete(s.flights, f.ID)
	if f.Parent != 0 {
		s.childDone(f)
		return
	}
	if f.Level == full && f.Req.Client == stage.Kubectl {
		h := trace.Hop{
			Stage: gateStage[f.Gate], From: stage.APIServer, To: f.Req.Client, Object: f.ref(), Revision: a.Revision,
			Verb:   fmt.Sprintf("%d %s", a.Code, http.StatusText(a.Code)),
			Detail: trace.HTTP{Method: method(&f.Req), Path: path(&f.Req), User: userName(f), Code: a.Code},
		}
		if a.Status != nil {
			h.Outcome, h.Reason, h.Message = trace.Denied, string(a.Status.Reason), a.Status.Message
			switch {
			case f.read() && a.Code == http.StatusNotFound:
				h.Outcome = trace.OK // asking is no fault
			case a.Code == http.StatusConflict:
				h.Outcome = trace.Retry
			case a.Code >= 500:
				h.Outcome = trace.Failed
			}
		}
		s.log.Record(h)
	}
	if f.Req.ReplyTo == "" {
		return
	}
	a.Hop = s.k.Cause()
	s.k.Send(f.Req.ReplyTo, f.Ahead+s.cfg.Answer, a)
}

func userName(f *flight) string {
	if f.User == nil {
		return ""
	}
	return f.User.Name
}
