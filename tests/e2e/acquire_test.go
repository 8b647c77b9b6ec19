package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

var hosts = []string{"worker", "page"}

func TestSmoke(t *testing.T) {
	w := open(t, browser.Options{})
	for _, host := range hosts {
		t.Run(host, func(t *testing.T) {
			tab := w.tab(t, `{host: '`+host+`', ownerName: 'Ann', root: '`+host+`'}`)
			tab.MustEval(`
				const lease = await hf.acquireProjectLock({heartbeatIntervalMs: 200, ttlMs: 1000})
				await new Promise(done => hf.addEventListener('lock:renewed', done, {once: true}))
				const state = await hf.inspect()
				await lease.release()`, nil)
			t.Log(browser.Get[any](tab, `({lease, state, events})`))
			assert.Equal(t, []string{"attempt", "acquired", "renew-scheduled", "renewed", "renew-scheduled", "release-requested", "released"},
				browser.Get[[]string](tab, `types()`))
			tab.MustEval(`await hf.close()`, nil)
			tab.Quiet()
		})
	}
}
