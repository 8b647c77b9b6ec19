package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// gagged makes the file storage answer no call while it is silent, as Chromium does after the data of a site was
// cleared while a file was being opened. Calls of that time are never answered.
const gagged = `{
	globalThis.silent ??= %t
	const gag = (prototype, ...names) => names.forEach(name => {
		const real = prototype?.[name]
		if (real) prototype[name] = function (...args) { return silent ? new Promise(() => {}) : real.apply(this, args) }
	})
	gag(globalThis.StorageManager?.prototype, 'getDirectory')
	gag(globalThis.FileSystemDirectoryHandle?.prototype, 'getDirectoryHandle', 'getFileHandle', 'removeEntry')
	gag(globalThis.FileSystemFileHandle?.prototype, 'getFile', 'createSyncAccessHandle')
	const keys = globalThis.FileSystemDirectoryHandle?.prototype.keys
	if (keys) FileSystemDirectoryHandle.prototype.keys = function () {
		const all = keys.call(this)
		return {next: () => silent ? new Promise(() => {}) : all.next(), [Symbol.asyncIterator]() { return this }}
	}
}
`

// silence is a site whose storage a test can make silent.
type silence struct {
	world
	silent atomic.Bool
}

func silenced(t *testing.T) *silence {
	s := &silence{}
	mux := pages(t, siteDir)
	mux.Handle("/api/", serving.NewWire(t, "tcp", serve(t, "--log-level", "error").Address()).Proxy())
	for _, name := range []string{"/holdfast-worker.js", "/holdfast-page.js", "/holdfast-helper.js"} {
		script, err := os.ReadFile(filepath.Join(siteDir, name))
		require.NoError(t, err)
		mux.HandleFunc(name, func(w http.ResponseWriter, _ *http.Request) {
			static.SecurityHeaders(w.Header())
			w.Header().Set("Content-Type", "text/javascript")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = fmt.Fprintf(w, gagged+"%s", s.silent.Load(), script)
		})
	}
	s.world = world{browser.Start(t, quick), browser.Serve(t, mux)}
	return s
}

// set makes the storage silent, or makes it answer again, in running and in new contexts.
func (s *silence) set(tab *browser.Tab, silent bool) {
	s.silent.Store(silent)
	script := fmt.Sprintf("globalThis.silent = %t; null", silent)
	tab.MustEval(script, nil)
	tab.EachWorkerEval(script)
}

// callMs is the maximum duration of a call: the 15 s that docs/guarantees.md promises, plus the delay of a busy
// machine.
const callMs = 15_000 + browser.Prompt

// answered runs the calls at once. It fails for each call that takes longer than the limit, in milliseconds, or has
// an unexpected code.
func answered(t *testing.T, tab *browser.Tab, limit float64, codes map[string][]string) {
	t.Helper()
	script := ""
	for call := range codes {
		script += fmt.Sprintf("[%q, failure(%s)],", call, call)
	}
	tab.MustEval("globalThis.calls = ["+script+"]; globalThis.late = Promise.all(calls.map(async ([call, answer]) => [call, await Promise.race([answer, new Promise(done => setTimeout(done, "+fmt.Sprint(limit)+", {code: 'hangs'}))])])).then(all => { globalThis.answers = all }); globalThis.answers = undefined; null", nil)
	tab.WaitFor("globalThis.answers", 3*browser.Limit)
	for _, pair := range browser.Get[[][]any](tab, "answers") {
		call, answer := pair[0].(string), pair[1].(map[string]any)
		code, _ := answer["code"].(string)
		t.Log(call, code, answer["took"], answer["message"])
		assert.Contains(t, codes[call], code, "%s: %v", call, answer)
	}
}

// While the storage does not answer, every call settles in time with the reason. Text that is typed meanwhile is
// saved once the storage answers again.
func TestSilentStorageHangsNothing(t *testing.T) {
	t.Parallel()
	parts := map[string]func(t *testing.T){}
	for _, strategy := range []string{"web-lock", "file-lock"} {
		for _, host := range []string{"worker", "page"} {
			if (strategy == "web-lock") != (host == "page") && rounds(t, 0, 1) == 0 {
				continue // half of them
			}
			parts[host+"/"+strategy] = func(t *testing.T) {
				s := silenced(t)
				options := fmt.Sprintf("{strategy: %q, host: %q, root: %q}", strategy, host, strategy+host)
				tab := s.editor(t, options, "{debounceMs: 20}")
				tab.MustEval("type('kept'); const first = await autosave.flushNow(); type(', second'); await autosave.flushNow(); null", nil)
				s.set(tab, true)
				tab.MustEval("type(', typed'); null", nil)
				answered(t, tab, callMs, map[string][]string{
					"autosave.flushNow()":                   {"write-failed", "read-only"},
					"autosave.history()":                    {"read-failed"},
					"autosave.read('current')":              {"read-failed"},
					"autosave.drafts()":                     {"read-failed"},
					"autosave.restore(first.id)":            {"read-failed", "write-failed", "read-only"},
					"autosave.pin(first.id, 'one')":         {"read-failed", "write-failed", "read-only"},
					"autosave.resolveDraft('x', 'discard')": {"read-failed"},
					"hf.inspect()":                          {"", "acquire-timeout"},
					"hf.locks.query()":                      {"", "acquire-timeout"},
					"hf.acquireProjectLock({path: ['x'], within: autosave.lease, timeoutMs: 8000})": {"", "acquire-timeout"},
					"hf.initAutoSave(() => '', {path: ['other']})":                                  {"unsupported"},
				})
				s.set(tab, false)
				tab.WaitFor("!autosave.readOnly && autosave.state().phase === 'idle'", 3*browser.Limit)
				assert.Equal(t, "kept, second, typed", browser.Get[string](tab, "current()"))

				s.set(tab, true)
				tab.MustEval("type(', at the end'); null", nil)
				answered(t, tab, callMs, map[string][]string{"autosave.dispose()": {"write-failed"}})
				answered(t, tab, callMs, map[string][]string{"hf.close()": {""}})
				s.set(tab, false)
				next := s.editor(t, options, "")
				next.WaitFor("text === 'kept, second, typed, at the end'", browser.Limit)
				next.MustEval("await hf.close()", nil)
			}
		}
	}
	atOnce(t, parts)
}

// A page that begins while its file storage does not answer can still edit if it saves on a server. Once the storage
// answers, the typed text is a draft that outlives the page.
func TestDraftsOnceSilentStorageAnswers(t *testing.T) {
	t.Parallel()
	s := silenced(t)
	eachHost(t, func(t *testing.T, host string) {
		options := fmt.Sprintf("{host: %q, root: %q, server: {url: location.origin}}", host, host)
		s.silent.Store(true)
		tab := s.editor(t, options, "{debounceMs: 60000, idleMs: 60000}")
		tab.WaitFor("!autosave.readOnly", browser.Limit)
		s.set(tab, false)
		text := "typed later, " + host
		tab.MustEval(fmt.Sprintf("type(%q); null", text), nil)
		s.Browser.WaitStored(t, text, browser.Limit)
		tab.Crash()
		next := s.editor(t, options, "")
		next.WaitFor(fmt.Sprintf("text === %q", text), browser.Limit)
		next.MustEval("await hf.close()", nil)
	})
}
