package engines

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testTree tests places, slots and a deadlock between tabs, over Web Locks.
func testTree(s *stage) { tree(s, s.open) }

// testFileTree runs the same tests over the file.
func testFileTree(s *stage) {
	if s.hasFiles() {
		tree(s, s.files)
	}
}

func tree(s *stage, open func() *page) {
	pages := []*page{open(), open(), open()}
	for _, p := range pages {
		p.do(`globalThis.take = (o, more) => hf.acquireProjectLock({...o, ...more})
			globalThis.patient = {backoff: {maxRetries: 0}}
			globalThis.attempt = o => take(o, {ifAvailable: true}).then(async l => { await l.release(); return "granted" }, e => e.code)`)
	}
	a, b, c := pages[0], pages[1], pages[2]
	places(s, a, b, c)
	slotCycle(s, a, b, c)
	slots(s, a, b, c)
	deadlock(s, a, c)
}

var denials = []string{"acquire-denied", "fallback-conflict"}

// places tests that a place excludes requests for itself, for places above it and for places below it, and no others.
func places(s *stage, a, b, c *page) {
	a.do("lease = await take({path: ['u1', 'a1', 'r1']})")
	for _, conflict := range []string{"{path: ['u1', 'a1', 'r1']}", "{path: ['u1']}", "{path: ['u1', 'a1', 'r1', 'below']}", "{}", "{paths: [['u2'], ['u1', 'a1']]}"} {
		assert.Contains(s, denials, get[string](b, "await attempt("+conflict+")"), conflict)
	}
	for _, beside := range []string{"{path: ['u1', 'a1', 'r2']}", "{path: ['u2']}", "{path: ['u1', 'a1'], mode: 'shared'}", "{path: ['u1', 'a1/r1']}"} {
		assert.Equal(s, "granted", get[string](b, "await attempt("+beside+")"), beside)
	}
	a.do("await lease.release(); lease = await take({path: ['doc'], mode: 'shared'})")
	b.do("lease = await take({path: ['doc'], mode: 'shared'})")
	assert.Contains(s, denials, get[string](c, "await attempt({path: ['doc']})"))
	a.do("await lease.release()")
	b.do("await lease.release()")
	assert.Equal(s, "granted", get[string](c, "await attempt({path: ['doc']})"))
}

// slots makes two of three tabs hold a slot. The third tab gets the second slot when its holder ends.
func slots(s *stage, a, b, c *page) {
	const pool = "{path: ['pool'], slots: 2}"
	a.do("lease = await take(" + pool + ")")
	b.do("lease = await take(" + pool + ")")
	assert.Equal(s, []int{0, 1}, []int{get[int](a, "lease.slot"), get[int](b, "lease.slot")})
	assert.Contains(s, denials, get[string](c, "await attempt("+pool+")"))
	c.do("events.length = 0; take(" + pool + ", patient).then(l => { lease = l; got = now() })")
	c.wait("count('waiting') > 0")
	s.gone(b)
	if Limits[s.engineName]["kill"] == "" {
		_, err := b.tab.Kill()
		require.NoError(s, err)
	} else {
		require.NoError(s, b.tab.Close())
	}
	ended := clock()
	c.wait("got")
	s.Logf("the slot was handed on after %.0f ms", get[float64](c, "got")-ended)
	assert.Equal(s, 1, get[int](c, "lease.slot"))
	a.do("await lease.release()")
	c.do("await lease.release()")
}

// slotCycle makes a tab wait for one of two slots whose holders wait for the tab's lease. One of the three gets the
// error.
func slotCycle(s *stage, a, b, c *page) {
	const pool, key = "{path: ['circle'], slots: 2}", "{path: ['key']}"
	a.do("lease = await take(" + pool + ")")
	b.do("lease = await take(" + pool + ")")
	c.do("lease = await take(" + key + ")")
	for _, p := range []*page{c, a, b} {
		wanted := key
		if p == c {
			wanted = pool
		}
		p.do(`events.length = 0; globalThis.outcome = ''
			void take(` + wanted + `, {...patient, within: lease}).then(l => l.release().then(() => "granted"), e => e.code)
				.then(result => lease.release().then(() => { outcome = result }))`)
		p.wait("count('waiting') > 0 || outcome")
	}
	var outcomes []string
	for _, p := range []*page{a, b, c} {
		p.wait("outcome")
		outcomes = append(outcomes, get[string](p, "outcome"))
	}
	assert.ElementsMatch(s, []string{"deadlock", "granted", "granted"}, outcomes)
}

// deadlock makes two tabs take two nested places in different orders. One of them gets the error.
func deadlock(s *stage, a, c *page) {
	for p, ids := range map[*page][2]string{a: {"x", "y"}, c: {"y", "x"}} {
		p.do("events.length = 0; globalThis.outcome = ''; lease = await take({path: ['" + ids[0] + "']})")
		p.do(`globalThis.nested = () => void take({path: ['` + ids[1] + `'], within: lease}, patient)
			.then(l => { globalThis.inner = l; outcome = "granted" }, e => { outcome = e.code; return lease.release() })`)
	}
	a.do("nested()")
	a.wait("count('waiting') > 0")
	began := clock()
	c.do("nested()")
	a.wait("outcome")
	c.wait("outcome")
	s.Logf("told, released and granted within %.0f ms", clock()-began)
	assert.ElementsMatch(s, []string{"deadlock", "granted"}, []string{get[string](a, "outcome"), get[string](c, "outcome")})
	for _, p := range []*page{a, c} {
		p.do("await globalThis.inner?.release(); await lease.release()")
	}
	assert.Equal(s, "granted", get[string](a, "await attempt({})"), "nothing is left")
}
