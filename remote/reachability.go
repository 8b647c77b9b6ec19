package remote

import "sync"

// reach sends to a server for the page's user, and records whether the server answers.
type reach struct {
	server  Server
	bearers bearers

	mu       sync.Mutex
	away     bool
	last     int64 // of the watchers
	watchers map[int64]func()
}

// absent reports whether an answer means that the server is not available: its own answer while its store is unavailable, or
// the answer of a proxy.
func absent(r Reply) bool {
	return r.Status == statusBadGateway || r.Status == statusUnavailable || r.Status == statusGatewayTimeout
}

func (r *reach) note(away bool) {
	r.mu.Lock()
	var told []func()
	if r.away != away {
		for _, changed := range r.watchers {
			told = append(told, changed)
		}
	}
	r.away = away
	r.mu.Unlock()
	for _, changed := range told {
		changed()
	}
}

// online reports whether the last request was answered.
func (r *reach) online() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.away
}

// watch calls changed after each change of online, until stop is called.
func (r *reach) watch(changed func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchers == nil {
		r.watchers = make(map[int64]func())
	}
	r.last++
	id := r.last
	r.watchers[id] = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}
