package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// sleeps are ways to outlive the TTL without noticing it.
var sleeps = []struct {
	name       string
	stop, wake func(*browser.Tab)
}{
	{"frozen", (*browser.Tab).Freeze, (*browser.Tab).Resume},
	{"suspended", (*browser.Tab).Suspend, (*browser.Tab).Continue},
}

// A holder that slept past its TTL reports lease-stale before anything else, never a renewal, and releases. This
// holds even if its lock was stolen meanwhile, or if a waiter took over because the record had expired and nobody
// answered.
func TestSleepPastTTL(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		w := open(t, whole)
		for _, sleep := range sleeps {
			for _, steal := range []bool{false, true} {
				name := sleep.name
				if steal {
					name += " and stolen"
				}
				t.Run(name, func(t *testing.T) {
					root := fmt.Sprintf("%s-%s-%v", sleep.name, host, steal)
					other, holder := w.tab(t, at(host, root)), w.tab(t, at(host, root))
					holder.MustEval(`
						globalThis.reasons = []
						lease = await hf.acquireProjectLock({heartbeatIntervalMs: 500, ttlMs: 3000, onReadonly: e => reasons.push(e.reason)})`, nil)
					holder.WaitFor("count('renewed') >= 2", browser.Limit)
					if !steal {
						waits(other)
					}

					sleep.stop(holder)
					// A worker continues for a moment after its page was frozen. A sleeping page answers nobody.
					other.WaitFor("lease || (await hf.inspect()).held.every(h => h.leaseId === undefined)", browser.Limit)
					asleep := other.Now()
					if steal {
						other.MustEval("const mine = await hf.acquireProjectLock({steal: true})", nil)
						waits(other)
					}
					other.WaitFor(fmt.Sprintf("now() > %f + 3300", asleep), browser.Limit)
					if steal {
						assert.True(t, browser.Get[bool](other, "lease === undefined && (await locks()).pending === 1"), "the stealer is awake")
					} else { // it does not answer
						other.WaitFor("lease", browser.Limit)
					}
					sleep.wake(holder)

					holder.WaitFor("reasons.length > 0", browser.Limit)
					if steal {
						other.MustEval("await mine.release()", nil)
					}
					other.MustEval("await result", nil)
					assertStale(t, holder, asleep+3000)
					other.MustEval("await lease.release()", nil)
					free(other)
				})
			}
		}
	})
}

func waits(tab *browser.Tab) {
	tab.MustEval("result = hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => lease = l); 1", nil)
	tab.WaitFor("(await locks()).pending === 1", browser.Limit)
}

// assertStale asserts how a lease ended that expired at an instant of the page's clock.
func assertStale(t *testing.T, holder *browser.Tab, expired float64) {
	t.Helper()
	events := told(t, holder)
	end := events[len(events)-2:]
	require.Equal(t, []string{"error", "readonly-entered"}, kinds(end))
	assert.Equal(t, "lease-stale", end[0].code())
	assert.Equal(t, "renew", end[0]["operation"])
	assert.Equal(t, "renew-failed", end[1]["reason"])
	assert.Len(t, only(events, "readonly-entered"), 1)
	for _, e := range events[:len(events)-2] {
		assert.Less(t, e.number("at"), expired, "the event came after the lease had expired: %v", e)
	}
	assert.Equal(t, "lease-stale", browser.Get[string](holder, "lease.signal.reason.code"))
	assert.Equal(t, []string{"renew-failed"}, browser.Get[[]string](holder, "reasons"))
	holder.Quiet()
}

// forward sets the wall clock of a realm forward by a minute. Go reads it with new Date.
const forward = `{ const Real = Date; globalThis.Date = class extends Real {
	constructor(...args) { args.length ? super(...args) : super(Real.now() + 60_000) }
	static now() { return Real.now() + 60_000 } } }; 1`

// Setting the clock forward past the TTL ends the lease at the next heartbeat. Waking from sleep does the same on
// machines whose monotonic clock stops meanwhile.
func TestClockSetForward(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		for _, ask := range []string{"heartbeat", "renew", "release"} {
			t.Run(ask, func(t *testing.T) {
				root := "clock-" + host + "-" + ask
				other, holder := w.tab(t, at(host, root)), w.tab(t, at(host, root))
				interval := 300
				if ask != "heartbeat" {
					interval = 10_000
				}
				holder.MustEval(fmt.Sprintf(`
					globalThis.reasons = []
					lease = await hf.acquireProjectLock({heartbeatIntervalMs: %d, ttlMs: 12000, onReadonly: e => reasons.push(e.reason)})`, interval), nil)
				other.MustEval("result = hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => lease = l); 1", nil)
				other.WaitFor("(await locks()).pending === 1", browser.Limit)
				holder.MustEval("events.length = 0", nil)
				if host == "page" {
					holder.MustEval(forward, nil)
				} else {
					holder.WorkerEval(forward, nil)
				}
				switch ask {
				case "renew":
					assert.Equal(t, "lease-stale", browser.Get[event](holder, "await failure(hf.renewProjectLock(lease))")["code"])
				case "release":
					holder.MustEval("await lease.release()", nil)
				}
				holder.WaitFor("reasons.length > 0", browser.Limit)
				other.MustEval("await result; await lease.release()", nil)

				events := undelayed(browser.Get[[]event](holder, "events"))
				for ask == "heartbeat" && strings.HasPrefix(events[0].kind(), "renew") { // before the clock was set
					events = events[1:]
				}
				require.Equal(t, []string{"error", "readonly-entered"}, kinds(events))
				assert.Equal(t, "lease-stale", events[0].code())
				assert.Equal(t, "lease-stale", browser.Get[string](holder, "lease.signal.reason.code"))
				free(other)
				holder.Quiet()
			})
		}
	})
}
