package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const acquires = "lease = await hf.acquireProjectLock({timeoutMs: 5000, heartbeatIntervalMs: 1000, ttlMs: 30000})"

// The site's data is cleared while a page holds the project. If another page acquires
// the project first, the holder learns that its lease is lost. If the holder renews first, the other page waits. A page whose
// file was open at the clear may lose its lease because its worker stands still: docs/guarantees.md.
func TestClearedSiteDataLeavesOneHolder(t *testing.T) {
	t.Parallel()
	b := browser.Start(t, quick)
	for i, strategy := range []string{"web-lock", "file-lock"} {
		eachHost(t, func(t *testing.T, host string) {
			for _, way := range turns(i, "header", "tools") {
				w := world{b, browser.Serve(t, clearing(t))}
				options := fmt.Sprintf("{strategy: '%s', host: '%s'}", strategy, host)
				t.Run(strategy+"/"+way, func(t *testing.T) { testOneHolder(t, w, options, way) })
			}
		})
	}
}

func testOneHolder(t *testing.T, w world, options, way string) {
	clear := func(tab *browser.Tab) {
		if way == "tools" {
			tab.Clear(w.URL(""))
		} else {
			tab.MustEval("await fetch('/clear'); null", nil)
		}
	}
	holder, other := w.tab(t, options), w.tab(t, options)

	holder.MustEval(acquires, nil)
	holder.WaitFor("count('renewed') > 0", browser.Limit)
	holder.Suspend()
	clear(other)
	other.MustEval(acquires, nil)
	holder.Continue()
	holder.WaitFor("lease.signal.aborted", browser.Limit)
	assert.Contains(t, []string{"lease-lost", "runtime-crashed"}, browser.Get[string](holder, "lease.signal.reason.code"))
	if !renews(t, other, 1) {
		return
	}

	holder.Close()
	third := w.tab(t, options)
	clear(third)
	if !renews(t, other, 2) { // in the new file
		return
	}
	assert.Equal(t, "acquire-timeout", browser.Get[string](third, "(await hf.acquireProjectLock({timeoutMs: 1500}).catch(e => e)).code"))
	assert.False(t, browser.Get[bool](other, "lease.signal.aborted"))
	other.MustEval("await lease.release()", nil)
	third.MustEval(acquires+"; await lease.release()", nil)
}

// renews waits until the tab has renewed its lease n times more. It reports false if the lease ended because the tab's worker stood still.
func renews(t *testing.T, tab *browser.Tab, n int) bool {
	goal := browser.Get[int](tab, "count('renewed')") + n
	tab.WaitFor(fmt.Sprintf("count('renewed') >= %d || lease.signal.aborted", goal), browser.Limit)
	code := browser.Get[string](tab, "lease.signal.aborted ? lease.signal.reason.code : ''")
	if code != "" {
		t.Log("the lease ended:", code)
		assert.Equal(t, "runtime-crashed", code)
	}
	return code == ""
}

// A page from before the clear acquires the project when one from after it has used it: the other waits for it.
func TestPageFromBeforeTheClearKeepsWhatItAcquiresAfterwards(t *testing.T) {
	t.Parallel()
	afterUse(t, func(t *testing.T, former, later *browser.Tab) {
		later.MustEval(acquires+"; await lease.release()", nil)
		former.MustEval(acquires, nil)
		assert.Equal(t, "acquire-timeout", browser.Get[string](later, "(await hf.acquireProjectLock({timeoutMs: 3000}).catch(e => e)).code"))
		assert.False(t, browser.Get[bool](former, "lease.signal.aborted"))
		former.MustEval("await lease.release()", nil)
		later.MustEval(acquires, nil)
	})
}

// A page from before the clear asks who holds the project: it sees the holder from after the clear, and does not take it for dead.
func TestPageFromBeforeTheClearStealsNothingByAQuestion(t *testing.T) {
	t.Parallel()
	afterUse(t, func(t *testing.T, former, later *browser.Tab) {
		later.MustEval(acquires, nil)
		assert.Equal(t, 1, browser.Get[int](former, "(await hf.inspect()).held.length"))
		assert.Equal(t, "acquire-timeout", browser.Get[string](former, "(await hf.acquireProjectLock({timeoutMs: 1500}).catch(e => e)).code"))
		assert.False(t, browser.Get[bool](later, "lease.signal.aborted"))
		later.MustEval("await lease.release()", nil)
		former.MustEval(acquires, nil)
	})
}

// A page edits, and the site's data is cleared. A page that opens then does not see its lock. It may edit until its runtime finds the record
// of the holder. Then its text is a draft, and the holder goes on.
func TestEarlyPageAfterTheClearLeavesADraft(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "early after the clear " + host
		w.saves(t, named(host, root, "Ann"), "{}", "saved")
		holder := w.earlyTab(t, named(host, root, "Ann"))
		holder.MustEval("edits(); await hf.ready; null", nil)
		holder.WaitFor("!autosave.readOnly && autosave.lease", browser.Limit)
		holder.MustEval(strings.ReplaceAll(`
			const records = async () => (await (await navigator.storage.getDirectory()).getDirectoryHandle('ROOT')).getFileHandle('.lock')
			const closed = async () => (await (await records()).createWritable()).abort().then(() => true)
			const renewed = async () => (await hf.renewProjectLock(autosave.lease), (await (await records()).getFile()).size > 0)
			null`, "ROOT", root), nil)
		holder.WaitFor("await closed().catch(() => false)", browser.Limit)
		holder.Clear(w.URL("/"))
		holder.WaitFor("await renewed().catch(() => false)", browser.Limit)
		holder.MustEval("type(' again'); await autosave.flushNow().catch(() => {}); await autosave.flushNow(); null", nil)

		later, arrive := n.gated(named(host, root, "Ben"))
		tab := w.typesEarly(t, later)
		arrive()
		tab.WaitFor("told.includes('readonly') && told.includes('draft') && autosave.readOnly", browser.Limit)
		assert.Equal(t, []string{"saved again and typed"}, browser.Get[[]string](tab, "await texts()"))
		holder.MustEval("type('!'); await autosave.flushNow(); null", nil)
		assert.Equal(t, "saved again!", browser.Get[string](holder, "await current()"))
		assert.False(t, browser.Get[bool](holder, "autosave.readOnly"))
		quiet(t, holder, tab)
	})
}

// afterUse clears the site's data after a page has used it, and runs a test with this page and a new one.
func afterUse(t *testing.T, test func(t *testing.T, former, later *browser.Tab)) {
	b := browser.Start(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		w := world{b, browser.Serve(t, clearing(t))}
		options := fmt.Sprintf("{strategy: 'file-lock', host: '%s'}", host)
		former, later := w.tab(t, options), w.tab(t, "")
		former.MustEval(`const clients = async () => {
  let folder = await navigator.storage.getDirectory()
  for (const name of ['project', '.alive']) folder = await folder.getDirectoryHandle(name)
  return Array.fromAsync(folder.keys())
}`, nil)
		former.MustEval(acquires+"; await lease.release()", nil)
		former.WaitFor("(await clients()).length === 0", browser.Limit)
		former.MustEval("await fetch('/clear'); null", nil)
		begin(later, options)
		test(t, former, later)
	})
}
