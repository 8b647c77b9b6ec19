package locks

import (
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// visits knows which of this server's requests are here. A store whose answer to a request's place in the queue is lost may make the place
// after the request has left. Its key ends with this server, so nobody else would remove it, and it would block others.
type visits struct {
	server  string // the beginning of each visit to this server
	mu      sync.Mutex
	here    map[string]bool
	orphans []*ticket
}

func newVisits() *visits { return &visits{server: newID(), here: map[string]bool{}} }

// enter names a request's next visit.
func (v *visits) enter(own *ticket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.here, own.Visit)
	own.Visit = v.server + newID()
	v.here[own.Visit] = true
}

func (v *visits) leave(own *ticket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.here, own.Visit)
}

// see records a place that the store shows if its request has left this server.
func (v *visits) see(place ticket, stored kv.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if strings.HasPrefix(place.Visit, v.server) && !v.here[place.Visit] {
		place.text = stored.Value
		v.orphans = append(v.orphans, &place)
	}
}

// left returns the places of requests that have left, once each.
func (v *visits) left() (orphans []*ticket) {
	v.mu.Lock()
	defer v.mu.Unlock()
	orphans, v.orphans = v.orphans, nil
	return orphans
}
