package endings

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// early opens a page of a document with saved content. It runs statements before the page gets the content.
func (s *Scene) early(statements string) *page {
	s.Helper()
	ann := s.edits("Ann", Unsaved)
	ann.do("type('saved'); await autosave.flushNow(); await hf.close()")
	ben := s.open(s.project("Ben"))
	ben.do("await edit(" + Unsaved + "); " + statements)
	return ben
}

// typedOnNothing asserts that the content is the saved one, and that a word that was typed without it is a draft.
func (s *Scene) typedOnNothing(word string) {
	s.Helper()
	next := s.edits("Cleo", Unsaved)
	s.is(next, "saved")
	next.wait("await places('" + word + "') === 'draft'")
	next.do("await hf.close()")
}

// A page that types before it gets the saved content loads the content over its own text, which becomes a draft.
func typedBeforeContent(s *series) {
	s.rounds(1, 20, func(s *Scene) {
		word := Word()
		ben := s.early("type('" + word + "')")
		ben.wait("heard('editable').length === 1 && text === 'saved'")
		ben.do("type('!'); await autosave.flushNow(); await hf.close()")
		s.left(word, Anywhere...)
		s.left("saved!", "content")
	})
}

// A page that types before it loads the content has typed on an empty text. Its draft never replaces the content, for
// every ending of the page.
func endsBeforeContent(s *series) {
	s.ends(func(s *Scene, end Ending) {
		word := Word()
		ben := s.early("type('" + word + "')")
		ben.wait("heard('editable').length === 1 && text === 'saved'")
		s.WaitStored(s.T, word)
		require.NoError(s, ben.End(end))
		s.typedOnNothing(word)
	})
}

// The same attack, but the page saves or ends before it has loaded the content, and empties its editor.
func callBeforeContent(s *series) {
	parts(s, []string{"hf.close()", "autosave.dispose()", "autosave.flushNow()"}, func(call string) string { return call }, func(s *series, call string) {
		s.rounds(1, 20, func(s *Scene) {
			word := Word()
			ben := s.early("type('" + word + "'); const done = failure(" + call + "); text = ''; globalThis.answer = await done")
			assert.Equal(s, "read-only", get[string](ben, "answer.code"))
			require.NoError(s, ben.End(closed))
			s.typedOnNothing(word)
		})
	})
}

// A page types although it is read-only, and ends when it is given the content. The runtime then expects unsaved
// text. By the time the runtime asks for it, the editor is empty.
func endsWhenItMayEdit(s *series) {
	s.rounds(2, 20, func(s *Scene) {
		ann := s.edits("Ann", Unsaved)
		ann.do("type('saved')")
		ben := s.edits("Ben", Unsaved)
		ben.do(`const {port1, port2} = new MessageChannel()
			globalThis.ended = false
			port1.onmessage = async () => { if (!ended) { type('.'); await failure(autosave.read('none')); port2.postMessage(0) } }
			port2.postMessage(0)
			autosave.addEventListener('autosave:editable', () => { ended = true })`)
		ann.do("await hf.close()")
		ben.wait("ended && autosave.state().phase !== 'awaiting-lock'")
		ben.do("const done = hf.close(); text = ''; await done")
		next := s.edits("Cleo", Unsaved)
		s.is(next, "saved")
		next.do("await hf.close()")
	})
}

// LockFile gives a page whenPossible(root, use, ms), which uses the `.lock` file of a project once no tab has the file
// open, and fileClosed(root, ms), which returns whether that happens in time.
const LockFile = `{
const whenPossible = async (root, use, ms = Infinity) => {
  for (const end = performance.now() + ms; ;) {
    try {
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(root)
      return await use(await folder.getFileHandle('.lock'))
    } catch (e) {
      if (!['NotReadableError', 'NoModificationAllowedError'].includes(e.name)) throw e
      if (performance.now() > end) return false
    }
  }
}
const fileClosed = (root, ms) => whenPossible(root, async file => {
  await (await file.createWritable()).abort()
  return true
}, ms)
Object.assign(globalThis, {whenPossible, fileClosed})
}
1`
