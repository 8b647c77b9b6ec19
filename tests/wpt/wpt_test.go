// Package wpt runs the public web-platform-tests for web-locks against holdfast.locks over both strategies. The suite
// is not part of this repository: make wpt fetches it, or -suite says where it lies.
package wpt

import (
	"embed"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

var suite = flag.String("suite", "", "a checkout of web-platform-tests, with web-locks and resources")

//go:embed testdata/run.js
var scripts embed.FS

// outside are tests that do not concern the library, and why: by file, or by file and test.
var outside = map[string]string{
	"idlharness.https.any.js":                "it compares the browser's own interfaces with their description",
	"secure-context.https.any.js":            "it looks for the browser's own interfaces",
	"storage-buckets.tentative.https.any.js": "it asks a storage bucket of the browser for locks",
	"query.https.any.js: query() reports different ids for held locks from different contexts": "its worker asks the browser's own locks, which over a file are others",
	"query.https.any.js: query() can observe a deadlock":                                       "its worker asks the browser's own locks, which over a file are others",
}

// result is one test as testharness.js tells of it; status 0 is a pass.
type result struct {
	Name, Message string
	Status        int
}

func TestWebPlatformTests(t *testing.T) {
	if *suite == "" {
		t.Skip("no -suite; run make wpt")
	}
	files, err := filepath.Glob(filepath.Join(*suite, "web-locks", "*.any.js"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there are no tests in %s/web-locks", *suite)
	server := serve(t)
	chromium := browser.Start(t, browser.Options{})
	for _, strategy := range []string{"web-lock", "file-lock"} {
		for _, host := range []string{"worker", "page"} {
			t.Run(strategy+"/"+host, func(t *testing.T) {
				passed := 0
				for _, file := range files {
					name := filepath.Base(file)
					if why := outside[name]; why != "" {
						t.Logf("%s is left out: %s", name, why)
						continue
					}
					tab := chromium.Open(t, server.URL("/web-locks/run?"+url.Values{"file": {name}, "strategy": {strategy}, "host": {host}}.Encode()))
					tab.WaitFor("globalThis.results", browser.Limit)
					results := browser.Get[[]result](tab, "results")
					tab.Close()
					assert.NotEmpty(t, results, name)
					failed := 0
					for _, r := range results {
						if why := outside[name+": "+r.Name]; why != "" && strategy == "file-lock" {
							t.Logf("%s: %s is left out: %s", name, r.Name, why)
							continue
						}
						if !assert.Zero(t, r.Status, "%s: %s: %s", name, r.Name, r.Message) {
							failed++
						} else {
							passed++
						}
					}
					t.Logf("%s: %d tests, %d failed", name, len(results), failed)
				}
				t.Logf("%d passed", passed)
			})
		}
	}
}

// serve serves the package, the suite and the page that runs a file of it.
func serve(t *testing.T) *browser.Server {
	t.Helper()
	site, err := static.Handler(os.DirFS("../../web/site"))
	require.NoError(t, err, "run make build")
	script, err := scripts.ReadFile("testdata/run.js")
	require.NoError(t, err)
	given := http.FileServer(http.Dir(*suite))
	mux := http.NewServeMux()
	mux.Handle("/", site)
	mux.Handle("/web-locks/", given)
	mux.Handle("/resources/", given)
	mux.HandleFunc("/web-locks/run", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, "<!doctype html><title>", r.URL.Query().Get("file"), "</title><link rel=icon href='data:,'>",
			"<script src=/resources/testharness.js></script><script>", string(script), "</script>")
	})
	mux.HandleFunc("/web-locks/source/{file}", func(w http.ResponseWriter, r *http.Request) {
		text, err := source(r.PathValue("file"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write([]byte(text))
	})
	return browser.Serve(t, mux)
}

// source returns a test and the scripts that it asks for, in one function of a navigator whose locks are holdfast's:
// the package itself must go on seeing the browser's own.
func source(file string) (string, error) {
	folder := filepath.Join(*suite, "web-locks")
	test, err := os.ReadFile(filepath.Join(folder, filepath.Base(file)))
	if err != nil {
		return "", err
	}
	parts := []string{string(test)}
	for line := range strings.Lines(string(test)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "// META: script="); ok {
			path := filepath.Join(folder, filepath.FromSlash(name))
			if strings.HasPrefix(name, "/") {
				path = filepath.Join(*suite, filepath.FromSlash(name))
			}
			script, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			parts = slices.Insert(parts, len(parts)-1, string(script))
		}
	}
	return "globalThis.play = (navigator) => {\n" + strings.Join(parts, "\n;\n") + "\n};", nil
}
