package main

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// visitors are the pages whose visits are measured. The last part of an address is its page.
func visitors() []visitor {
	all := []visitor{
		{contender: contender{name: "holdfast, worker, with hints"}, address: "worker?hints", wants: true},
		{contender: contender{name: "holdfast, page, with hints"}, address: "page?hints", wants: true},
		{contender: contender{name: "holdfast, worker"}, address: "worker", wants: true},
		{contender: contender{name: "holdfast, page"}, address: "page", wants: true},
		{contender: contender{name: "IndexedDB without a lock"}, address: "database"},
	}
	for _, kind := range slices.Sorted(maps.Keys(packages)) {
		all = append(all, visitor{contender: contender{name: packages[kind].name, rare: true}, address: kind})
	}
	return all
}

type visitor struct {
	contender
	address string
	wants   bool // has targets
}

// speed is a network and processor under which visits are measured, with the target of each measured time.
type speed struct {
	name string
	line browser.Line
	max  map[string]float64
}

// visits measures first and later visits of a page with an editor: the time from the navigation until the page shows
// what was saved, until the user may type, and until the first text is saved; and how much a first visit transfers.
func (r *report) visits(open func() *browser.Tab, url func(path string) string, rounds int) {
	v := &visiting{open: open, url: url, all: visitors()}
	for i, l := range []speed{
		{"good line", browser.Line{}, map[string]float64{"editable": 150}},
		{"Fast 3G, processor at a quarter", browser.Fast3G, map[string]float64{"preview": 700, "editable": 1500}},
	} {
		for _, one := range v.all {
			v.visit(browser.Line{}, one, false) // there is something to preview
		}
		for _, cache := range []string{"cold", "warm"} {
			samples := v.samples(l.line, cache == "warm", rounds)
			r.addVisits(l, cache, v.all, samples)
			if i == 0 && cache == "cold" {
				r.addTransfers(v.all, samples["KB"])
			}
		}
	}
}

// visiting opens the pages of visits, each in a tab of its own.
type visiting struct {
	open func() *browser.Tab
	url  func(path string) string
	all  []visitor
	n    int // number of visits so far
}

// visit returns the figures of one visit: times in milliseconds, and KB. With warm, the browser's cache knows the page.
func (v *visiting) visit(line browser.Line, by visitor, warm bool) map[string]float64 {
	tab := v.open()
	defer tab.Close()
	v.n++
	page := v.url(fmt.Sprintf("/visit/%d/%s", v.n, by.address))
	if warm {
		tab.Navigate(page)
		tab.WaitFor("at.KB", browser.Limit)
	}
	tab.Over(line)
	tab.Navigate(page)
	tab.WaitFor("at.KB", browser.Limit)
	return browser.Get[map[string]float64](tab, "at")
}

// samples returns the figures of all rounds, by what was measured and by contender.
func (v *visiting) samples(line browser.Line, warm bool, rounds int) map[string]map[string][]float64 {
	samples := map[string]map[string][]float64{}
	for round := range rounds {
		for _, one := range v.all {
			if one.skips(round) {
				continue
			}
			for what, figure := range v.visit(line, one, warm) {
				if samples[what] == nil {
					samples[what] = map[string][]float64{}
				}
				samples[what][one.name] = append(samples[what][one.name], figure)
			}
		}
	}
	return samples
}

// addVisits reports the times. Only Holdfast has targets.
func (r *report) addVisits(l speed, cache string, all []visitor, samples map[string]map[string][]float64) {
	for _, what := range []string{"preview", "editable", "saved"} {
		var measured []contender
		for _, v := range all {
			if v.wants {
				v.target = l.max[what]
			}
			if len(samples[what][v.name]) > 0 {
				measured = append(measured, v.contender)
			}
		}
		r.addTimes(fmt.Sprintf("%s, %s: %s", l.name, cache, what), measured, samples[what])
	}
}

// addTransfers reports how much a first visit of each page transfers.
func (r *report) addTransfers(all []visitor, transferred map[string][]float64) {
	for _, v := range all {
		values := transferred[v.name]
		r.Rows = append(r.Rows, row{What: "a first visit transfers", Who: v.name, Unit: "KB", Median: median(values), Values: values})
	}
}

// visitPage is the page of a visit, with hints, a kind and the script of that kind.
const visitPage = `<!doctype html><title>visit</title><link rel=icon href='data:,'>%s<script type=module>
globalThis.at = {}
const kind = '%s', now = () => performance.now()
const counted = () => {
	at.KB = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
		.reduce((all, {transferSize}) => all + transferSize, 0) / 1024
}
%s</script>`

const holdfastScript = `
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
	counted()
})`

const databaseScript = `
const asked = indexedDB.open('visit')
asked.onupgradeneeded = () => asked.result.createObjectStore('texts')
asked.onsuccess = () => {
	const db = asked.result, texts = () => db.transaction('texts', 'readwrite').objectStore('texts')
	texts().get('text').onsuccess = ({target}) => {
		globalThis.text = target.result ?? ''
		at.editable = now()
		const put = texts().put('typed ' + at.editable, 'text')
		put.transaction.oncomplete = () => {
			at.saved = now()
			counted()
		}
	}
}`

const packageScript = `
globalThis.usable = () => {
	at.editable = now()
	counted()
}
await import('./' + kind + '.js')`

// visited serves the pages of visits, each below a path of its own, so that the browser's cache does not know it.
func visited(mux *http.ServeMux, files, others http.Handler) {
	mux.HandleFunc("/visit/{n}/{kind}", func(w http.ResponseWriter, q *http.Request) {
		kind, script, hints := q.PathValue("kind"), holdfastScript, ""
		if name, _, file := strings.Cut(kind, "."); file {
			again := q.Clone(q.Context())
			again.URL.Path = "/" + kind
			again.RemoteAddr = "192.0.2.1:1" // other machines get compressed files
			if _, other := packages[name]; other || path.Ext(kind) == ".wasm" && kind != "holdfast.wasm" {
				others.ServeHTTP(w, again)
			} else {
				files.ServeHTTP(w, again)
			}
			return
		}
		if q.URL.Query().Has("hints") {
			hints = hinted(kind)
		}
		if kind == "database" {
			script = databaseScript
		} else if _, other := packages[kind]; other {
			script = packageScript
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, visitPage, hints, kind, script)
	})
}

// hinted returns the hints for a page with this host that docs/guide.md recommends, without the Wasm: on a slow line it
// would delay the modules.
func hinted(host string) string {
	if host == "worker" {
		host = "host"
	}
	hints := "<link rel=modulepreload href=holdfast.js>"
	for _, module := range []string{host, "autosave", "preview", "early"} {
		hints += "<link rel=modulepreload href=holdfast-" + module + ".js>"
	}
	return hints
}
