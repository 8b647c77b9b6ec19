package campaign

import (
	"syscall"
	"time"
)

// lasting starts a fault of this kind for a while, unless one already lasts.
func (r *run) lasting(kind string, at time.Duration, begin, end func()) {
	for _, u := range r.undo {
		if u.kind == kind {
			return
		}
	}
	begin()
	r.undo = append(r.undo, undo{kind, time.Now().Add(at), end})
}

// killServer kills the server and starts it again, unless it is cut off.
func (r *run) killServer(int) {
	address := r.server.Address()
	r.server.Kill()
	r.server.Start(address)
	r.online = time.Now()
}

// cut disconnects the pages from the server, for up to three times the TTL of a lease.
func (r *run) cut(int) {
	r.lasting("cut", time.Second+r.pause(3*serverTTL), func() {
		r.offline = true
		r.wire.Cut(true)
	}, func() {
		r.offline, r.online = false, time.Now()
		r.wire.Cut(false)
	})
}

// crowd fills localStorage for a while.
func (r *run) crowd(int) {
	r.lasting("crowd", 2*time.Second+r.pause(4*time.Second), func() {
		r.crowded = true
		r.warden.MustEval(`for (let size = 1 << 20, n = 0; size >= 1; size >>= 1)
			for (;; n++) try { localStorage.setItem('crowd' + n, 'x'.repeat(size)) } catch { break }
			null`, nil)
	}, func() {
		r.crowded = false
		r.warden.MustEval("for (const key of Object.keys(localStorage)) if (key.startsWith('crowd')) localStorage.removeItem(key); null", nil)
	})
}

// fill fills OPFS for a while. Sessions that run meanwhile must keep only acknowledged words.
func (r *run) fill(int) {
	r.lasting("fill", time.Second+r.pause(3*time.Second), func() {
		r.scarce = true
		for _, p := range r.pages {
			for _, s := range p.sessions {
				s.excused = true
			}
		}
		r.warden.Quota(r.site.URL(""), 1)
	}, func() {
		r.scarce = false
		r.warden.Quota(r.site.URL(""), 0)
	})
}

// wipe removes all storage of the origin while pages work. Documents of the server keep their content. In Chromium,
// OPFS then answers no call in any page of the origin that had a file open, until the browser restarts.
func (r *run) wipe(int) {
	for k := range r.pages {
		r.poll(k)
	}
	r.warden.Wipe(r.site.URL(""))
	time.Sleep(r.pause(time.Second))
	for k := range r.pages {
		r.poll(k)
		for _, s := range r.pages[k].sessions {
			s.excused = true
		}
	}
	r.restart(syscall.SIGKILL)
	// Until the browser ended, journals still wrote to files that the wipe had removed from their folders.
	r.oracle.forgive(func(w *word) bool { return w.session.ended != "" && (!w.session.document.shared || !w.saved) })
}
