// Package consumer uses the package as outside users do: it packs the tarball, installs it in a Vite project, unpacks
// it beside a plain page, and imports the Go packages from another module.
package consumer

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/outside"
)

// The locks and the text of the Vite project's main.ts, in the order in which it reports them, for each host.
var story = []string{
	"acquire-denied", "later token greater: true",
	"lock:attempt", "lock:acquired", "lock:renew-scheduled", "lock:release-requested", "lock:released",
	"21: typed in a Vite build",
}

// A build of Vite knows the package's worker, helper and Wasm only by their URLs. The project's policy is that of the
// demo: it allows no inline code in the page.
func TestViteProject(t *testing.T) {
	t.Parallel()
	project := filepath.Join(t.TempDir(), "project")
	require.NoError(t, os.CopyFS(project, projectFiles(t)))
	run(t, project, "npm", "ci", "--no-progress", "--no-audit", "--no-fund")
	run(t, project, "npm", "install", "--no-save", "--no-progress", "--no-audit", "--no-fund", "--offline", packed(t).tarball)
	run(t, project, "npm", "run", "build")

	built, err := static.Handler(os.DirFS(filepath.Join(project, "dist")))
	require.NoError(t, err)
	server := browser.Serve(t, built)
	tab := browser.Start(t, browser.Options{}).Open(t, server.URL("/"))
	assert.Equal(t, append(story, story...), browser.Get[[]string](tab, "await story"))
	tab.Quiet()
}

// A page without any tools: it has the unpacked tarball beside it, and one script, which its policy names by its
// hash.
func TestPlainPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("plain/index.html")
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/holdfast/", http.StripPrefix("/holdfast", assets(t, filepath.Join(unpack(t, packed(t).tarball), "package"))))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		policy := w.Header().Get("Content-Security-Policy")
		w.Header().Set("Content-Security-Policy", strings.Replace(policy, "script-src", "script-src "+hash(t, page), 1))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
	server := browser.Serve(t, mux)
	tab := browser.Start(t, browser.Options{}).Open(t, server.URL("/"))
	tab.WaitFor("/^Ann wrote under token [0-9]+$/.test(document.querySelector('#answer').textContent)", browser.Limit)
	tab.Quiet()
}

func TestGoProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, err := os.ReadFile("program/main.go.txt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), source, 0o644))
	outside.Module(t, dir, "../..")
	assert.Equal(t, "denied: true\nsaved: 6 <nil>\n", run(t, dir, "go", "run", "."))
}

// hash returns the hash of a page's only inline script, for a policy.
func hash(t *testing.T, page []byte) string {
	t.Helper()
	scripts := regexp.MustCompile(`(?s)<script type="module">(.*)</script>`).FindAllSubmatch(page, -1)
	require.Len(t, scripts, 1)
	sum := sha256.Sum256(scripts[0][1])
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// assets serves the files of the package with the site's headers. A site has an index; a package has none.
func assets(t *testing.T, dir string) http.Handler {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.html"), nil, 0o644))
	handler, err := static.Handler(os.DirFS(dir))
	require.NoError(t, err)
	return handler
}
