package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// withFaults loads the tab's page again, with the published script for faults before its own scripts.
func withFaults(t *testing.T, tab *browser.Tab) {
	t.Helper()
	script, err := os.ReadFile("../../dist/testing-page.js")
	require.NoError(t, err)
	tab.BypassCSP()
	tab.Before(string(script))
	tab.Reload()
}

// A test of an application asks for faults in a real page, with files or with IndexedDB.
func TestFaultsInAPage(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{"opfs", "indexeddb"} {
		t.Run(storage, func(t *testing.T) {
			before := ""
			if storage == "indexeddb" {
				before = noFiles
			}
			w := world{browser.Start(t, quick), browser.Serve(t, served(t, before))}
			eachHost(t, func(t *testing.T, host string) { testFaults(t, w, host, storage) })
		})
	}
}

func testFaults(t *testing.T, w world, host, storage string) {
	root := "faults " + host
	tab := w.Open(t, w.URL("/blank"))
	withFaults(t, tab)
	refused := browser.Get[string](tab, "await holdfastFaults.failWrites(1).then(() => 'done', (error) => error.message)")
	assert.Contains(t, refused, "no worker of Holdfast has started")
	begin(tab, named(host, root, "Ann"))
	beginEditing(tab, "{debounceMs: 60000, idleMs: 60000, journalMs: 60000}")
	assert.Equal(t, storage, browser.Get[string](tab, "autosave.state().storage"))

	failed := func() string {
		return browser.Get[string](tab, "await autosave.flushNow().then(() => 'saved', (error) => error.code)")
	}
	tab.MustEval("type('one'); await holdfastFaults.failWrites(1); null", nil)
	assert.NotEqual(t, "saved", failed())
	tab.WaitFor("await autosave.flushNow().then(async () => await current() === 'one', () => false)", browser.Limit)
	tab.MustEval("type(', two'); await holdfastFaults.fillStorage(); null", nil)
	assert.Equal(t, "quota-exceeded", failed())
	tab.MustEval("await holdfastFaults.fillStorage(Infinity); null", nil)
	assert.Equal(t, "saved", failed())
	assert.Equal(t, "one, two", browser.Get[string](tab, "current()"))

	tab.MustEval("await holdfastFaults.steal('"+root+"'); null", nil)
	tab.WaitFor("heard('readonly').at(-1)?.error.code === 'lease-lost'", browser.Limit)
	assert.True(t, browser.Get[bool](tab, "autosave.readOnly"))
	tab.MustEval("holdfastFaults.release('"+root+"')", nil)
	tab.WaitFor("!autosave.readOnly", browser.Limit)

	tab.MustEval("await holdfastFaults.expire(); null", nil)
	tab.WaitFor("heard('readonly').at(-1).error.code === 'lease-stale'", browser.Limit)
	tab.WaitFor("!autosave.readOnly", browser.Limit)
	tab.MustEval("type(', three'); await autosave.flushNow(); null", nil)
	assert.Equal(t, "one, two, three", browser.Get[string](tab, "current()"))

	if storage == "opfs" {
		took := browser.Get[float64](tab, `await (async () => {
			await holdfastFaults.delayFiles(500);
			const from = performance.now();
			for (const text of ['a', 'b', 'c']) { // some files are open already
				type(text);
				await autosave.flushNow();
			}
			return performance.now() - from;
		})()`)
		assert.GreaterOrEqual(t, took, 500.0)
		tab.MustEval("await holdfastFaults.delayFiles(0); null", nil)
	}
	tab.MustEval("await hf.close()", nil)
}

// A page that is cut off loses its lease like one without a network, and gets another one afterwards.
func TestFaultsCutTheServer(t *testing.T) {
	t.Parallel()
	server := serve(t, "--lock-ttl", "3s")
	b := profiles(t, 1)[0]
	for _, host := range []string{"worker", "page"} {
		t.Run(host, func(t *testing.T) {
			tab := b.Open(t, server.URL+"/room.html")
			withFaults(t, tab)
			begin(tab, "{host: '"+host+"', ownerName: 'Ann', server: {url: location.origin}}")
			const lease = "lease = await hf.acquireProjectLock({ttlMs: 3000, heartbeatIntervalMs: 500, backoff: {initialDelayMs: 200}}); "
			tab.MustEval(lease+`
				reply = (url) => fetch(url).then((r) => r.status, (error) => error.message);
				socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws');
				await new Promise((done, failed) => { socket.onopen = done; socket.onerror = failed; });
				ended = new Promise((done) => { socket.onclose = () => done('closed'); });
				null`, nil)
			assert.Equal(t, "200", browser.Get[string](tab, "String(await reply('/room.html'))"))
			tab.MustEval("await holdfastFaults.cutServer(); null", nil)
			assert.Contains(t, browser.Get[string](tab, "String(await reply('/room.html'))"), "cut the server")
			assert.Equal(t, "closed", browser.Get[string](tab, "await ended"))
			tab.WaitFor("lease.signal.aborted", browser.Limit)
			assert.Equal(t, "lease-stale", browser.Get[string](tab, "lease.signal.reason.code"))

			tab.MustEval("await holdfastFaults.cutServer(false); "+lease+"null", nil)
			assert.Equal(t, "200", browser.Get[string](tab, "String(await reply('/room.html'))"))
			tab.MustEval("await lease.release(); await hf.close()", nil)
		})
	}
}
