package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// grantsAtATime is the number of grants in one call on a tab, because a call has a time limit.
const grantsAtATime = 50

// endedWaits is a script that waits many times: with options, a call, and a statement that ends the wait. Messages to
// itself measure the time towards the end, because timers are too coarse.
const endedWaits = `await (async () => {
	const channel = new BroadcastChannel('race')
	for (let i = 0; i < %d; i++) {
		const held = new Promise(done => { channel.onmessage = ({data}) => data === 'held' && done() })
		const stop = new AbortController(), options = %s
		const outcome = (%s).catch(e => e.code)
		channel.postMessage('queued')
		const until = now() + delay
		if (delay > 8) await new Promise(done => setTimeout(done, delay - 6))
		while (now() < until) await new Promise(done => { const c = new MessageChannel; c.port1.onmessage = done; c.port2.postMessage(0) })
		%s
		const code = await outcome
		outcomes[code] = (outcomes[code] ?? 0) + 1
		// The steps grow: a busy machine needs fifty milliseconds or more to hand over.
		delay = Math.max(0, code === 'granted' ? delay - Math.max(0.7, delay / 20) : delay + Math.max(0.7, delay / 10))
		await held
	}
	channel.close()
	return outcomes
})()`

// A grant that comes at the same moment as an abort or a timeout is released: after many rounds nothing is held or
// pending, and each round had either the lease or the error, never both. In each round one tab releases while the
// wait of another ends. The end comes a little later after it won, and a little earlier after it lost, so that it
// stays close to the grant.
func TestGrantAtTheEnd(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		w := open(t, quick)
		root := "race-" + host
		holder, waiter := w.tab(t, at(host, root)), w.tab(t, at(host, root))
		holder.MustEval(`
			const channel = new BroadcastChannel('race')
			channel.onmessage = async ({data}) => {
				if (data !== 'queued') return
				await lease.release()
				lease = await hf.acquireProjectLock()
				channel.postMessage('held')
			}
			lease = await hf.acquireProjectLock()`, nil)
		for _, way := range []struct {
			name, options, end string
			rounds             int
		}{
			{"abort", "{signal: stop.signal}", "stop.abort()", rounds(t, 50, 200)},
			{"timeout", "{timeoutMs: Math.max(1, delay)}", "", 50},
			{"with", "{signal: stop.signal}", "stop.abort()", 50},
		} {
			call := "hf.acquireProjectLock(options).then(l => l.release().then(() => 'granted'))"
			if way.name == "with" {
				call = "hf.withProjectLock(() => 'granted', options)"
			}
			waiter.MustEval("globalThis.delay = 5; globalThis.outcomes = {}", nil)
			some := fmt.Sprintf(endedWaits, grantsAtATime, way.options, call, way.end)
			var outcome map[string]int
			for range way.rounds / grantsAtATime {
				outcome = browser.Get[map[string]int](waiter, some)
			}
			t.Logf("%s: %v, at last %.1f ms after the request", way.name, outcome, browser.Get[float64](waiter, "delay"))
			code := map[string]string{"abort": "aborted", "timeout": "acquire-timeout", "with": "aborted"}[way.name]
			assert.Greater(t, outcome["granted"], 0)
			assert.Greater(t, outcome[code], 0)
			assert.Equal(t, way.rounds, outcome["granted"]+outcome[code], "%v", outcome)
			waiter.WaitFor("(await locks()).held === 1 && (await locks()).pending === 0", browser.Limit)
		}
		holder.MustEval("channel.close(); await lease.release()", nil)
		free(holder)
		assert.Empty(t, browser.Get[[]any](holder, "(await hf.inspect()).held"))
		holder.Quiet()
		waiter.Quiet()
	})
}

const takeTurns = `
	const grants = []
	const turns = async n => {
		for (let i = 0; i < n; i++) {
			const options = i % 5 === 4 ? {steal: true} : {backoff: {maxRetries: 0}}
			await hf.withProjectLock(l => { grants.push(l.token) }, options).catch(e => {
				if (!['lease-lost', 'acquire-denied'].includes(e.code)) throw e // stolen before or during the request
			})
		}
		return grants.length
	}`

// Tokens rise with every grant, including stolen ones, whichever tab gets it.
func TestTokensRise(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	var tabs []*browser.Tab
	for _, host := range []string{"worker", "page"} {
		tab := w.tab(t, at(host, "tokens"))
		tab.MustEval(takeTurns, nil)
		tabs = append(tabs, tab)
	}
	// Both tabs at once: the tokens that one tab sees rise, and no token is seen twice.
	tabs[0].MustEval("globalThis.done = 0; turns(40).then(n => done = n); 1", nil)
	tabs[1].MustEval("await turns(40)", nil)
	tabs[0].WaitFor("done", browser.Limit)
	tabs[0].MustEval("await hf.close()", nil)
	tabs[1].MustEval("await hf.close()", nil)

	var tokens []int64
	for _, tab := range tabs {
		own := browser.Get[[]int64](tab, "grants")
		require.GreaterOrEqual(t, len(own), 30)
		assert.True(t, slices.IsSorted(own), "%v", own)
		tokens = append(tokens, own...)
	}
	slices.Sort(tokens)
	assert.Len(t, slices.Compact(slices.Clone(tokens)), len(tokens), "no token comes twice")
	free(tabs[0])

	assertRiseInTurn(t, tabs)
}

// assertRiseInTurn has one tab acquire after the other, so that the order across tabs is known.
func assertRiseInTurn(t *testing.T, tabs []*browser.Tab) {
	t.Helper()
	last := int64(0)
	for i := range 30 {
		tab := tabs[i%2]
		if i < 2 {
			tab.MustEval("await start("+at("worker", "tokens")+")", nil)
		}
		options := "{}"
		if i%3 == 2 {
			options = "{steal: true}"
		}
		token := browser.Get[int64](tab, "lease = await hf.acquireProjectLock("+options+"); lease.token")
		assert.Greater(t, token, last)
		last = token
		if i%3 != 1 { // a lease that is not released is stolen next
			tab.MustEval("await lease.release()", nil)
		}
	}
}
