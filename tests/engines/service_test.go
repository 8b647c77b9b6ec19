package engines

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve makes a page a tab of a service that appends to a list in localStorage, which all tabs see and no death erases.
const serve = `
	globalThis.outcomes = {}
	globalThis.service = hf.serve("list", ({token}) => ({
		add: id => { localStorage[root + "-" + id] = Number(localStorage[root + "-" + id] ?? 0) + 1; return id },
		never: id => { localStorage[root + "-" + id] = 1; return new Promise(() => {}) },
		port: port => port.postMessage("moved"),
		fails: () => { throw new RangeError("no") },
		token: () => token,
	}))
	globalThis.record = (id, call) => call.then(value => outcomes[id] = value, e => outcomes[id] = e.code ?? e.name)
`

// serviceEnd asserts that the next tab serves when the serving one ends, and that each call is made once or never.
func serviceEnd(s *stage, column string, end func(holder *page)) {
	s.Helper()
	root := "globalThis.root = '" + s.root + "';"
	holder := s.open()
	holder.do(root + serve + "await service.call('add', 'first')")
	callers := []*page{s.open(), s.open()}
	for _, p := range callers {
		p.do(root + serve + "await service.call('token')")
		assert.False(s, get[bool](p, "service.serving"))
		assert.Equal(s, "RangeError", get[string](p, "await service.call('fails').catch(e => e instanceof RangeError && e.name)"))
	}
	callers[0].do("record('never', service.call('never', 'never'))")
	callers[0].wait("localStorage[root + '-never'] === '1'")
	began := clock()
	end(holder)
	for i, p := range callers {
		p.do("for (let n = 0; n < 50; n++) record(n, service.call('add', '" + string(rune('a'+i)) + "' + n))")
	}
	callers[0].wait("Object.keys(outcomes).length === 51")
	callers[1].wait("Object.keys(outcomes).length === 50")
	s.note(column, clock()-began)
	assert.Equal(s, "call-lost", get[string](callers[0], "outcomes.never"))
	for i, p := range callers {
		letter := string(rune('a' + i))
		assert.True(s, get[bool](p, "Array.from({length: 50}, (_, n) => n).every(n => outcomes[n] === '"+letter+"' + n)"))
		assert.True(s, get[bool](p, "Array.from({length: 50}, (_, n) => n).every(n => localStorage[root + '-"+letter+"' + n] === '1')"), "each call is made once")
	}
	assert.Equal(s, 1, get[int](callers[0], "Number(service.serving)")+get[int](callers[1], "Number(service.serving)"))
	for _, p := range callers {
		p.do("await service.close()")
	}
}

func testServiceClosed(s *stage) {
	serviceEnd(s, "service closed", func(holder *page) {
		s.gone(holder)
		require.NoError(s, holder.tab.Close())
	})
}

func testServiceKilled(s *stage) {
	s.needs("kill")
	serviceEnd(s, "service killed", func(holder *page) {
		s.gone(holder)
		_, err := holder.tab.Kill()
		require.NoError(s, err)
	})
}

// A port among the arguments reaches the serving tab where there are shared workers.
func testServicePort(s *stage) {
	root := "globalThis.root = '" + s.root + "';"
	holder, caller := s.open(), s.open()
	holder.do(root + serve + "await service.call('token')")
	caller.do(root + serve + "await service.call('token')")
	const moved = `const {port1, port2} = new MessageChannel(), heard = new Promise(done => port1.onmessage = e => done(e.data))
		await service.call("port", port2)
		return await heard`
	assert.Equal(s, "moved", get[string](caller, "await (async () => {"+moved+"})()"))
}
