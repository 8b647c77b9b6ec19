package soak

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// Scripts are the programs of the pages. Other long tests use parts of them.
//
//go:embed testdata/*.js
var Scripts embed.FS

const siteDir = "../../web/site"

// site is what the machines see: the package, the programs, a connection to a server for each, and the checker.
type site struct {
	*browser.Server
	ahead [machines]atomic.Int64 // how far a machine's clock is set forward, in ms
}

// machineOf identifies a machine by its origin: the two share neither locks nor storage.
func machineOf(host string) int {
	if strings.HasPrefix(host, "localhost") {
		return 0
	}
	return 1
}

func (s *site) address(machine int, path string) string {
	if machine == 0 {
		return s.URL(path)
	}
	return s.OtherURL(path)
}

func newSite(t *testing.T, wires [machines]*serving.Wire, check http.Handler) *site {
	t.Helper()
	files := os.DirFS(siteDir)
	bundle, err := static.Handler(files)
	require.NoError(t, err, "the package is not built; run make build")
	s := &site{}
	mux := http.NewServeMux()
	mux.Handle("/", bundle)
	mux.Handle("/tell", check)
	mux.HandleFunc("/soak", page("<script src=/soak/clock.js></script><script type=module src=/soak/page.js></script>"))
	mux.HandleFunc("/away", page(""))
	programs, err := fs.Sub(Scripts, "testdata")
	require.NoError(t, err)
	mux.HandleFunc("/soak/", script(programs))
	mux.HandleFunc("/soak/ahead", s.clock)
	for _, name := range []string{"/holdfast-worker.js", "/holdfast-helper.js"} {
		mux.HandleFunc(name, script(files))
	}
	var ways [machines]http.Handler
	for i, wire := range wires {
		ways[i] = wire.Proxy()
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) { ways[machineOf(r.Host)].ServeHTTP(w, r) })
	s.Server = browser.Serve(t, mux)
	return s
}

func page(scripts string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>soak</title><link rel=icon href='data:,'>%s", scripts)
	}
}

// script serves a script. If it is the first script of a worker, the machine's clock comes before it.
func script(files fs.FS) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		body, err := fs.ReadFile(files, name)
		clock, _ := Scripts.ReadFile("testdata/clock.js")
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if strings.Contains(name, "worker") || strings.Contains(name, "helper") {
			body = slices.Concat(clock, body)
		}
		_, _ = w.Write(body)
	}
}

// clock returns how far the machine's clock is set forward.
func (s *site) clock(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	_, _ = fmt.Fprint(w, s.ahead[machineOf(r.Host)].Load())
}
