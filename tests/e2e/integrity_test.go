package e2e

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// integrityOf returns an import map with the hash of each module of the package on a network. The hash of wrong is that of
// another file.
func integrityOf(t *testing.T, network, wrong string) string {
	t.Helper()
	hashes := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(siteDir, "holdfast*.js"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		name := filepath.Base(path)
		if name == wrong {
			data = nil
		}
		sum := sha512.Sum384(data)
		hashes[network+name] = "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	text, err := json.Marshal(map[string]any{"integrity": hashes})
	require.NoError(t, err)
	return string(text)
}

// A page names the hashes of the package's modules in its import map. The browser refuses a module that is another file, and Holdfast
// rejects with a code.
func TestIntegrityOfModulesOnANetwork(t *testing.T) {
	t.Parallel()
	w, network := networked(t)
	site := pages(t, siteDir)
	server := browser.Serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		wrong, ok := strings.CutPrefix(r.URL.Path, "/integrity/")
		if !ok {
			site.ServeHTTP(out, r)
			return
		}
		static.SecurityHeaders(out.Header())
		policy := out.Header().Get("Content-Security-Policy")
		out.Header().Set("Content-Security-Policy", strings.NewReplacer("script-src 'self'", "script-src 'self' 'unsafe-inline' "+network,
			"connect-src 'self'", "connect-src 'self' "+network, "worker-src 'self'", "worker-src blob: "+network).Replace(policy))
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = out.Write([]byte("<!doctype html><title>integrity</title><link rel=icon href='data:,'><script type=importmap>" + integrityOf(t, network, wrong) + "</script>"))
	}))
	w.Server = server
	for wrong, code := range map[string]string{"": "", "holdfast-host.js": "load-failed", "holdfast-page.js": "load-failed"} {
		host := map[string]string{"holdfast-page.js": "page"}[wrong]
		if host == "" {
			host = "worker"
		}
		tab := networkedTab(t, w, "/integrity/"+wrong, network+"holdfast.js", at(host, "integrity"))
		failed := browser.Get[event](tab, "await failure(hf.ready)")
		if code == "" {
			assert.Nil(t, failed["code"], failed["message"])
			tab.MustEval("await (await hf.acquireProjectLock()).release()", nil)
			tab.Quiet()
		} else {
			assert.Equal(t, code, failed["code"], wrong)
			assert.Contains(t, failed["message"], "try again", wrong)
		}
		tab.MustEval("await hf.close(); null", nil)
		tab.Close()
	}
}

// A module that the import map refuses stays refused when the page loads it again. The browser has no copy of it.
func TestIntegrityOfAModuleThatIsLoadedAgain(t *testing.T) {
	t.Parallel()
	site := pages(t, siteDir)
	var server *browser.Server
	server = browser.Serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch name, fresh := strings.CutPrefix(r.URL.Path, "/fresh/"); {
		case fresh:
			site.ServeHTTP(&unstored{out}, &http.Request{Method: "GET", URL: &url.URL{Path: "/" + name}, Header: http.Header{}})
		case r.URL.Path == "/page":
			_, _ = out.Write([]byte("<!doctype html><title>integrity</title><link rel=icon href='data:,'><script type=importmap>" + integrityOf(t, server.URL("/fresh/"), "holdfast-host.js") + "</script>"))
		default:
			site.ServeHTTP(out, r)
		}
	}))
	w := world{browser.Start(t, quick), server}
	tab := networkedTab(t, w, "/page", "/fresh/holdfast.js", at("worker", "integrity again"))
	for range 3 {
		assert.Equal(t, "load-failed", browser.Get[event](tab, "await failure(hf.inspect())")["code"])
	}
	tab.MustEval("await hf.close(); null", nil)
	tab.Close()
}

// unstored answers without any file that the browser may keep.
type unstored struct{ http.ResponseWriter }

func (u *unstored) WriteHeader(status int) {
	u.Header().Set("Cache-Control", "no-store")
	u.Header().Del("ETag")
	u.ResponseWriter.WriteHeader(status)
}
