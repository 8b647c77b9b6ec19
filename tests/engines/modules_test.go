package engines

import "github.com/stretchr/testify/assert"

// Each module of the package is missing when it is asked for the first time. The page asks again, edits and saves.
func testModulesAgain(s *stage) {
	s.expected = append(s.expected, "holdfast-", "404")
	base := FlakyBase + s.root + "/"
	p := s.blank(s.site.URL(BlankPage))
	p.do(`
		globalThis.hf = (await import('` + base + `holdfast.js')).createHoldfast(` + s.options("") + `)
		globalThis.text = ''
		globalThis.autosave = hf.createAutoSave(() => text)
		hf.ready.catch(({code}) => { globalThis.code = code })
		globalThis.type = more => { text += more; autosave.markDirty() }`)
	p.wait("globalThis.code === 'load-failed'")
	p.do("type('typed')")
	p.wait("autosave.state().phase === 'idle' && autosave.lease")
	assert.Equal(s, "typed", get[string](p, "new TextDecoder().decode(await autosave.read('current'))"))
	p.do("await hf.close()")
}
