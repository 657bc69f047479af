package apiserver

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"podwalk/engine/trace"
)

// The authentication gate: who is it? The client learns no more than "Unauthorized"; the
// hop says why.
func (s *Server) authenticate(f *flight) error {
	u, failure := s.cfg.Authenticator.Authenticate(f.Req.Credential, s, s.k.Now().Wall())
	if u == nil {
		err := apierrors.NewUnauthorized("Unauthorized")
		s.hop(f, trace.Hop{Verb: method(&f.Req), Outcome: trace.Denied, Reason: string(err.ErrStatus.Reason), Message: failure})
		a := answerTo(&f.Req)
		a.Status, a.Code = statusOf(err), int(err.ErrStatus.Code)
		s.finish(f, a)
		return errDone
	}
	f.User = plainUser(u)
	s.hop(f, trace.Hop{Verb: method(&f.Req), Message: f.User.Name})
	return nil
}

func plainUser(u user.Info) *user.DefaultInfo {
	if d, ok := u.(*user.DefaultInfo); ok {
		return d
	}
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
}
