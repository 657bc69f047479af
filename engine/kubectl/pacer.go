package kubectl

import (
	"net"
	"net/http"
	"sync"
	"time"

	"podwalk/engine/apiserver/serve"
)

const (
	// beat is how often time is moved on while somebody is connected.
	beat = 50 * time.Millisecond
	// beatMax is how much passes at one beat at most: a cluster that takes longer than real
	// time for a second of its own just goes slower.
	beatMax = 2 * beat
)

// pacer lets virtual time pass like real time as long as a client is connected, and
// not a moment longer: a client that was killed has hung up.
type pacer struct {
	shared *serve.Shared
	mu     sync.Mutex
	open   map[net.Conn]bool
	end    chan struct{} // of the present beating; nil while nobody is there
	gone   bool
}

func newPacer(shared *serve.Shared) *pacer { return &pacer{shared: shared, open: map[net.Conn]bool{}} }

// connection is the server's word of a connection.
func (p *pacer) connection(c net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked: // what exec runs has run before its connection is hijacked
		delete(p.open, c)
	case http.StateNew:
		p.open[c] = true
	}
	p.turn()
}

// turn begins or ends the beating.
func (p *pacer) turn() {
	switch wanted := len(p.open) > 0 && !p.gone; {
	case wanted && p.end == nil:
		p.end = make(chan struct{})
		go p.run(p.end)
	case !wanted && p.end != nil:
		close(p.end)
		p.end = nil
	}
}

func (p *pacer) run(end <-chan struct{}) {
	t := time.NewTicker(beat)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-end:
			return
		case <-t.C:
			now := time.Now()
			d := min(now.Sub(last), beatMax)
			last = now
			p.shared.With(func(r serve.Run) { r.Advance(d) })
		}
	}
}

func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.turn()
}
