package browser_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// pace is a page that chains timers of 100 ms, beside a worker that posts every 100 ms. It records the gaps between
// its own timers and between the worker's, and how long the worker's messages took to arrive.
var pace = browser.Pages{"/": {Body: `<!doctype html><title>pace</title><script>
const now = () => performance.timeOrigin + performance.now()
const paces = {page: [], worker: [], message: []}
let last = now(), hiddenAt = 0
document.addEventListener('visibilitychange', () => { hiddenAt = document.hidden ? now() : 0 })
setTimeout(function step() { if (hiddenAt) paces.page.push(now() - last); last = now(); setTimeout(step, 100) }, 100)
const worker = new Worker('/worker.js')
worker.onmessage = ({data: {at, gap}}) => {
  if (hiddenAt) { paces.worker.push(gap); paces.message.push(now() - at) } }
// silence is the longest time without a page timer in this hidden page, including the current one.
const silence = () => Math.max(...paces.page, now() - last)
</script>`}, "/worker.js": {Body: `let last = performance.now()
setInterval(() => { const t = performance.now()
  postMessage({at: performance.timeOrigin + t, gap: t - last}); last = t }, 100)`}}

// paces are milliseconds.
type paces struct{ Page, Worker, Message []float64 }

func hiddenPace(t *testing.T, options browser.Options, until string) paces {
	t.Helper()
	b := browser.Start(t, options)
	tab := b.Open(t, browser.Serve(t, pace).URL("/"))
	tab.MustEval("navigator.locks.request('held', () => new Promise(() => {})); 1", nil) // a lock does not prevent throttling
	tab.Hide()
	tab.WaitFor("paces.worker.length > 10 && "+until, browser.Limit)
	got := browser.Get[paces](tab, "paces")
	require.NotEmpty(t, got.Worker)
	t.Logf("page %.0f; worker median %.0f, longest %.0f; messages take median %.1f, longest %.1f", got.Page,
		median(got.Worker), slices.Max(got.Worker), median(got.Message), slices.Max(got.Message))
	return got
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// assertWorkerFree asserts that throttling does not affect a worker's timers and messages. Throttled ones take 1,000 ms
// or more. On a busy machine any of them may take that long, but not half of them.
func assertWorkerFree(t *testing.T, got paces) {
	t.Helper()
	assert.Less(t, median(got.Worker), 900.0)
	assert.Less(t, median(got.Message), 900.0)
}

// Without throttling, a hidden page keeps its pace. The later tests compare with this.
func TestHiddenAtFullSpeed(t *testing.T) {
	t.Parallel()
	got := hiddenPace(t, browser.Options{}, "paces.page.length > 10")
	assert.Less(t, median(got.Page), 500.0)
	assertWorkerFree(t, got)
}

// With throttling, a page timer of a hidden tab runs once per second. A worker's timers do not change.
func TestHiddenThrottled(t *testing.T) {
	t.Parallel()
	got := hiddenPace(t, browser.Options{Throttling: true}, "paces.page.length > 3")
	assert.GreaterOrEqual(t, median(got.Page), 600.0)
	assert.Less(t, median(got.Page), 5000.0, "once a minute would be intensive throttling")
	assertWorkerFree(t, got)
}

// Throttled intensively, a page timer runs once a minute, aligned to whole minutes of the browser's clock. Five
// silent seconds tell it from 1 Hz.
func TestHiddenThrottledIntensively(t *testing.T) {
	t.Parallel()
	got := hiddenPace(t, browser.Options{Throttling: true, Grace: time.Second}, "silence() > 5000")
	assertWorkerFree(t, got)
}
