package engines

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

//go:embed testdata/*.js
var scripts embed.FS

// A Site serves the built package with the headers of the demo, including its content security policy, and pages that
// have loaded testdata/prelude.js. Pages and workers report policy violations to it.
type Site struct {
	*browser.Server

	mu         sync.Mutex
	violations []string
}

// Paths of a site, beside those of the package.
const (
	BlankPage = "/blank"  // an empty page with the prelude
	OctetBase = "/octet/" // the package again, with the Wasm as application/octet-stream
	FlakyBase = "/flaky/" // the package again, in any folder below it; its modules are missing when they are asked for the first time
	probePath = "/probe.js"
	shoutPath = "/shout.js"
)

// Serve serves the package in a folder until the test ends, with a server's API if one is given. It fails the test if
// the package is not built.
func Serve(t testing.TB, folder string, api ...http.Handler) *Site {
	t.Helper()
	files := os.DirFS(folder)
	if _, err := fs.Stat(files, "holdfast.wasm"); err != nil {
		t.Fatalf("engines: the package is not built; run make build (%v)", err)
	}
	bundle, err := static.Handler(files)
	if err != nil {
		t.Fatalf("engines: %v", err)
	}
	site := &Site{}
	mux := http.NewServeMux()
	mux.Handle("/", bundle)
	for _, handler := range api {
		mux.Handle("/api/", handler)
	}
	mux.Handle(OctetBase, http.StripPrefix(strings.TrimSuffix(OctetBase, "/"), octet(bundle)))
	mux.Handle(FlakyBase, flaky(bundle))
	mux.HandleFunc(BlankPage, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "text/html; charset=utf-8", []byte("<!doctype html><title>blank</title>"+
			"<link rel=icon href='data:,'><script type=module src=/prelude.js></script>"))
	})
	for _, name := range []string{"/prelude.js", probePath, shoutPath} {
		body, err := scripts.ReadFile("testdata" + name)
		if err != nil {
			t.Fatalf("engines: %v", err)
		}
		mux.HandleFunc(name, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, "text/javascript; charset=utf-8", body)
		})
	}
	hook, err := scripts.ReadFile("testdata/helper.js")
	if err != nil {
		t.Fatalf("engines: %v", err)
	}
	helper, err := fs.ReadFile(files, "holdfast-helper.js")
	if err != nil {
		t.Fatalf("engines: %v", err)
	}
	mux.HandleFunc("/holdfast-helper.js", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "text/javascript; charset=utf-8", slices.Concat(hook, helper))
	})
	mux.HandleFunc("/violations", site.report)
	site.Server = browser.Serve(t, reporting(mux))
	return site
}

// Address returns "host:port" of the server, which answers for every host name.
func (s *Site) Address() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.OtherURL(""), "http://"), "/")
}

// Violations returns the reports about policy violations so far.
func (s *Site) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

func (s *Site) report(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil {
		body = fmt.Appendf(body, " (%v)", err)
	}
	s.mu.Lock()
	s.violations = append(s.violations, string(body))
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, kind string, body []byte) {
	static.SecurityHeaders(w.Header())
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache") // with "no-store", no page enters the back/forward cache
	_, _ = w.Write(body)
}

// reporting adds the address for violation reports to every policy.
func reporting(next http.Handler) http.Handler {
	return changed(next, func(_ *http.Request, header http.Header) {
		if policy := header.Get("Content-Security-Policy"); policy != "" {
			header.Set("Content-Security-Policy", policy+"; report-uri /violations")
		}
	})
}

// octet sends the Wasm like a server that does not know its type.
func octet(next http.Handler) http.Handler {
	return changed(next, func(r *http.Request, header http.Header) {
		if path.Ext(r.URL.Path) == ".wasm" {
			header.Set("Content-Type", "application/octet-stream")
		}
	})
}

// flaky serves files in any folder. The modules that a page loads by itself are not found at first.
func flaky(next http.Handler) http.Handler {
	var asked sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if _, again := asked.LoadOrStore(r.URL.Path, true); !again && strings.HasPrefix(name, "holdfast-") {
			http.NotFound(w, r)
			return
		}
		r.URL.Path = "/" + name
		next.ServeHTTP(w, r)
	})
}

// changed lets change modify the headers of each response of next.
func changed(next http.Handler, change func(*http.Request, http.Header)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&changing{ResponseWriter: w, change: func() { change(r, w.Header()) }}, r)
	})
}

type changing struct {
	http.ResponseWriter
	change func() // nil once done
}

func (c *changing) WriteHeader(status int) {
	if c.change != nil {
		c.change()
		c.change = nil
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *changing) Write(data []byte) (int, error) {
	if c.change != nil {
		c.WriteHeader(http.StatusOK)
	}
	return c.ResponseWriter.Write(data)
}
