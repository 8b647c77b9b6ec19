package browser

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A profile outlives its browser: OPFS files that were written without a flush exist after SIGTERM and SIGKILL.
func TestRestartKeepsProfile(t *testing.T) {
	b := Start(t, Options{Shell: true})
	s := Serve(t, Pages{"/": {Body: "<title>x</title>"}, "/w.js": {Body: `
		onmessage = async ({data}) => {
			const root = await navigator.storage.getDirectory()
			const handle = await (await root.getFileHandle("draft", {create: true})).createSyncAccessHandle()
			handle.truncate(0)
			handle.write(new TextEncoder().encode(data))
			postMessage("written")
		}`}})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		text := "typed before " + signal.String()
		tab := b.Open(t, s.URL("/"))
		tab.MustEval(`const worker = new Worker('/w.js')
			const written = new Promise(done => worker.onmessage = done)
			worker.postMessage(`+"`"+text+"`"+`); await written; null`, nil)
		b.WaitStored(t, text, Limit)
		b.Restart(t, signal)
		assert.Empty(t, b.Tabs())
		assert.Equal(t, text, Get[string](b.Open(t, s.URL("/")),
			"(await (await (await navigator.storage.getDirectory()).getFileHandle('draft')).getFile()).text()"))
	}
}

// A browser that is killed after writing a draft's content but before writing its slot has not stored that content.
func TestStoredNeedsTheSlotOfADraft(t *testing.T) {
	file := make([]byte, draftSlots*draftBlock+len("some words"))
	copy(file[draftSlots*draftBlock:], "some words")
	assert.False(t, stored(file, "words"))
	copy(file[draftBlock:], draftMagic+"........\x18\x00\x00\x00"+`{"offset":12288,"bytes":5}`[:24])
	assert.False(t, stored(file, "words"), "a torn slot")
	header := `{"offset":12288,"bytes":10}`
	copy(file[draftBlock:], draftMagic+"........"+string(rune(len(header)))+"\x00\x00\x00"+header)
	assert.True(t, stored(file, "words"))
	assert.False(t, stored(file, "verbs"))
	copy(file[draftBlock:], draftMagic+"........"+string(rune(len(header)))+"\x00\x00\x00"+`{"offset":12288,"bytes": 4}`)
	assert.False(t, stored(file, "words"), "the slot names another content")
	assert.True(t, stored([]byte("a generation of some words"), "words"))
}
