package engines

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// editing makes an editor of a page.
const editing = `
	globalThis.text = ""
	globalThis.told = []
	globalThis.decode = bytes => new TextDecoder().decode(bytes)
	globalThis.edit = async options => {
		globalThis.autosave = await hf.initAutoSave(() => text, options)
		for (const type of ["saved", "readonly", "editable"]) autosave.addEventListener("autosave:" + type, ({detail}) => {
			if (detail.content) text = decode(detail.content)
			told.push(type)
		})
		autosave.addEventListener("autosave:conflict", ({detail: {base, mine, theirs}}) => { globalThis.sides = [base, mine, theirs].map(decode) })
	}
	globalThis.type = more => { text += more; autosave.markDirty() }
	globalThis.texts = async ids => Promise.all((await ids).map(async ({id}) => decode(await autosave.read(id))))`

// editor opens a page that edits or stands by. The options are those of initAutoSave.
func (s *stage) editor(options ...string) *page {
	p := s.open()
	p.do(editing + "; await edit(" + strings.Join(options, "") + ")")
	return p
}

// A text saves itself. A second page stands by, asks for its turn, and continues when the first page is closed.
func testAutoSave(s *stage) {
	storage := "opfs"
	if Known[s.engineName]["OPFS sync access handles"] == "no" {
		storage = "indexeddb"
	}
	s.savesItself(storage)
}

// savesItself is testAutoSave in a storage.
func (s *stage) savesItself(storage string) {
	s.Helper()
	a, b := s.editor(), s.editor()
	assert.Equal(s, storage, get[string](a, "autosave.state().storage"))
	assert.Equal(s, []bool{false, true}, []bool{get[bool](a, "autosave.readOnly"), get[bool](b, "autosave.readOnly")})
	b.wait("autosave.state().holder?.ownerName === 'Ann'")
	a.do("type('日本語 one')")
	a.wait("told.includes('saved') && autosave.state().phase === 'idle'")
	b.do("await autosave.requestEdit()")
	assert.Equal(s, "日本語 one", get[string](b, "text"))
	a.wait("autosave.readOnly")
	b.do("type(', two'); globalThis.saved = await autosave.flushNow()")
	assert.Equal(s, 2, get[int](b, "(await autosave.history()).length"))
	assert.Equal(s, "日本語 one", get[string](b, "decode(await autosave.restore((await autosave.history())[1].id))"))
	b.do("text = '日本語 one'; type(', typed a moment before it was closed')")
	s.gone(b)
	require.NoError(s, b.tab.Close())
	a.wait("!autosave.readOnly && text === '日本語 one, typed a moment before it was closed'")
	a.do("await autosave.dispose()")
}

// journalled returns whether the file of a draft contains the text.
const journalled = `
	globalThis.journalled = async text => {
		const root = await navigator.storage.getDirectory()
		const look = async folder => {
			for await (const entry of folder.values()) {
				if (entry.kind === "directory" ? await look(entry) : (await (await entry.getFile()).text()).includes(text)) return true
			}
			return false
		}
		return look(await (await (await root.getDirectoryHandle(hf.root)).getDirectoryHandle("autosave")).getDirectoryHandle("drafts"))
	}`

// The last words of a killed page come back as the content. If the page typed on an outdated content, its words
// conflict with the later save and wait as a draft.
func testAutoSaveDrafts(s *stage) {
	s.needs("kill")
	s.keepsDrafts(strings.ReplaceAll(journalled, "hf.root", "'"+s.root+"'"), "journalled")
}

// keepsDrafts is testAutoSaveDrafts in a storage. The script defines the function that reports whether it stores a word.
func (s *stage) keepsDrafts(script, stores string) {
	const slow = "{debounceMs: 60000, idleMs: 60000}"
	kill := func(p *page, words string) {
		p.do(script)
		p.wait("await " + stores + "('" + words + "', '" + s.root + "')")
		s.gone(p)
		_, err := p.tab.Kill()
		require.NoError(s, err)
	}
	a := s.editor(slow)
	a.do("type('日本語'); await autosave.flushNow(); type(', last words')")
	kill(a, "last words")

	b := s.editor(slow)
	b.wait("!autosave.readOnly && text === '日本語, last words'")
	assert.Equal(s, []string{"日本語, last words", "日本語"}, get[[]string](b, "await texts(autosave.history())"))
	assert.Equal(s, 0, get[int](b, "(await autosave.drafts()).length"))
	c := s.editor(slow)
	c.do("await autosave.requestEdit(); type(', theirs'); await autosave.flushNow()")
	b.wait("autosave.readOnly")
	b.do("type(', mine')")
	kill(b, "mine")
	c.wait("(await autosave.drafts()).length === 1")
	// A read-only page makes a draft of what is typed there; the kill may come first.
	assert.Contains(s, []string{"crashed", "lock-lost"}, get[string](c, "(await autosave.drafts())[0].cause"))
	c.do("await autosave.dispose()")

	d := s.editor(slow)
	d.wait("globalThis.sides")
	base := "日本語, last words"
	assert.Equal(s, []string{base, base + ", mine", base + ", theirs"}, get[[]string](d, "sides"))
	assert.Equal(s, base+", theirs", get[string](d, "text"))
	d.do("await autosave.resolveDraft((await autosave.drafts())[0].id, 'content')")
	d.wait("text === '" + base + ", mine'")
	assert.Equal(s, []string{base + ", mine", base + ", theirs", base, "日本語"}, get[[]string](d, "await texts(autosave.history())"))
	assert.Equal(s, 0, get[int](d, "(await autosave.drafts()).length"))
	d.do("await hf.close()")
}

