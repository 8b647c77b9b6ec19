package docs

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

const sqlitePage = "docs/sqlite.md"

// writing makes a page write rows, and report each one that is acknowledged before it writes the next one.
const writing = `
	const {database} = await import('/page.js')
	const outcomes = {}
	let writes = true
	const acknowledge = id => { const request = new XMLHttpRequest(); request.open('POST', '/acknowledged?' + id, false); request.send() }
	const write = async tab => {
		for (let n = 0; writes; n++) {
			const id = tab + '-' + n
			await database.call('exec', 'INSERT INTO notes VALUES (?, ?)', [id, 'text']).then(() => { acknowledge(id); outcomes[id] = 'written' }, e => { outcomes[id] = e.code ?? String(e) })
		}
	}
	1`

// The page of docs/sqlite.md runs in three tabs. While all of them write, the serving tab is killed, three times. Each
// acknowledged row is in the database once, and no row is there twice.
func TestDatabaseInSeveralTabs(t *testing.T) {
	t.Parallel()
	acknowledged := &rows{}
	server := browser.Serve(t, databaseSite(t, acknowledged))
	chromium := browser.Start(t, browser.Options{Shell: true})
	opened := 0
	open := func() *browser.Tab {
		tab := chromium.Open(t, server.URL("/notes"))
		tab.MustEval(writing, nil)
		tab.MustEval(fmt.Sprintf("const over = write('tab%d'); 1", opened), nil)
		tab.WaitFor("Object.values(outcomes).includes('written')", browser.Limit)
		opened++
		return tab
	}
	tabs := []*browser.Tab{open(), open(), open()}
	for range 3 {
		tabs = killServing(t, tabs)
		for _, tab := range tabs {
			tab.MustEval("const before"+fmt.Sprint(opened)+" = Object.keys(outcomes).length; 1", nil)
			tab.WaitFor("Object.keys(outcomes).length > before"+fmt.Sprint(opened)+" + 5", browser.Limit)
		}
		tabs = append(tabs, open())
	}
	lost := 0
	for _, tab := range tabs {
		tab.MustEval("writes = false; await over; 1", nil)
		for id, outcome := range browser.Get[map[string]string](tab, "outcomes") {
			if outcome == "call-lost" {
				lost++
			} else {
				assert.Equal(t, "written", outcome, id)
			}
		}
	}
	counts := map[string]float64{}
	for _, row := range browser.Get[[][]any](tabs[0], "await database.call('exec', 'SELECT id, count(*) FROM notes GROUP BY id')") {
		counts[row[0].(string)] = row[1].(float64)
	}
	for id, n := range counts {
		assert.Equal(t, 1.0, n, "%s was written more than once", id)
	}
	assert.Greater(t, len(acknowledged.ids), 30)
	for _, id := range acknowledged.ids {
		assert.Equal(t, 1.0, counts[id], "%s was acknowledged and is lost", id)
	}
	t.Logf("%d rows, %d acknowledged, %d calls lost", len(counts), len(acknowledged.ids), lost)
	for _, tab := range tabs {
		tab.Quiet()
		tab.Close()
	}
}

// killServing kills the process of the tab that serves, and returns the other tabs.
func killServing(t *testing.T, tabs []*browser.Tab) []*browser.Tab {
	t.Helper()
	i := 0
	for ; !browser.Get[bool](tabs[i], "database.serving"); i++ {
		require.Less(t, i+1, len(tabs), "no tab serves")
	}
	pid, err := tabs[i].Renderer()
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	return slices.Delete(slices.Clone(tabs), i, i+1)
}

// rows are the ids of the rows that pages report.
type rows struct {
	mu  sync.Mutex
	ids []string
}

// databaseSite serves the package, SQLite, and the code of the page.
func databaseSite(t *testing.T, acknowledged *rows) *http.ServeMux {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", serving.Forward(serve(t).Address()))
	mux.Handle("/sqlite/", http.StripPrefix("/sqlite/", http.FileServerFS(os.DirFS("sqlite/node_modules/@sqlite.org/sqlite-wasm/dist"))))
	mux.HandleFunc("/notes", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>Notes</title><link rel=icon href='data:,'>"))
	})
	mux.HandleFunc("POST /acknowledged", func(_ http.ResponseWriter, r *http.Request) {
		acknowledged.mu.Lock()
		defer acknowledged.mu.Unlock()
		acknowledged.ids = append(acknowledged.ids, r.URL.RawQuery)
	})
	parts := ingredients(t, sqlitePage)
	for _, name := range []string{"database.js", "page.js"} {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) {
			static.SecurityHeaders(w.Header())
			script([]byte(parts[name]))(w, nil)
		})
	}
	return mux
}
