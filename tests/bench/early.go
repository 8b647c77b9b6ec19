package main

import (
	"fmt"
	"net/http"
	"path"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// visits measures first and later visits of a page with an editor: the time from the navigation until the page shows
// what was saved, until the person may type, and until the first text is saved.
func (r *report) visits(open func() *browser.Tab, url func(path string) string, rounds int) {
	lines := []struct {
		name string
		line browser.Line
		max  map[string]float64
	}{
		{"good line", browser.Line{}, map[string]float64{"editable": 150}},
		{"Fast 3G, processor at a quarter", browser.Fast3G, map[string]float64{"preview": 700, "editable": 1500}},
	}
	contenders := []contender{{name: "holdfast, worker"}, {name: "holdfast, page"}, {name: "IndexedDB without a lock"}}
	kinds := map[string]string{"holdfast, worker": "worker", "holdfast, page": "page", "IndexedDB without a lock": "database"}
	n := 0
	visit := func(line browser.Line, c contender, warm bool) map[string]float64 {
		tab := open()
		defer tab.Close()
		n++
		if warm {
			tab.Navigate(url(fmt.Sprintf("/visit/%d/%s", n, kinds[c.name])))
			tab.WaitFor("at.saved", browser.Limit)
		}
		tab.Over(line)
		tab.Navigate(url(fmt.Sprintf("/visit/%d/%s", n, kinds[c.name])))
		tab.WaitFor("at.saved", browser.Limit)
		return browser.Get[map[string]float64](tab, "at")
	}
	for _, l := range lines {
		for _, c := range contenders {
			visit(browser.Line{}, c, false) // there is something to preview
		}
		for _, cache := range []string{"cold", "warm"} {
			samples := map[string]map[string][]float64{}
			for range rounds {
				for _, c := range contenders {
					for what, ms := range visit(l.line, c, cache == "warm") {
						if samples[what] == nil {
							samples[what] = map[string][]float64{}
						}
						samples[what][c.name] = append(samples[what][c.name], ms)
					}
				}
			}
			for _, what := range []string{"preview", "editable", "saved"} {
				limited := make([]contender, 0, len(contenders))
				for _, c := range contenders {
					if c.target = l.max[what]; kinds[c.name] == "database" {
						c.target = 0
					}
					if len(samples[what][c.name]) > 0 {
						limited = append(limited, c)
					}
				}
				r.addTimes(fmt.Sprintf("%s, %s: %s", l.name, cache, what), limited, samples[what])
			}
		}
	}
}

// visited serves the pages of visits, each below a path of its own, so that the browser's cache does not know it.
func visited(mux *http.ServeMux, files http.Handler) {
	const page = `<!doctype html><title>visit</title><link rel=icon href='data:,'><script type=module>globalThis.at = {}; const kind = '%s', now = () => performance.now()
%s</script>`
	const holdfast = `
import {createHoldfast} from './holdfast.js'
let text = ''
const autosave = createHoldfast({host: kind, root: 'visit ' + kind}).createAutoSave(() => text)
autosave.addEventListener('autosave:preview', () => { at.preview = now() })
autosave.addEventListener('autosave:editable', async () => {
	at.editable = now()
	text = 'typed ' + at.editable
	autosave.markDirty()
	await autosave.flushNow()
	at.saved = now()
})`
	const database = `
const asked = indexedDB.open('visit')
asked.onupgradeneeded = () => asked.result.createObjectStore('texts')
asked.onsuccess = () => {
	const db = asked.result, texts = () => db.transaction('texts', 'readwrite').objectStore('texts')
	texts().get('text').onsuccess = ({target}) => {
		globalThis.text = target.result ?? ''
		at.editable = now()
		const put = texts().put('typed ' + at.editable, 'text')
		put.transaction.oncomplete = () => { at.saved = now() }
	}
}`
	mux.HandleFunc("/visit/{n}/{kind}", func(w http.ResponseWriter, q *http.Request) {
		script := holdfast
		switch kind := q.PathValue("kind"); {
		case path.Ext(kind) != "":
			again := q.Clone(q.Context())
			again.URL.Path = "/" + kind
			again.RemoteAddr = "192.0.2.1:1" // other machines get compressed files
			files.ServeHTTP(w, again)
			return
		case kind == "database":
			script = database
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, page, q.PathValue("kind"), script)
	})
}
