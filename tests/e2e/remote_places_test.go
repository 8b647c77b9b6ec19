package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const (
	// acquired makes a page store leases by name.
	acquired = `globalThis.leases = {}
		globalThis.take = async (name, options) => (leases[name] = await hf.acquireProjectLock(options)).token
		globalThis.give = name => leases[name].release(); null`
	// waitsOnServer says whether a request for a place of the project waits on the server.
	waitsOnServer = `(await (await fetch('/api/locks?path=documents/project', {credentials: 'omit'})).json()).waiters.length > 0`
	// onServerAt is the server's answer about the places of the project, for an anonymous client.
	onServerAt = `(await (await fetch('/api/locks?path=documents/project', {credentials: 'omit'})).json()).holders
		.map(h => [h.holder_name, h.mode, h.paths.map(p => p.slice(2).join('/'))].join(' ')).sort()`
)

// reader is a member that stores its leases by name.
func (s server) reader(t *testing.T, b *browser.Browser, host, name string) *browser.Tab {
	t.Helper()
	tab := s.member(t, b, host, name)
	tab.MustEval(acquired, nil)
	return tab
}

func take(tab *browser.Tab, name, options string) int64 {
	return browser.Get[int64](tab, "await take('"+name+"', "+options+")")
}

// Two browsers share one tree: places, shared places, and several at once.
func TestPlacesBetweenBrowsers(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for _, host := range []string{"worker", "page"} {
		t.Run(host, func(t *testing.T) {
			browsers := profiles(t, 2)
			ann, bob := server.reader(t, browsers[0], host, "Ann"), server.reader(t, browsers[1], host, "Bob")

			first := take(ann, "one", "{path: ['book', 'ch/1']}")
			assert.Equal(t, "remote", browser.Get[string](ann, "leases.one.strategy"))
			assert.Equal(t, server.URL+"/api/documents/project//book/ch%2F1", browser.Get[string](ann, "leases.one.resource"))
			for _, options := range []string{"{path: ['book', 'ch/1'], ifAvailable: true}", "{path: ['book'], ifAvailable: true}", "{ifAvailable: true}",
				"{paths: [['book', 'ch 2'], ['book', 'ch/1']], ifAvailable: true}", "{path: ['book', 'ch/1'], mode: 'shared', ifAvailable: true}"} {
				denied := browser.Get[failed](bob, "await failure(hf.acquireProjectLock("+options+"))")
				assert.Equal(t, "acquire-denied", denied.Code, options)
			}
			second := take(bob, "two", "{path: ['book', 'ch 2']}")
			assert.Greater(t, second, first)
			assert.Equal(t, []string{"Ann exclusive book/ch/1", "Bob exclusive book/ch 2"}, browser.Get[[]string](ann, onServerAt))

			// The server answers a waiter at once.
			bob.MustEval("result = take('one', {path: ['book', 'ch/1'], backoff: {maxRetries: 0}}).then(now); null", nil)
			bob.WaitFor("count('waiting') > 0", browser.Limit)
			released := browser.Get[float64](ann, "await give('one'), now()")
			assert.Less(t, browser.Get[float64](bob, "await result")-released, browser.Prompt, "from the release to the grant")
			assert.Greater(t, browser.Get[int64](bob, "leases.one.token"), second)
			bob.MustEval("await give('one'); await give('two'); null", nil)

			// Shared leases admit each other and exclude all others.
			take(ann, "read", "{path: ['book'], mode: 'shared'}")
			take(bob, "read", "{path: ['book'], mode: 'shared'}")
			take(ann, "all", "{mode: 'shared'}")
			take(bob, "all", "{mode: 'shared'}")
			assert.Len(t, browser.Get[[]string](ann, onServerAt), 4)
			for _, options := range []string{"{path: ['book'], ifAvailable: true}", "{ifAvailable: true}"} {
				assert.Equal(t, "acquire-denied", browser.Get[failed](ann, "await failure(hf.acquireProjectLock("+options+"))").Code)
			}
			ann.MustEval("await give('read'); await give('all'); null", nil)
			bob.MustEval("await give('read'); await give('all'); null", nil)
			take(ann, "whole", "{ifAvailable: true}")
			ann.MustEval("await give('whole')", nil)
			assert.Empty(t, browser.Get[[]string](ann, onServerAt))
		})
	}
}

func TestSlotsBetweenBrowsers(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann, bob := server.reader(t, browsers[0], "worker", "Ann"), server.reader(t, browsers[1], "page", "Bob")
	take(ann, "a", "{path: ['pool'], slots: 3}")
	take(bob, "b", "{path: ['pool'], slots: 3}")
	take(ann, "c", "{path: ['pool'], slots: 3}")
	assert.Equal(t, []int{0, 2, 1}, append(browser.Get[[]int](ann, "[leases.a.slot, leases.c.slot]"), browser.Get[int](bob, "leases.b.slot")))
	assert.Equal(t, "acquire-denied", browser.Get[failed](bob, "await failure(hf.acquireProjectLock({path: ['pool'], slots: 3, ifAvailable: true}))").Code)
	bob.MustEval("result = take('d', {path: ['pool'], slots: 3, backoff: {maxRetries: 0}}); null", nil)
	bob.WaitFor("count('waiting') > 0", browser.Limit)
	ann.MustEval("await give('c')", nil)
	bob.MustEval("await result; null", nil)
	assert.Equal(t, 2, browser.Get[int](bob, "leases.d.slot"))
}

