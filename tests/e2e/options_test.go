package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// invalidOpen lists options for openHoldfast, with the option that the message must name.
var invalidOpen = []struct{ options, named string }{
	{"null", "options"}, {"7", "options"}, {"'worker'", "options"},
	{"{host: 'tab'}", "host"}, {"{host: null}", "host"}, {"{host: 1}", "host"}, {"{host: Symbol('x')}", "host"}, {"{host: ['page']}", "host"},
	{"{strategy: 'none'}", "strategy"}, {"{strategy: null}", "strategy"}, {"{strategy: ['auto']}", "strategy"},
	{"{root: ''}", "root"}, {"{root: '..'}", "root"}, {"{root: 'a/../b'}", "root"}, {"{root: '/a'}", "root"}, {"{root: 'a//b'}", "root"}, {"{root: 'a/documents/=x'}", "root"},
	{"{root: null}", "root"}, {"{root: 5}", "root"}, {"{root: 5n}", "root"}, {"{root: Symbol('x')}", "root"},
	{"{ownerName: null}", "ownerName"}, {"{ownerName: 5}", "ownerName"}, {"{ownerName: () => 'x'}", "ownerName"},
	{"{baseURL: 'http://['}", "baseURL"}, {"{baseURL: null}", "baseURL"}, {"{baseURL: Symbol('x')}", "baseURL"}, {"{baseURL: 5}", "baseURL"},
	{"{baseURL: ''}", "baseURL"}, {"{baseURL: {}}", "baseURL"},
	{"{server: null}", "server"}, {"{server: 'https://a.example'}", "server"}, {"{server: {}}", "server.url"},
	{"{server: {url: 5}}", "server.url"}, {"{server: {url: 'http://['}}", "server.url"}, {"{server: {url: 'ftp://a.example'}}", "server.url"},
	{"{server: {url: '/'}, ownerName: 'x'.repeat(65)}", "ownerName"},
}

// invalidAcquire lists options for acquireProjectLock and withProjectLock.
var invalidAcquire = []struct{ options, named string }{
	{"null", "options"}, {"1", "options"}, {"'x'", "options"}, {"() => {}", "options"},
	{"{mode: 'write'}", "mode"}, {"{mode: null}", "mode"}, {"{mode: 1}", "mode"}, {"{mode: ''}", "mode"}, {"{mode: Symbol('x')}", "mode"},
	{"{ttlMs: null}", "ttlMs"}, {"{ttlMs: '5000'}", "ttlMs"}, {"{ttlMs: NaN}", "ttlMs"}, {"{ttlMs: -1}", "ttlMs"}, {"{ttlMs: 0}", "ttlMs"},
	{"{ttlMs: Infinity}", "ttlMs"}, {"{ttlMs: 5000n}", "ttlMs"}, {"{ttlMs: () => 5}", "ttlMs"}, {"{ttlMs: Symbol('x')}", "ttlMs"},
	{"{heartbeatIntervalMs: null}", "heartbeatIntervalMs"}, {"{heartbeatIntervalMs: NaN}", "heartbeatIntervalMs"},
	{"{heartbeatIntervalMs: -5}", "heartbeatIntervalMs"}, {"{heartbeatIntervalMs: 0}", "heartbeatIntervalMs"},
	{"{heartbeatIntervalMs: 25000}", "heartbeatIntervalMs"}, {"{heartbeatIntervalMs: 1000, ttlMs: 1000}", "heartbeatIntervalMs"},
	{"{ttlMs: 10000}", "heartbeatIntervalMs"}, {"{heartbeatIntervalMs: [1]}", "heartbeatIntervalMs"},
	{"{timeoutMs: null}", "timeoutMs"}, {"{timeoutMs: -1}", "timeoutMs"}, {"{timeoutMs: NaN}", "timeoutMs"}, {"{timeoutMs: '1'}", "timeoutMs"},
	{"{timeoutMs: {}}", "timeoutMs"},
	{"{backoff: null}", "backoff"}, {"{backoff: 5}", "backoff"}, {"{backoff: () => 5}", "backoff"},
	{"{backoff: {initialDelayMs: -1}}", "backoff.initialDelayMs"}, {"{backoff: {initialDelayMs: null}}", "backoff.initialDelayMs"},
	{"{backoff: {initialDelayMs: 200, maxDelayMs: 100}}", "backoff.initialDelayMs"},
	{"{backoff: {maxDelayMs: NaN}}", "backoff.maxDelayMs"}, {"{backoff: {multiplier: 0.5}}", "backoff.multiplier"},
	{"{backoff: {multiplier: '2'}}", "backoff.multiplier"}, {"{backoff: {jitter: 1.5}}", "backoff.jitter"}, {"{backoff: {jitter: -1}}", "backoff.jitter"},
	{"{backoff: {maxRetries: -1}}", "backoff.maxRetries"}, {"{backoff: {maxRetries: 1.5}}", "backoff.maxRetries"},
	{"{backoff: {maxRetries: 3n}}", "backoff.maxRetries"}, {"{backoff: {jitter: () => 0}}", "backoff.jitter"},
	{"{preferredStrategy: 'x'}", "preferredStrategy"}, {"{preferredStrategy: null}", "preferredStrategy"},
	{"{ifAvailable: 'yes'}", "ifAvailable"}, {"{ifAvailable: null}", "ifAvailable"}, {"{steal: 1}", "steal"}, {"{steal: null}", "steal"},
	{"{steal: true, mode: 'shared'}", "steal"}, {"{steal: true, ifAvailable: true}", "steal"},
	{"{signal: {}}", "signal"}, {"{signal: null}", "signal"}, {"{signal: new AbortController()}", "signal"},
	{"{onReadonly: 5}", "onReadonly"}, {"{onReadonly: null}", "onReadonly"},
	{"{path: 'a'}", "path"}, {"{path: null}", "path"}, {"{path: {}}", "path"}, {"{paths: 5}", "paths"}, {"{paths: null}", "paths"},
	{"{path: [() => 1]}", "path"}, {"{path: new Map([[1, () => 1]])}", "path"},
	{"{slots: 0}", "slots"}, {"{slots: -1}", "slots"}, {"{slots: null}", "slots"}, {"{slots: 'two'}", "slots"}, {"{slots: 1.5}", "slots"},
	{"{path: ['u', '']}", "path"}, {"{path: ['x'.repeat(2000)]}", "path"}, {"{path: ['\\ud800']}", "path"}, {"{path: ['a'], paths: [['b']]}", "path"},
	{"{paths: []}", "paths"}, {"{paths: [['a'], ['']]}", "paths"}, {"{paths: [['a'], 'b']}", "paths"}, {"{paths: [['a', 1]]}", "paths"},
	{"{slots: 1000}", "slots"}, {"{slots: 2, mode: 'shared'}", "slots"}, {"{slots: 2, steal: true}", "slots"}, {"{slots: 2, paths: [['a'], ['b']]}", "slots"},
	{"{within: 5}", "within"}, {"{within: null}", "within"}, {"{within: {leaseId: 'x'}}", "within"},
}

