package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A tab sees all events of a lease, from the first to the last.
func TestSequence(t *testing.T) {
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		tab := w.tab(t, at(host, "sequence-"+host))
		tab.MustEval("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 300, ttlMs: 20_000})", nil)
		tab.WaitFor("count('renewed') >= 4", browser.Limit)
		tab.MustEval("await lease.release()", nil)

		events := undelayed(told(t, tab))
		beats := len(only(events, "renewed"))
		want := []string{"attempt", "acquired", "renew-scheduled"}
		for range beats {
			want = append(want, "renewed", "renew-scheduled")
		}
		require.Equal(t, append(want, "release-requested", "released"), kinds(events))
		oneLease(t, events)
		assert.Equal(t, "web-lock", events[0]["strategy"])
		assert.Equal(t, 0.0, events[0]["retry"])
		assertPace(t, events, 300)

		lease := events[1].object("lease")
		assert.Equal(t, browser.Get[event](tab, "plain(lease)"), lease, "the promise and the event give the same lease")
		assert.Equal(t, "Ann", lease["ownerName"])
		assert.Equal(t, "holdfast:sequence-"+host, lease["resource"])
		assert.Equal(t, "exclusive", lease["mode"])
		assert.Equal(t, []any{[]any{}}, lease["paths"])
		assert.Equal(t, false, lease["viaFallback"])
		assert.Equal(t, 20_000.0, lease["ttlMs"])
		assert.Equal(t, 300.0, lease["heartbeatIntervalMs"])
		assert.Equal(t, lease.number("acquiredAt")+20_000, lease.number("expiresAt"))
		tab.Quiet()
	})
}

// assertPace asserts that each renewal comes heartbeatIntervalMs after it was scheduled, or later on a busy machine, and
// that each lease states this. Times are truncated to whole milliseconds, which adds up to 1 ms. A timer may be early
// by 1 ms.
func assertPace(t *testing.T, events []event, interval float64) {
	t.Helper()
	var scheduled event
	for _, e := range events {
		switch e.kind() {
		case "renew-scheduled":
			scheduled = e
			assert.InDelta(t, interval, e.number("nextHeartbeatInMs"), 1)
			assert.InDelta(t, e.number("at")+interval, e.object("lease").number("nextHeartbeatAt"), 2)
		case "renewed":
			gap := e.number("at") - scheduled.number("at")
			assert.GreaterOrEqual(t, gap, interval-2)
			lease, before := e.object("lease"), scheduled.object("lease")
			assert.Equal(t, before["token"], lease["token"])
			assert.Equal(t, before["acquiredAt"], lease["acquiredAt"])
			assert.Greater(t, lease.number("expiresAt"), before.number("expiresAt"))
		}
	}
}

// A second tab is denied, waits and retries, and acquires when the first one releases.
func TestSequenceOfWaiting(t *testing.T) {
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		holder, waiter := w.tab(t, at(host, "waiting-"+host)), w.tab(t, at(host, "waiting-"+host))
		holder.MustEval("lease = await hf.acquireProjectLock()", nil)
		waiter.MustEval(`result = hf.acquireProjectLock({backoff: {initialDelayMs: 100, multiplier: 10, jitter: 0, maxRetries: 0}})
			.then(l => lease = l); 1`, nil)
		waiter.WaitFor("count('waiting') === 3", browser.Limit)
		assert.Equal(t, 1, browser.Get[int](waiter, "(await locks()).pending"), "it keeps its place in the queue")
		holder.MustEval("await lease.release()", nil)
		waiter.MustEval("await result", nil)

		events := told(t, waiter)
		require.Equal(t, []string{"attempt", "error", "waiting", "attempt", "error", "waiting", "attempt", "error", "waiting",
			"attempt", "acquired", "renew-scheduled"}, kinds(events))
		oneLease(t, events)
		for retry, e := range only(events, "attempt") {
			assert.Equal(t, float64(retry), e["retry"])
		}
		for i, delay := range []float64{100, 1000, 10_000} {
			denied, waiting, next := events[3*i+1], events[3*i+2], events[3*i+3]
			assert.Equal(t, "acquire-denied", denied.code())
			assert.Equal(t, "acquire", denied["operation"])
			assert.Equal(t, true, denied["retryable"])
			assert.Equal(t, float64(i+1), waiting["retry"])
			assert.Equal(t, delay, waiting["delayMs"])
			if i < 2 { // the grant ended the last wait
				assert.GreaterOrEqual(t, next.number("at")-waiting.number("at"), delay-2, "retry %d", i+1)
			}
		}
		assert.Less(t, events[9].number("at")-events[8].number("at"), 10_000.0)
		waiter.MustEval("await lease.release()", nil)
		holder.Quiet()
		waiter.Quiet()
	})
}

// With timeoutMs alone a waiter waits for that time, however many retries fit into it.
func TestWaitingForATimeLimit(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holder, waiter := w.tab(t, at("worker", "time limit")), w.tab(t, at("worker", "time limit"))
	holder.MustEval("lease = await hf.acquireProjectLock()", nil)
	waiter.MustEval("result = hf.acquireProjectLock({timeoutMs: 20000, backoff: {initialDelayMs: 10, maxDelayMs: 10}}).then(l => lease = l); result.catch(() => {}); null", nil)
	waiter.WaitFor("count('waiting') > 5 || count('readonly-entered')", browser.Limit)
	holder.MustEval("await lease.release()", nil)
	waiter.MustEval("await result; await lease.release()", nil)
}

