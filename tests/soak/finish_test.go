package soak

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// finish ends all faults and programs, and checks what remains of them.
func (r *run) finish() {
	r.endLasting(func(lasting) bool { return true })
	r.checker.stop()
	for limit := time.Now().Add(served); len(r.checker.left()) > 0 && time.Now().Before(limit); {
		time.Sleep(20 * time.Millisecond)
	}
	for client, last := range r.checker.left() {
		r.checker.accuse("%s has not ended within %v, at %v; the last that it said was %s", client, served, r.checker.now(), last)
	}
	for _, tab := range append(r.tabs[:], r.closed...) {
		for _, m := range tab.Console() {
			if m.Level == "exception" || strings.Contains(m.Text, "panic: ") || strings.Contains(m.Text, "fatal error: ") {
				r.checker.accuse("on the console: %s", m)
			}
		}
	}
	for i, warden := range r.wardens {
		r.last(i, warden)
	}
}

// last makes a new client acquire every lock of a machine and read its documents.
func (r *run) last(machine int, tab *browser.Tab) {
	tab.MustEval(`
		const { openHoldfast } = await import('/holdfast.js')
		globalThis.take = async (options, times) => {
			const hf = await openHoldfast(options)
			const lease = await hf.acquireProjectLock({...times, backoff: {maxRetries: 0}})
			const { held, pending } = await hf.inspect()
			await lease.release()
			await hf.close()
			return [held.length, pending.length]
		}
		globalThis.look = async (options, times) => {
			const hf = await openHoldfast(options)
			const saver = await hf.initAutoSave(() => '', { lock: { ...times, backoff: { maxRetries: 0 } } })
			const limit = performance.now() + times.timeoutMs
			while (saver.readOnly && performance.now() < limit) await new Promise(done => setTimeout(done, 20))
			if (saver.readOnly) throw new Error('the document is held by ' + saver.state().holder?.ownerName)
			const history = await saver.history()
			for (const { id } of history) await saver.read(id)
			const text = history.length ? new TextDecoder().decode(await saver.read('current')) : ''
			await hf.close()
			return text
		}
		null`, nil)
	origin := r.site.address(machine, "")
	times := fmt.Sprintf("{ttlMs: %d, heartbeatIntervalMs: %d, timeoutMs: %d}", ttl.Milliseconds(), ttl.Milliseconds()/4, (2 * ttl).Milliseconds())
	for domain, open := range map[string]string{
		"web-lock": "{root: 'web', strategy: 'web-lock'}", "file-lock": "{root: 'files', strategy: 'file-lock'}",
		"server": fmt.Sprintf("{root: 'leases', server: {url: %q}}", origin),
	} {
		var seen [2]int
		if err := tab.Eval(fmt.Sprintf("await take(%s, %s)", open, times), &seen); err != nil {
			r.checker.accuse("%s of machine %d is not available at the end: %v", domain, machine, err)
		}
	}
	for chapter := range r.chapter() + 1 {
		here, shared := documents(chapter)
		r.readLast(tab, fmt.Sprintf("%s of machine %d", here, machine), fmt.Sprintf("{root: %q}", here), times)
		r.readLast(tab, shared, fmt.Sprintf("{root: %q, server: {url: %q}}", shared, origin), times)
	}
}

func (r *run) readLast(tab *browser.Tab, document, open, times string) {
	var text string
	if err := tab.Eval(fmt.Sprintf("await look(%s, %s)", open, times), &text); err != nil {
		r.checker.accuse("%s cannot be read at the end: %v", document, err)
		return
	}
	r.checker.read(document, text)
}