// invalidRequest lists arguments of holdfast.locks.request. They are refused like in navigator.locks.
var invalidRequest = []string{"", "'x'", "'x', {}", "'x', {mode: 'write'}, () => {}", "'x', {steal: true, ifAvailable: true}, () => {}",
	"'x', {steal: true, mode: 'shared'}, () => {}", "'-x', () => {}", "'x', {signal: {}}, () => {}", "'x', {}, 'callback'",
	"'x', {ifAvailable: true, signal: new AbortController().signal}, () => {}", "'x', 5, () => {}", "Symbol('x'), () => {}",
	"'-x'", "'-x', {}, 5", "'x', {steal: true, ifAvailable: true}, 5"}

// Options are checked before anything happens: the error names the option, no event fires, and no lock is requested.
func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := w.tab(t, "")
	for _, c := range invalidOpen {
		assertInvalid(t, tab, "openHoldfast("+c.options+")", c.named)
	}
	eventually(t, func() bool { return tab.Workers() == 0 }, "a worker is left")
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, at(host, "invalid-"+host))
		tab.MustEval(`
			const asked = [], real = navigator.locks.request
			if (hf) LockManager.prototype.request = function (...args) { asked.push(args[0]); return real.apply(this, args) }`, nil)
		for _, c := range invalidAcquire {
			assertInvalid(t, tab, "hf.acquireProjectLock("+c.options+")", c.named)
			assertInvalid(t, tab, "hf.withProjectLock(() => { throw new Error('ran') }, "+c.options+")", c.named)
		}
		assertInvalid(t, tab, "hf.withProjectLock('x')", "executor")
		assertInvalid(t, tab, "hf.withProjectLock(() => {}, {releaseOnError: null})", "releaseOnError")
		assertInvalid(t, tab, "hf.withProjectLock(() => {}, {releaseOnError: 1})", "releaseOnError")
		assertInvalid(t, tab, "hf.renewProjectLock({leaseId: 'x'})", "lease")
		assertInvalid(t, tab, "hf.releaseProjectLock(undefined)", "lease")
		assert.Empty(t, browser.Get[[]event](tab, "events"))
		assert.Empty(t, browser.Get[[]string](tab, "asked"))
		for _, args := range invalidRequest {
			want := browser.Get[string](tab, "LockManager.prototype.request = real; await navigator.locks.request("+args+").then(() => 'fulfilled', e => e.name)")
			got := browser.Get[string](tab, "await hf.locks.request("+args+").then(() => 'fulfilled', e => e.name)")
			assert.Equal(t, want, got, "request(%s)", args)
		}
		free(tab)
		// An undefined option counts as absent.
		tab.MustEval("await (await hf.acquireProjectLock({ttlMs: undefined, signal: undefined, backoff: {jitter: undefined}, path: [], paths: [[]], within: undefined, slots: 1})).release()", nil)
		tab.MustEval("await hf.close()", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	})
}

