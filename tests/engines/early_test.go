package engines

import "github.com/stretchr/testify/assert"

// gated makes the Wasm of a page wait until the page calls arrive.
const gated = `
	const real = fetch
	const gate = new Promise(open => { globalThis.arrive = open })
	globalThis.fetch = async (...asked) => {
		if (String(asked[0]).endsWith('.wasm')) await gate
		return real(...asked)
	}`

// A page shows its text and edits before the Wasm is there, where files are allowed. The runtime takes over its text.
func testEarly(s *stage) {
	before := s.editor()
	before.do("type('saved'); await autosave.flushNow(); await autosave.dispose(); await hf.close()")
	p := s.blank(s.site.URL(BlankPage))
	p.do(gated + `
		globalThis.hf = (await import('/holdfast.js')).createHoldfast(` + s.options("") + `)
		globalThis.text = ''
		globalThis.told = []
		globalThis.decode = bytes => new TextDecoder().decode(bytes)
		globalThis.autosave = hf.createAutoSave(() => text)
		for (const type of ['preview', 'editable', 'readonly', 'draft', 'saved']) autosave.addEventListener('autosave:' + type, ({detail}) => {
			if (detail.content) text = decode(detail.content)
			told.push(type + (detail.content ? ': ' + decode(detail.content) : ''))
		})
		globalThis.type = more => { text += more; autosave.markDirty() }`)
	told := []string{"preview: saved", "editable: saved", "saved"}
	if Known[s.engineName]["OPFS sync access handles"] == "no" {
		told = told[1:]
		p.do("await new Promise(done => setTimeout(done, 1000))") // longer than an early page needs
		assert.Equal(s, []string{}, get[[]string](p, "told"))
		p.do("arrive()")
		p.wait("!autosave.readOnly")
	}
	p.wait("told.includes('editable: saved') && !autosave.readOnly")
	p.do("type(' and typed'); arrive()")
	p.wait("told.includes('saved') && autosave.state().phase === 'idle' && autosave.lease")
	assert.Equal(s, told, get[[]string](p, "told"))
	assert.Equal(s, "saved and typed", get[string](p, "decode(await autosave.read('current'))"))
	assert.Equal(s, 0, get[int](p, "(await autosave.drafts()).length"))
	p.do("await hf.close()")
}
