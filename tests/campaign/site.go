package campaign

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
	"github.com/holdfast-dev/holdfast/tests/soak"
)

//go:embed testdata/*.js
var scripts embed.FS

const siteDir = "../../web/site"

// newSite serves the package, the pages of the campaign, and the connection to the server. The package's worker
// scripts begin with plant, which breaks a guarantee if the campaign must prove that it detects that. Pages of the build
// in the folder before, if there is one, are below /before/.
func newSite(t *testing.T, wire *serving.Wire, plant, before string) (*browser.Server, *network) {
	t.Helper()
	files := os.DirFS(siteDir)
	n := newNetwork(bundle(t, files, plant))
	mux := http.NewServeMux()
	mux.Handle("/", n.files)
	mux.Handle("/net/", n)
	mux.HandleFunc("POST /campaign/step", n.step)
	mux.Handle("/api/", wire.Proxy())
	mux.HandleFunc("/campaign", page("<script>"+plant+"</script><script type=module src=/campaign/page.js></script>"))
	mux.HandleFunc("/away", page(""))
	mux.HandleFunc("/campaign/", script(scripts, ""))
	mux.HandleFunc("/soak/", script(soak.Scripts, ""))
	if before != "" {
		former := bundle(t, os.DirFS(before), "")
		mux.Handle("/before/", http.StripPrefix("/before", former))
	}
	return browser.Serve(t, mux), n
}

// bundle serves the files of a build. Its worker scripts begin with plant.
func bundle(t *testing.T, files fs.FS, plant string) http.Handler {
	t.Helper()
	all, err := static.Handler(files)
	require.NoError(t, err, "the package is not built; run make build")
	mux := http.NewServeMux()
	mux.Handle("/", all)
	for _, name := range []string{"/holdfast-worker.js", "/holdfast-helper.js"} {
		mux.HandleFunc(name, script(files, plant))
	}
	return mux
}

func page(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>campaign</title><link rel=icon href='data:,'>%s", content)
	}
}

// script serves a script made of several files, with another script before it.
func script(files fs.FS, before string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		body, err := fs.ReadFile(files, name)
		if err != nil {
			body, err = fs.ReadFile(files, "testdata/"+name)
		}
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(append([]byte(before+"\n"), body...))
	}
}

var client = http.Client{Timeout: 3 * time.Second}

// contentOf reads a document from the server directly, not through a page.
func contentOf(server, document string) ([]string, error) {
	answer, err := client.Get(server + "/api/documents/" + document + "/content")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return strings.Fields(string(text)), err
}
