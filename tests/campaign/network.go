package campaign

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"
)

// network delivers the package to each page from a folder of its own, /net/<page>/, and disturbs the downloads of the
// page. It also stops a page at a step, until the campaign has decided how the page ends there.
type network struct {
	files http.Handler
	stops chan stop

	mu    sync.Mutex
	pages map[string]*delivery
}

// delivery is what happens to the downloads of one page: each fault happens once, to the first request for its file.
type delivery struct {
	faults map[string]fault
	over   chan struct{} // closed when the page has ended
}

// fault answers a request for a file. It ends when the page has ended, because Chromium keeps the request for a worker's
// script of a page that has crashed.
type fault func(w http.ResponseWriter, r *http.Request, file http.Handler, over <-chan struct{})

// stop is a page that waits at a step, with all that it has recorded.
type stop struct {
	entries []entry
	goOn    chan struct{}
}

func newNetwork(files http.Handler) *network {
	return &network{files: files, stops: make(chan stop), pages: map[string]*delivery{}}
}

// expect disturbs the downloads of the page with that folder. The returned function ends those that are under way.
func (n *network) expect(folder string, faults map[string]fault) (leave func()) {
	d := &delivery{faults, make(chan struct{})}
	n.mu.Lock()
	n.pages[folder] = d
	n.mu.Unlock()
	return sync.OnceFunc(func() { close(d.over) })
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	folder, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/net/"), "/")
	n.mu.Lock()
	var f fault
	d := n.pages[folder]
	if d != nil {
		f = d.faults[name]
		delete(d.faults, name)
	}
	n.mu.Unlock()
	r.URL.Path = "/" + name
	if f == nil {
		n.files.ServeHTTP(w, r)
		return
	}
	f(w, r, n.files, d.over)
}

// step answers a page that has come to its step, once the campaign lets it go on.
func (n *network) step(w http.ResponseWriter, r *http.Request) {
	s := stop{goOn: make(chan struct{})}
	if err := json.NewDecoder(r.Body).Decode(&s.entries); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case n.stops <- s:
		<-s.goOn
	case <-time.After(time.Second): // nobody waits for it any more
	}
}

// after delays the response, and the pauses between its parts.
func after(delay, pause time.Duration) fault {
	return func(w http.ResponseWriter, r *http.Request, file http.Handler, over <-chan struct{}) {
		select {
		case <-time.After(delay):
			file.ServeHTTP(&slow{w, pause, over}, r)
		case <-over:
			panic(http.ErrAbortHandler)
		}
	}
}

// slow sends a response in parts.
type slow struct {
	http.ResponseWriter
	pause time.Duration
	over  <-chan struct{}
}

const part = 32 << 10

func (s *slow) Write(data []byte) (sent int, err error) {
	for len(data) > 0 && err == nil {
		var n int
		n, err = s.ResponseWriter.Write(data[:min(part, len(data))])
		sent, data = sent+n, data[n:]
		select {
		case <-time.After(s.pause):
		case <-s.over:
			panic(http.ErrAbortHandler)
		}
	}
	return sent, err
}

// never holds the response forever.
func never(_ http.ResponseWriter, _ *http.Request, _ http.Handler, over <-chan struct{}) {
	<-over
	panic(http.ErrAbortHandler)
}

// half ends the connection within the file.
func half(w http.ResponseWriter, r *http.Request, file http.Handler, _ <-chan struct{}) {
	file.ServeHTTP(&cut{w, 4000}, r)
}

// cut ends the connection after some bytes.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(data []byte) (int, error) {
	n, err := c.ResponseWriter.Write(data[:min(c.left, len(data))])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// missing answers that there is no such file.
func missing(w http.ResponseWriter, r *http.Request, _ http.Handler, _ <-chan struct{}) {
	http.NotFound(w, r)
}

// dying delivers the script of a worker that ends a little later.
func dying(files fs.FS) fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler, _ <-chan struct{}) {
		script(files, "setTimeout(() => self.close(), 500);")(w, r)
	}
}