// Jitter stays within its bounds and maxDelayMs, and varies.
func TestWaitingJitters(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holder, waiter := w.tab(t, at("worker", "jitter")), w.tab(t, at("worker", "jitter"))
	holder.MustEval("lease = await hf.acquireProjectLock()", nil)
	waiter.MustEval(`await failure(hf.acquireProjectLock({backoff: {initialDelayMs: 30, multiplier: 1, maxDelayMs: 40, maxRetries: 12}}))`, nil)
	var delays []float64
	for _, e := range only(told(t, waiter), "waiting") {
		delay := e.number("delayMs")
		delays = append(delays, delay)
		assert.GreaterOrEqual(t, delay, 15.0)
		assert.LessOrEqual(t, delay, 40.0, "without maxDelayMs, one delay in six would be longer")
	}
	require.Len(t, delays, 12)
	slices.Sort(delays)
	assert.Greater(t, len(slices.Compact(delays)), 3, "%v", delays)
}

// refusals are the ways in which an acquisition ends without a lease while another tab holds the lock.
var refusals = []struct {
	name, options string
	code          string
	sequence      []string
	after         float64 // ms until the promise is rejected, at least
}{
	{"retries spent", "{backoff: {initialDelayMs: 60, multiplier: 1, jitter: 0, maxRetries: 2}}", "acquire-timeout",
		[]string{"attempt", "error", "waiting", "attempt", "error", "waiting", "attempt"}, 119},
	{"timeoutMs", "{timeoutMs: 2000, backoff: {initialDelayMs: 600000, maxDelayMs: 600000}}", "acquire-timeout", []string{"attempt", "error", "waiting"}, 1999},
	{"timeoutMs 0", "{timeoutMs: 0}", "acquire-timeout", []string{"attempt"}, 0},
	{"ifAvailable", "{ifAvailable: true}", "acquire-denied", []string{"attempt"}, 0},
	{"signal", "{signal: (stop => (hf.addEventListener('lock:waiting', () => stop.abort(), {once: true}), stop.signal))(new AbortController())}", "aborted",
		[]string{"attempt", "error", "waiting"}, 0},
	{"signal aborted before", "{signal: AbortSignal.abort()}", "aborted", nil, 0},
}

// The call itself carries an aborted signal, so Go does not begin to wait until another message arrives.
func TestAbortedBeforeItBegan(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	holder, tab := w.tab(t, at("worker", "before")), w.tab(t, at("worker", "before"))
	holder.MustEval("lease = await hf.acquireProjectLock()", nil)
	tab.MustEval(`
		const post = Worker.prototype.postMessage
		Worker.prototype.postMessage = function (message, ...more) {
			setTimeout(() => post.call(this, message, ...more), message.kind === 'abort' ? 1000 : 0)
		}
		events.length = 0`, nil)
	got := browser.Get[event](tab, "await failure(hf.acquireProjectLock({signal: AbortSignal.abort()}))")
	assert.Equal(t, "aborted", got["code"])
	assert.NotContains(t, kinds(told(t, tab)), "waiting")
}

// Each refusal comes in time with its own code, and leaves nothing in the queue.
func TestSequenceOfRefusal(t *testing.T) {
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		holder := w.tab(t, at(host, "refused-"+host))
		holder.MustEval("lease = await hf.acquireProjectLock()", nil)
		tab := w.tab(t, at(host, "refused-"+host))
		for _, r := range refusals {
			t.Run(r.name, func(t *testing.T) {
				tab.MustEval("events.length = 0; globalThis.told = []", nil)
				got := browser.Get[event](tab, fmt.Sprintf(`await (async () => {
					const begun = now() // in the page, Go runs inside the call
					return {...await failure(hf.acquireProjectLock({...%s, onReadonly: e => told.push(plain(e))})), took: now() - begun}
				})()`, r.options))
				assert.Equal(t, r.code, got["code"], "%v", got)
				assert.Equal(t, "ProjectLockError", got["name"])
				assert.Equal(t, "acquire", got["operation"])
				assert.Equal(t, r.code != "aborted", got["retryable"])
				assert.GreaterOrEqual(t, got.number("took"), r.after)
				assert.Less(t, got.number("took"), r.after+browser.Prompt)

				events := told(t, tab)
				sequence := kinds(events)
				if r.sequence == nil { // it does not matter whether it tried at all
					sequence = slices.DeleteFunc(sequence, func(kind string) bool { return kind == "attempt" })
				}
				require.Equal(t, append(slices.Clone(r.sequence), "error", "readonly-entered"), sequence)
				oneLease(t, events)
				last, end := events[len(events)-2], events[len(events)-1]
				assert.Equal(t, r.code, last.code())
				assert.Equal(t, r.code, end.code())
				assert.Equal(t, "acquire-failed", end["reason"])
				tab.WaitFor("told.length === 1", browser.Limit)
				delete(end, "seen")
				assert.Equal(t, []event{end}, browser.Get[[]event](tab, "told"), "onReadonly gets the event")
				tab.WaitFor("(await locks()).pending === 0", browser.Limit)
			})
		}
		assert.Equal(t, 1, browser.Get[int](holder, "(await locks()).held"))
		holder.MustEval("await lease.release()", nil)
		tab.MustEval("await (await hf.acquireProjectLock({timeoutMs: 0})).release()", nil)
		tab.Quiet()
	})
}
