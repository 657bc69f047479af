package apiserver

import (
	"podwalk/engine/network"
)

func (s *Server) connect(f *flight) error { return notFoundPath(&f.Req) }

func (s *Server) connected(res network.Result) {}
