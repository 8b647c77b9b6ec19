// Package wpt runs the public web-platform-tests for web-locks against holdfast.locks, with both strategies. The
// suite is not part of this repository: make wpt fetches it, or -suite names a checkout.
package wpt

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

var (
	root   = flag.String("suite", "", "a checkout of web-platform-tests, with web-locks and resources")
	rounds = flag.Int("rounds", 20, "how often each test runs, cold and warm")
	only   = flag.String("only", "*", "the files to run, as a pattern")
)

const (
	interfaces = "it tests the browser's own interfaces"
	lifetimes  = "it tests the lifetimes of documents, and other origins, which the browser alone sees"
	noHandles  = "sync access handles exist in dedicated workers alone, and these workers cannot start one"
)

// unstable sometimes fails with the browser's own locks, without Holdfast. It does not fail the run if the browser
// orders the requests.
const unstable = "query-ordering.https.html"

// outside lists the files that do not concern the library, with the reason.
var outside = map[string]string{
	"idlharness.https.any.js":                    interfaces,
	"secure-context.https.any.js":                interfaces,
	"non-secure-context.any.js":                  interfaces,
	"storage-buckets.tentative.https.any.js":     "it asks a storage bucket of the browser for locks",
	"clientids.https.html":                       "it compares the client's name with the one that a service worker sees",
	"non-fully-active.https.html":                lifetimes,
	"opaque-origin.https.html":                   lifetimes,
	"partitioned-web-locks.tentative.https.html": lifetimes,
}

// TestWebPlatformTests runs each test of the suite in every context of its header, repeatedly, with a loading runtime
// and with a ready one, while another page keeps the machine and its storage busy.
func TestWebPlatformTests(t *testing.T) {
	if *root == "" {
		t.Skip("no -suite; run make wpt")
	}
	found, err := filepath.Glob(filepath.Join(*root, "web-locks", *only+".*"))
	require.NoError(t, err)
	var files []string
	for _, file := range found {
		name := filepath.Base(file)
		if kind := filepath.Ext(name); kind != ".js" && kind != ".html" {
			continue
		}
		if why := outside[name]; why != "" {
			t.Logf("%s is left out: %s", name, why)
			continue
		}
		files = append(files, name)
	}
	require.NotEmpty(t, files, "there are no tests in %s/web-locks", *root)
	chromium := browser.Start(t, browser.Options{})
	var table report
	for _, l := range []locks{
		{"", "none", false},
		{"web-lock", "worker", false}, {"web-lock", "page", false},
		{"file-lock", "worker", false}, {"file-lock", "page", false},
		{"file-lock", "worker", true}, {"file-lock", "page", true},
	} {
		t.Run(l.name()+"/"+l.Host, func(t *testing.T) {
			(&runner{t: t, browser: chromium, suite: &suite{root: *root, locks: l}, report: &table}).run(files)
		})
	}
	t.Log("\n" + table.String())
}

// runner runs the suite against one kind of locks.
type runner struct {
	t       *testing.T
	browser *browser.Browser
	suite   *suite
	report  *report
	server  *browser.Server
	runs    int
}

func (r *runner) run(files []string) {
	r.server = r.suite.serve(r.t)
	load := r.browser.Open(r.t, r.server.OtherURL("/resources/testharness.js"))
	load.MustEval(busy, nil)
	var places [][2]string // a file and a context
	for _, file := range files {
		contexts, err := r.suite.contexts(file)
		require.NoError(r.t, err)
		for _, context := range contexts {
			if why := r.impossible(context); why == "" {
				places = append(places, [2]string{file, context})
			} else {
				r.t.Logf("%s is left out in %s: %s", file, context, why)
			}
		}
	}
	for _, warm := range []bool{false, true} {
		for range *rounds {
			for _, place := range places {
				r.once(place[0], place[1], warm)
			}
		}
	}
	load.Close()
}

// impossible returns the reason why a context cannot have these locks, or "".
func (r *runner) impossible(context string) string {
	if shared := context == "sharedworker" || context == "serviceworker"; shared && r.suite.locks.Strategy == "file-lock" {
		return noHandles
	}
	return ""
}

// once runs a file.
func (r *runner) once(file, context string, warm bool) {
	r.runs++
	r.suite.begin(warm, fmt.Sprintf("wpt %s %d", file, r.runs))
	tab := r.browser.Open(r.t, r.server.URL(r.suite.address(file, context)))
	defer tab.Close()
	if err := tab.Wait("globalThis.results", 6*browser.Limit); err != nil { // the limit of the suite
		assert.Fail(r.t, "no results", "%s in %s, warm %v: %v; crashes %v", file, context, warm, err, tab.Crashes())
		return
	}
	results := browser.Get[[]result](tab, "results")
	assert.NotEmpty(r.t, results, "%s in %s", file, context)
	start := map[bool]string{false: "cold", true: "warm"}[warm]
	row := r.report.row(context, r.suite.locks)
	row.tests[file] = len(results)
	tally := row.starts[warm]
	for _, result := range results {
		tally.runs++
		switch {
		case result.Status == 0:
			tally.passed++
		case file == unstable && !r.suite.locks.alone:
			r.t.Logf("%s in %s, %s: %s: %s", file, context, start, result.Name, result.Message)
		default:
			assert.Fail(r.t, result.Name, "%s in %s, %s: %s", file, context, start, result.Message)
		}
	}
}

// busy uses half of a processor, and keeps storage writing.
const busy = `
	const source = "setInterval(() => { for (const until = performance.now() + 20; performance.now() < until;); }, 40)"
	const worker = new Worker(URL.createObjectURL(new Blob([source])))
	;(async () => {
		const folder = await navigator.storage.getDirectory()
		for (let i = 0;; i++) {
			const stream = await (await folder.getFileHandle('busy' + i % 4, {create: true})).createWritable()
			await stream.write(new Uint8Array(1 << 16))
			await stream.close()
		}
	})()
	null`
