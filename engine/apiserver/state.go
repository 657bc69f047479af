package apiserver

// serverState is what time travel carries along.
type serverState struct {
	NextID   uint64
	Flights  map[uint64]*flight
	Watches  []watcher
	Seen     int64
	Sweeping bool
	Down     bool
}

// Snapshot implements kernel.State.
func (s *Server) Snapshot() any {
	return serverState{s.nextID, copyFlights(s.flights), s.watches.snapshot(), s.seen, s.sweeping, s.down}
}

// Restore implements kernel.State.
func (s *Server) Restore(snap any) {
	st := snap.(serverState)
	s.nextID, s.seen, s.sweeping, s.down = st.NextID, st.Seen, st.Sweeping, st.Down
	s.flights = copyFlights(st.Flights)
	s.watches.restore(st.Watches)
	s.invalidate()
}

// invalidate tells the authorizer that the RBAC objects may be others now.
func (s *Server) invalidate() {
	if z, ok := s.cfg.Authorizer.(interface{ Invalidate() }); ok {
		z.Invalidate()
	}
}

func copyFlights(m map[uint64]*flight) map[uint64]*flight {
	out := make(map[uint64]*flight, len(m))
	for id, f := range m {
		out[id] = copyFlight(f)
	}
	return out
}