// A URL of a frame is a URL, too.
func TestURLOfAFrame(t *testing.T) {
	t.Parallel()
	tab := open(t, quick).tab(t, "")
	tab.MustEval("const {contentWindow: {URL: Framed}} = document.body.appendChild(document.createElement('iframe'))", nil)
	tab.MustEval("await start({baseURL: new Framed(location.origin), wasmURL: new Framed('/holdfast.wasm', location.origin)}); await hf.ready; await hf.close()", nil)
	tab.Quiet()
}

func assertInvalid(t *testing.T, tab *browser.Tab, call, named string) {
	t.Helper()
	f := browser.Get[event](tab, "await failure("+call+")")
	assert.Equal(t, "invalid-argument", f["code"], "%s: %v", call, f)
	assert.Equal(t, "ProjectLockError", f["name"], call)
	assert.Equal(t, false, f["retryable"], call)
	assert.Regexp(t, fmt.Sprintf(`^invalid-argument: ([a-z ]+ )?%s\b`, named), f["message"], call)
}

// A path that no worker can get is refused. The lock that the page took for it while the runtime was loading is free again.
func TestUnsendablePathLeavesNoLock(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	eachHost(t, func(t *testing.T, host string) {
		root := "unsendable " + host
		holdfast, arrive := n.gated(at(host, root))
		tab := w.earlyTab(t, holdfast)
		tab.MustEval("result = failure(hf.acquireProjectLock({path: Object.assign(['a'], {own: () => 1})}).then(lease => lease.release())); null", nil)
		tab.WaitFor("(await navigator.locks.query()).held.some(({name}) => name === 'holdfast:"+root+"//a')", browser.Limit)
		arrive()
		tab.MustEval("await result; null", nil)
		assert.Empty(t, browser.Get[[]string](tab, "(await navigator.locks.query()).held.map(({name}) => name).filter(name => name === 'holdfast:"+root+"//a')"))
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	})
}

// Options that are no plain data are refused by their names. A toJSON that a library gives to all arrays changes no option.
func TestOptionsThatAreNotPlainData(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "not plain " + host
		tab := w.tab(t, at(host, root))
		tab.MustEval("globalThis.round = {}; round.round = round; null", nil)
		assertInvalid(t, tab, "hf.initAutoSave(() => '', {path: ['a'], extra: round})", "extra")
		assertInvalid(t, tab, "hf.initAutoSave(() => '', {path: ['a'], lock: {extra: round}})", "lock")
		tab.MustEval("Array.prototype.toJSON = function () { return String(this) }; null", nil)
		assert.Equal(t, "holdfast:"+root+"//a/b", browser.Get[string](tab, "(await hf.acquireProjectLock({path: ['a', 'b']})).resource"))
		tab.MustEval("delete Array.prototype.toJSON; null", nil)
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	})
}

// A page edits while the runtime is loading, under options that no worker can get. It ends as a reader, and the next page edits.
func TestUnsendableOptionsOfAnEarlyEditor(t *testing.T) {
	t.Parallel()
	n, w := troubledNetwork(t)
	holdfast, arrive := n.gated(at("worker", "unsendable early"))
	tab := w.earlyTab(t, holdfast)
	tab.MustEval("globalThis.own = {one: () => 1}; own.own = own; edits({own}); null", nil)
	tab.WaitFor("!autosave.readOnly", browser.Limit)
	arrive()
	tab.WaitFor("autosave.readOnly", browser.Limit)
	tab.WaitFor("!(await navigator.locks.query()).held.some(({name}) => name === 'holdfast:unsendable early')", browser.Limit)
}

// An id of another type is refused by its name, before anything is looked for.
func TestInvalidIDs(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.editor(t, named(host, "invalid ids "+host, "Ann"), "")
		for _, id := range []string{"undefined", "null", "5", "{}", "['a']", "5n"} {
			for _, call := range []string{"read(%s)", "restore(%s)", "pin(%s, 'name')", "resolveDraft(%s, 'discard')"} {
				assertInvalid(t, tab, "autosave."+fmt.Sprintf(call, id), "id")
			}
		}
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
	})
}
