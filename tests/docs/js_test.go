package docs

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

//go:embed testdata/prelude.js
var prelude []byte

const page = `<!doctype html><html lang="en"><title>Block</title><link rel="icon" href="data:,">
<textarea aria-label="Text" readonly></textarea><button>Edit here</button>
<script type="module" src="/prelude.js?block=%s"></script></html>`

// Each block of JavaScript runs as a module in a page of a real server, under the server's policy.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	blocks := blocksIn(t, "js")
	server := site(t, blocks)
	chromium := browser.Start(t, browser.Options{Shell: true})
	for i, b := range blocks {
		t.Run(b.name(), func(t *testing.T) {
			outcome, tab := runBlock(t, chromium, server, i)
			defer tab.Close() // releases its locks
			require.Equal(t, "ran", outcome)
			if b.check != "" {
				err := tab.Wait(b.check, browser.Limit)
				require.NoError(t, err, "the check %s; the calls were %s", b.check, browser.Get[string](tab, "JSON.stringify(calls)"))
			}
			tab.Quiet()
		})
	}
}

// Wrong blocks fail.
func TestJavaScriptThatIsWrong(t *testing.T) {
	t.Parallel()
	server := site(t, []block{{text: "holdfast.acquire();"}, {text: "await holdfast.acquireProjectLock({ ttl: -1, ttlMs: 'x' });"}})
	chromium := browser.Start(t, browser.Options{Shell: true})
	for i, want := range []string{"holdfast.acquire is not a function", "invalid-argument"} {
		outcome, _ := runBlock(t, chromium, server, i)
		assert.Contains(t, outcome, want)
	}
}

func runBlock(t *testing.T, chromium *browser.Browser, server *browser.Server, i int) (outcome string, tab *browser.Tab) {
	t.Helper()
	// Each block has its own origin, so that it does not find another block's storage.
	own := strings.Replace(server.URL(fmt.Sprintf("/block/%d", i)), "localhost", fmt.Sprintf("block-%d.localhost", i), 1)
	tab = chromium.Open(t, own)
	tab.WaitFor("globalThis.outcome", browser.Limit)
	return browser.Get[string](tab, "outcome"), tab
}

func blocksIn(t *testing.T, lang string) []block {
	t.Helper()
	all, err := allBlocks("../..")
	require.NoError(t, err)
	var blocks []block
	for _, b := range all {
		if b.lang == lang && b.page != recipes && b.page != sqlitePage { // TestRecipes and TestDatabaseInSeveralTabs run those
			blocks = append(blocks, b)
		}
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// site is a Holdfast server with the pages of the blocks. Their import "./holdfast.js" is a file of the server.
func site(t *testing.T, blocks []block) *browser.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", serving.Forward(serve(t).Address()))
	mux.HandleFunc("/prelude.js", script(prelude))
	for i, b := range blocks {
		path := fmt.Sprintf("/block-%d.js", i)
		mux.HandleFunc(path, script([]byte(b.text)))
		mux.HandleFunc(fmt.Sprintf("/block/%d", i), func(w http.ResponseWriter, _ *http.Request) {
			static.SecurityHeaders(w.Header())
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, page, path)
		})
	}
	return browser.Serve(t, mux)
}

func script(text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(text)
	}
}