// hanging makes the n-th step of a save and all later ones hang: the steps by which Go in a page uses the storage
// itself, or the operations of its helper worker, which opens, writes, flushes and closes files.
var hanging = map[string]string{
	"page": `
	globalThis.steps = 0
	globalThis.stopAt = %d
	const hang = (object, method) => {
		const real = object[method]
		object[method] = function (...args) {
			return ++steps > stopAt ? new Promise(() => {}) : real.apply(this, args)
		}
	}
	for (const method of ["getFileHandle", "getDirectoryHandle", "removeEntry"]) hang(FileSystemDirectoryHandle.prototype, method)
	hang(FileSystemFileHandle.prototype, "getFile")
	hang(Blob.prototype, "arrayBuffer")
	hang(SubtleCrypto.prototype, "digest")
	const ask = Worker.prototype.postMessage
	Worker.prototype.postMessage = function (message, ...rest) {
		if (message.file === undefined || ++steps <= stopAt) ask.call(this, message, ...rest)
	}`,
	"helper": `
	globalThis.steps = 0
	globalThis.stopAt = %d
	const ask = Worker.prototype.postMessage
	Worker.prototype.postMessage = function (message, ...rest) {
		if (message.file !== undefined) {
			Worker.prototype.postMessage = ask
			this.addEventListener("message", ({data}) => { if (data.at) steps = stopAt + 1 })
			ask.call(this, {stopAt})
		}
		ask.call(this, message, ...rest)
	}`,
}

// A page is killed at every step of a save: the last save is complete, and the next editor continues.
func testAutoSaveKilled(s *stage) {
	if Known[s.engineName]["OPFS sync access handles"] == "no" || s.host != "page" {
		return // in a worker, opfs's own tests cover this
	}
	assert.GreaterOrEqual(s, s.killedAtEveryStep("page"), 3)
	assert.Greater(s, s.killedAtEveryStep("helper"), 10)
}

// killedAtEveryStep returns the number of steps.
func (s *stage) killedAtEveryStep(of string) int {
	for step := 0; ; step++ {
		p := s.editor()
		p.wait("!autosave.readOnly")
		if of == "page" || step == 0 { // the following save finds its files open; the helper is also killed while it opens them
			p.do(fmt.Sprintf("text = 'text %d'; autosave.markDirty(); await autosave.flushNow()", step))
		}
		want := []string{get[string](p, "decode(await autosave.read('current'))"), fmt.Sprintf("text %d", step+1)}
		p.do(fmt.Sprintf(hanging[of], step))
		p.do(fmt.Sprintf(`text = "text %d"; autosave.markDirty()
			globalThis.over = false
			autosave.flushNow().finally(() => { over = true }).catch(() => {})`, step+1))
		p.wait("over || steps > stopAt")
		over := get[bool](p, "over")
		p.do("window.addEventListener('pagehide', e => e.stopImmediatePropagation(), true); localStorage.clear(); Storage.prototype.setItem = () => {}")
		s.gone(p)
		require.NoError(s, p.tab.Close())

		next := s.editor()
		next.wait("!autosave.readOnly")
		got := get[string](next, "decode(await autosave.read('current'))")
		require.Contains(s, want, got, "killed at step %d of the %s", step, of)
		all := get[[]string](next, "(await Promise.all((await autosave.history()).map(async g => decode(await autosave.read(g.id)))))")
		require.Equal(s, got, all[0])
		if over {
			require.Equal(s, want[1], got)
		}
		next.do("await hf.close()")
		s.gone(next)
		require.NoError(s, next.tab.Close())
		if over {
			s.Logf("%d steps of the %s", step, of)
			return step
		}
	}
}