// The enclosing lease counts on the server too; nothing waits for itself there.
func TestWithinBetweenBrowsers(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann, bob := server.reader(t, browsers[0], "worker", "Ann"), server.reader(t, browsers[1], "worker", "Bob")
	outer := take(ann, "outer", "{path: ['book']}")
	inner := take(ann, "inner", "{path: ['book', 'ch 1'], within: leases.outer, ifAvailable: true}")
	assert.Greater(t, inner, outer)
	assert.Greater(t, take(ann, "read", "{path: ['book'], mode: 'shared', within: leases.inner, ifAvailable: true}"), inner)
	take(ann, "beside", "{paths: [['book', 'ch 2'], ['notes']], within: leases.outer, ifAvailable: true}")
	assert.Equal(t, []string{"Ann exclusive book", "Ann exclusive notes"}, browser.Get[[]string](ann, onServerAt))
	assert.Equal(t, "acquire-denied", browser.Get[failed](bob, "await failure(hf.acquireProjectLock({path: ['notes'], ifAvailable: true}))").Code)
	assert.Equal(t, "reentrant", browser.Get[failed](ann, "await failure(hf.acquireProjectLock({path: ['book'], within: leases.inner}))").Code)
	ann.MustEval("await give('outer')", nil)
	ann.WaitFor("leases.inner.signal.aborted && leases.beside.signal.aborted", browser.Limit)
	take(bob, "all", "{backoff: {maxRetries: 0}}")

	slot := "{path: ['pool'], slots: 2}"
	bob.MustEval("await give('all')", nil)
	take(bob, "slot", slot)
	assert.Equal(t, "unsupported", browser.Get[failed](bob, "await failure(hf.acquireProjectLock({path: ['pool', 'x'], within: leases.slot}))").Code)

	// Below the lease of AutoSave, which is the document's.
	bob.MustEval("await give('slot'); globalThis.saver = await hf.initAutoSave(() => 'text'); null", nil)
	bob.WaitFor("saver.lease", browser.Limit)
	assert.Greater(t, take(bob, "chapter", "{path: ['book'], within: saver.lease}"), browser.Get[int64](bob, "saver.lease.token"))
	bob.MustEval("await give('chapter'); await saver.dispose(); null", nil)
}

// Machines wait for each other, each inside the place that the other one wants: one of them gets the error.
func TestADeadlockBetweenBrowsers(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann, bob := server.reader(t, browsers[0], "worker", "Ann"), server.reader(t, browsers[1], "worker", "Bob")
	take(ann, "own", "{path: ['a']}")
	take(bob, "own", "{path: ['b']}")
	ann.MustEval("result = take('other', {path: ['b'], within: leases.own, backoff: {maxRetries: 0}}); null", nil)
	ann.WaitFor(waitsOnServer, browser.Limit) // her event comes before the server has her request
	bob.MustEval("result = failure(take('other', {path: ['a'], within: leases.own, backoff: {maxRetries: 0}})); null", nil)
	assert.Equal(t, "deadlock", browser.Get[string](bob, "(await result).code"), "the waiter that began last")
	bob.MustEval("await give('own')", nil)
	assert.Positive(t, browser.Get[int64](ann, "await result"))
}

// A tab that dies leaves its places on the server. The next tab of the same browser takes them over at once.
func TestTheNextTabTakesOverAPlace(t *testing.T) {
	t.Parallel()
	server := serve(t)
	b := profiles(t, 1)[0]
	first, second := server.reader(t, b, "worker", "Ann"), server.reader(t, b, "worker", "Ann")
	token := take(first, "it", "{path: ['book', 'ch 1']}")
	second.MustEval("result = take('it', {path: ['book'], backoff: {maxRetries: 0}}).then(now); null", nil)
	second.WaitFor("count('waiting') > 0", browser.Limit)
	closed := second.Now()
	first.Close()
	assert.Less(t, browser.Get[float64](second, "await result")-closed, browser.Prompt)
	assert.Greater(t, browser.Get[int64](second, "leases.it.token"), token)
	assert.Equal(t, []string{"Ann exclusive book"}, browser.Get[[]string](second, onServerAt))
}

// During a short disconnection a place is kept, even through a restart of the server.
func TestAPlaceOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann, bob := server.reader(t, browsers[0], "worker", "Ann"), server.reader(t, browsers[1], "worker", "Bob")
	take(ann, "it", "{path: ['book'], heartbeatIntervalMs: 500, backoff: {initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0}}") // for 30 s, longer than a restart takes
	ann.WaitFor("count('renewed') > 0", browser.Limit)

	address := server.Address()
	server.Stop()
	ann.WaitFor("events.some(e => e.type === 'lock:error' && e.error.code === 'renew-failed')", browser.Limit)
	server.Start(address)
	ann.WaitFor("events.findLastIndex(e => e.type === 'lock:renewed') > events.findLastIndex(e => e.type === 'lock:error')", browser.Limit)
	assert.Equal(t, "acquire-denied", browser.Get[failed](bob, "await failure(hf.acquireProjectLock({path: ['book', 'ch 1'], ifAvailable: true}))").Code)
}

// After a disconnection longer than the TTL a place is lost.
func TestAPlaceIsCutOffFromTheServer(t *testing.T) {
	t.Parallel()
	server := serve(t, "--lock-ttl", "3s")
	browsers := profiles(t, 2)
	ann, bob := server.reader(t, browsers[0], "worker", "Ann"), server.reader(t, browsers[1], "worker", "Bob")
	const options = "{path: ['book'], ttlMs: 3000, heartbeatIntervalMs: 500, backoff: {initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0}}"
	take(ann, "it", options)
	address := server.Address()
	server.Stop()
	ann.WaitFor("count('readonly-entered') === 1", browser.Limit)
	assert.Equal(t, "lease-stale", browser.Get[string](ann, "leases.it.signal.reason.code"))
	server.Start(address)
	take(bob, "it", options)
	assert.Equal(t, []string{"Bob exclusive book"}, browser.Get[[]string](bob, onServerAt))
}
