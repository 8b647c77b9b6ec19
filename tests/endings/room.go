package endings

import (
	"syscall"

	"github.com/stretchr/testify/assert"
)

// The system ends the browser, orderly or not. No page receives an event.
func endOfBrowser(s *series) {
	parts(s, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, syscall.Signal.String, func(s *series, signal syscall.Signal) {
		s.rounds(1, 20, func(s *Scene) {
			word := Word()
			ann := s.edits("Ann", Unsaved)
			if s.round%2 == 1 {
				ann.do("type('saved, '); await autosave.flushNow()")
			}
			ann.do("type('" + word + "')")
			s.WaitStored(s.T, word)
			s.Restart(s.T, signal)
			s.left(word, "content")
		})
	})
}

// localStorage is full: the text of a closed page is kept. A page that was opened before has reserved space for its
// last words. A page that was opened later has its journal.
func fullLocalStorage(s *series) {
	s.yesOrNo("full before", func(s *series, before bool) {
		s.ends(func(s *Scene, end Ending) {
			word := Word()
			ann := s.open("")
			start := "await start(" + s.project("Ann") + "); await hf.ready; await edit(" + Unsaved + ")"
			if before {
				ann.do("localStorage.clear(); full(); " + start + "; type('" + word + "')")
				s.WaitStored(s.T, word)
			} else {
				ann.do("localStorage.clear(); " + start + "; full(); type('" + word + "')")
			}
			s.ends(ann, end, word)
			next := s.edits("Ann", Unsaved)
			s.found(next, word, "content")
			next.do("localStorage.clear(); await hf.close()")
		})
	})
}

// A document larger than localStorage loses nothing either: neither a word in its middle that was typed a moment
// before the page ends, nor a whole text that was inserted.
func largeDocument(s *series) {
	const large = "const large = n => 'a line of sixteen'.repeat(n * 65536); "
	s.yesOrNo("whole", func(s *series, whole bool) {
		s.ends(func(s *Scene, end Ending) {
			word, ann := Word(), s.edits("Ann", Unsaved)
			if whole {
				ann.do(large + "text = large(6); type('" + word + "')")
				s.WaitStored(s.T, word)
			} else {
				ann.do(large + "text = large(6); autosave.markDirty(); await autosave.flushNow(); text = large(3) + '" + word + "' + large(3); autosave.markDirty()")
			}
			s.ends(ann, end, word)
			ben := s.edits("Ben", Unsaved)
			s.found(ben, word, "content")
			assert.True(s, get[bool](ben, "(await current()).replace('"+word+"', '') === 'a line of sixteen'.repeat(6 * 65536)"), "the text around the word is the same")
			ben.do("await hf.close()")
		})
	})
}
