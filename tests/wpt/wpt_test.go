// Package wpt runs the public web-platform-tests for web-locks against holdfast.locks over both strategies. The suite
// is not part of this repository: make wpt fetches it, or -suite says where it lies.
package wpt

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

var root = flag.String("suite", "", "a checkout of web-platform-tests, with web-locks and resources")

const (
	interfaces = "it is about the interfaces of the browser itself"
	lifetimes  = "it is about the lifetimes of documents and other origins, which the browser alone sees"
)

// outside are files that do not concern the library, and why.
var outside = map[string]string{
	"idlharness.https.any.js":                    interfaces,
	"secure-context.https.any.js":                interfaces,
	"non-secure-context.any.js":                  interfaces,
	"storage-buckets.tentative.https.any.js":     "it asks a storage bucket of the browser for locks",
	"clientids.https.html":                       "it compares the client's name with that which a service worker sees",
	"non-fully-active.https.html":                lifetimes,
	"opaque-origin.https.html":                   lifetimes,
	"partitioned-web-locks.tentative.https.html": lifetimes,
}

// result is one test as testharness.js tells of it; status 0 is a pass.
type result struct {
	Name, Message string
	Status        int
}

func TestWebPlatformTests(t *testing.T) {
	if *root == "" {
		t.Skip("no -suite; run make wpt")
	}
	files, err := filepath.Glob(filepath.Join(*root, "web-locks", "*.*"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there are no tests in %s/web-locks", *root)
	given := suite{*root}
	server := serve(t, given)
	chromium := browser.Start(t, browser.Options{})
	for _, strategy := range []string{"web-lock", "file-lock"} {
		for _, host := range []string{"worker", "page"} {
			t.Run(strategy+"/"+host, func(t *testing.T) {
				passed := 0
				for _, file := range files {
					name := filepath.Base(file)
					if kind := filepath.Ext(name); kind != ".js" && kind != ".html" {
						continue
					}
					if why := outside[name]; why != "" {
						t.Logf("%s is left out: %s", name, why)
						continue
					}
					address, err := given.address(name, strategy, host)
					require.NoError(t, err)
					tab := chromium.Open(t, server.URL(address))
					tab.WaitFor("globalThis.results", browser.Limit)
					results := browser.Get[[]result](tab, "results")
					tab.Close()
					assert.NotEmpty(t, results, name)
					good := 0
					for _, r := range results {
						if assert.Zero(t, r.Status, "%s: %s: %s", name, r.Name, r.Message) {
							good++
						}
					}
					t.Logf("%s: %d of %d", name, good, len(results))
					passed += good
				}
				t.Logf("%d passed", passed)
			})
		}
	}
}

func serve(t *testing.T, given suite) *browser.Server {
	t.Helper()
	site, err := static.Handler(os.DirFS("../../web/site"))
	require.NoError(t, err, "run make build")
	mux := http.NewServeMux()
	mux.Handle("/", site)
	given.register(mux)
	return browser.Serve(t, mux)
}
