package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A page steals a Web Lock and freezes before it steals the lock in the file too. Another page steals both meanwhile. When the first page
// runs again, it takes the lock in the file from the last stealer, which has the Web Lock and keeps the lock.
func TestStealerThatWakesLateTakesNothingFromTheNextOne(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	options := "{host: 'worker', strategy: 'file-lock', root: 'late stealer'}"
	late, last := w.tab(t, options), w.tab(t, options)
	late.MustEval(`{ // nothing reaches the worker while the page is frozen
		const post = Worker.prototype.postMessage
		self.frozen = []
		Worker.prototype.postMessage = function (message, ...rest) {
			const held = self.frozen && (message.kind === 'abort' || message.method === 'request')
			if (held) self.frozen.push(() => post.call(this, message, ...rest))
			else post.call(this, message, ...rest)
		}
		self.ran = false
		self.steal = hf.locks.request('n', {steal: true}, () => { ran = true }).catch(({name}) => name)
		while (!self.frozen.length) await new Promise(done => setTimeout(done))
	}`, nil)
	last.MustEval(`await new Promise(held => {
		self.steal = hf.locks.request('n', {steal: true}, () => new Promise(done => { self.end = done; held() })).catch(({name}) => name)
	})`, nil)
	assert.Equal(t, "AbortError", browser.Get[string](late, "await steal"))
	late.MustEval(`{
		const [request, ...aborts] = self.frozen
		self.frozen = undefined
		request()
		await hf.locks.request('after the request', () => {})
		for (const abort of aborts) abort()
	}`, nil)
	assert.Equal(t, "still held", browser.Get[string](last, `await (async () => {
		await hf.locks.request('sees the file', () => {})
		return Promise.race([steal, new Promise(done => setTimeout(done, 500, 'still held'))])
	})()`))
	last.MustEval("end('ended by itself')", nil)
	assert.Equal(t, "ended by itself", browser.Get[string](last, "await steal"))
	assert.False(t, browser.Get[bool](late, "ran"))
	late.Quiet()
	last.Quiet()
}
