package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A holder whose lock is stolen gets the loss exactly once, by events, signal and onReadonly. The new holder holds and keeps
// the lock.
func TestStolen(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		holder, stealer := w.tab(t, at(host, "stolen-"+host)), w.tab(t, at(host, "stolen-"+host))
		holder.MustEval(`
			const readonly = [], aborts = []
			lease = await hf.acquireProjectLock({heartbeatIntervalMs: 250, ttlMs: 5000, onReadonly: e => readonly.push(e.reason)})
			lease.signal.addEventListener('abort', () => aborts.push(types().at(-1)))`, nil)
		stealer.MustEval("lease = await hf.acquireProjectLock({steal: true, heartbeatIntervalMs: 250, ttlMs: 5000})", nil)
		holder.WaitFor("readonly.length > 0", browser.Limit)
		stealer.WaitFor("count('renewed') >= 5", browser.Limit) // five heartbeats: events that came twice have arrived

		events := told(t, holder)
		oneLease(t, events)
		end := events[len(events)-2:]
		require.Equal(t, []string{"error", "readonly-entered"}, kinds(end))
		assert.Len(t, only(events, "error"), 1)
		assert.Len(t, only(events, "readonly-entered"), 1)
		assert.Equal(t, "lease-lost", end[0].code())
		assert.Equal(t, "renew", end[0]["operation"])
		assert.Equal(t, false, end[0]["retryable"])
		assert.Equal(t, "lease-lost", end[1].code())
		assert.Equal(t, "lease-lost", end[1]["reason"])
		assert.Equal(t, []string{"lease-lost"}, browser.Get[[]string](holder, "readonly"))
		assert.Equal(t, "lease-lost", browser.Get[string](holder, "lease.signal.reason.code"))
		aborts := browser.Get[[]string](holder, "aborts")
		require.Len(t, aborts, 1)
		assert.NotEqual(t, "error", aborts[0], "the signal aborts before any listener is called")

		events = undelayed(told(t, stealer))
		assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled", "renewed"}, kinds(events)[:4])
		assert.Empty(t, only(events, "error"))
		assert.Greater(t, browser.Get[int64](stealer, "lease.token"), browser.Get[int64](holder, "lease.token"))

		// Actions of the former holder do not harm the new one.
		assert.Equal(t, "lease-lost", browser.Get[event](holder, "await failure(hf.renewProjectLock(lease))")["code"])
		holder.MustEval("await lease.release()", nil)
		assert.Equal(t, 1, browser.Get[int](stealer, "(await locks()).held"))
		assert.False(t, browser.Get[bool](stealer, "lease.signal.aborted"))
		stealer.MustEval("await lease.release()", nil)
		free(stealer)
		holder.Quiet()
		stealer.Quiet()
	})
}

// An executor whose lease is stolen gets a signal, and its result does not count as one under the lock.
func TestStolenFromExecutor(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		holder, stealer := w.tab(t, at(host, "executor-"+host)), w.tab(t, at(host, "executor-"+host))
		holder.MustEval(`
			result = failure(hf.withProjectLock(l => new Promise(done => {
				lease = l
				l.signal.addEventListener('abort', () => done('too late'))
			})))
			1`, nil)
		holder.WaitFor("lease", browser.Limit)
		stealer.MustEval("await (await hf.acquireProjectLock({steal: true})).release()", nil)
		assert.Equal(t, "lease-lost", browser.Get[event](holder, "await result")["code"])
		assert.Equal(t, 1, browser.Get[int](holder, "count('readonly-entered')"))
		free(holder)
		holder.Quiet()
	})
}
