package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/apiserver/resources"
	"podwalk/engine/apiserver/wire"
	"podwalk/engine/etcd"
)

// deleteCollection deletes whatever a list with the same selectors would return. Each
// deletion goes through the gates on its own; the answer comes when all have gone through.
func (s *Server) deleteCollection(f *flight, row *resources.Resource) error {
	sel, err := newSelection(f.Req.Options, row)
	if err != nil {
		return err
	}
	var children []*flight
	s.etcd.Range(row.KeyPrefix(f.Req.Namespace), "", 0, func(kv *etcd.KV) bool {
		if !sel.matches(kv.Value) {
			return true
		}
		m := kv.Value.(metav1.Object)
		c := &flight{Req: f.Req, Gate: gateDecode, Level: f.Level, Since: f.Since, User: f.User}
		c.Req.Verb, c.Req.ReplyTo, c.Req.Tag = wire.Delete, "", nil
		c.Req.Namespace, c.Req.Name, c.Req.Path = m.GetNamespace(), m.GetName(), ""
		children = append(children, c)
		return true
	})
	if len(children) > 0 {
		f.Children = len(children)
		for _, c := range children {
			c.Parent = f.ID
			s.nextID++
			c.ID = s.nextID
			s.flights[c.ID] = c
			s.k.Send(self, s.cfg.Decode, step{c.ID})
		}
		return errParked
	}
	s.collectionDeleted(f)
	return errDone
}

func (s *Server) collectionDeleted(f *flight) {
	s.object(f, 200, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, s.etcd.Revision())
}

// childDone counts the deletions of a collection that have gone through.
func (s *Server) childDone(child *flight) {
	f := s.flights[child.Parent]
	if f == nil {
		return
	}
	if f.Children--; f.Children == 0 {
		s.collectionDeleted(f)
	}
}
