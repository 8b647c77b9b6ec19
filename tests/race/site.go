// Package race makes tabs and workers of real browsers race for one lock, with random releases, aborts, steals,
// reloads, crashes and terminations. A witness that does not depend on the lock checks them.
package race

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

//go:embed testdata/*.js
var scripts embed.FS

// referee is the server's side of one race. Contenders report their actions to it.
type referee struct {
	*locktest.Witness
	grants int // after this many, no contender may begin again

	mu      sync.Mutex
	turns   map[string]int // of the running contenders, whether or not they have begun
	failure []string
	over    bool
}

func newReferee(grants int) *referee {
	return &referee{Witness: locktest.NewWitness(), grants: grants, turns: map[string]int{}}
}

// told is a contender's report.
type told struct {
	Client, What, Why string
	Token             int64
	Steal             bool
}

// answer is the referee's answer.
type answer struct {
	Go   bool `json:"go"`
	Stop bool `json:"stop"`
}

func (r *referee) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var m told
	if err := json.NewDecoder(request.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(r.hear(m))
}

func (r *referee) hear(m told) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, runs := r.turns[m.Client]; !runs {
		return answer{Stop: true}
	}
	turn := func() string { return fmt.Sprintf("%s/%d", m.Client, r.turns[m.Client]) }
	switch m.What {
	case "enter":
		return answer{Go: r.Enter(turn(), m.Token)}
	case "leave":
		r.Leave(turn())
	case "fail":
		r.Fail(turn())
	case "forgotten":
		r.Forgotten(turn())
		return answer{}
	case "done":
		delete(r.turns, m.Client)
		return answer{}
	case "error":
		delete(r.turns, m.Client)
		r.failure = append(r.failure, m.Client+": "+m.Why)
		return answer{}
	}
	if r.over = r.over || r.Entries() >= r.grants; r.over {
		return answer{Stop: true}
	}
	r.turns[m.Client]++
	r.Begin(turn(), m.Steal)
	return answer{}
}

// enter records that a contender is about to start.
func (r *referee) enter(client string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns[client] = 0
}

// end records that the contenders whose names have this prefix are about to be killed. Their later reports do not
// count: a page that goes away has its requests fail, even while it starts.
func (r *referee) end(prefix string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for client, turn := range r.turns {
		if strings.HasPrefix(client, prefix) {
			r.End(fmt.Sprintf("%s/%d", client, turn))
			delete(r.turns, client)
		}
	}
}

// stop makes every contender end after its turn.
func (r *referee) stop() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
}

// running returns the contenders that have not reported their end, including those that have not begun.
func (r *referee) running() (clients []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for client := range r.turns {
		clients = append(clients, client)
	}
	return clients
}

func (r *referee) failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.failure...)
}

// withoutWebLocks makes a page or a worker behave like one in a browser without Web Locks.
const withoutWebLocks = "Object.defineProperty(navigator, 'locks', {value: undefined, configurable: true});\n"

func serve(t *testing.T, r *referee, alone bool) *browser.Server {
	t.Helper()
	const site = "../../web/site"
	files, err := static.Handler(os.DirFS(site))
	if err != nil {
		t.Fatalf("race: %v; run make build", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", files)
	mux.Handle("/tell", r)
	mux.HandleFunc("/race", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>race</title><link rel=icon href='data:,'><script type=module src=/race-page.js></script>"))
	})
	for path, name := range map[string]string{"/contender.js": "contender.js", "/race-worker.js": "worker.js", "/race-page.js": "page.js"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			body, err := scripts.ReadFile("testdata/" + name)
			if err != nil {
				panic(err)
			}
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = w.Write(body)
		})
	}
	if alone {
		for _, name := range []string{"holdfast.js", "holdfast-worker.js", "holdfast-page.js", "holdfast-helper.js"} {
			mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) {
				body, err := os.ReadFile(site + "/" + name)
				if err != nil {
					panic(err)
				}
				static.SecurityHeaders(w.Header())
				w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
				_, _ = w.Write(append([]byte(withoutWebLocks), body...))
			})
		}
	}
	return browser.Serve(t, mux)
}
