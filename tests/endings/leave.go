package endings

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
)

const stolen = "autosave.readOnly && heard('readonly').length === 1"

// A page that ends during its handover still has unsaved text. The page that asked gets the text, however it becomes
// the editor.
func leaveDuringHandover(s *series) {
	s.ends(func(s *Scene, end Ending) {
		ann, ben, word := s.edits("Ann", Unsaved), s.edits("Ben", Unsaved), Word()
		ann.do("hf.addEventListener('lock:handover-requested', e => e.detail.waitUntil(sleep(40))); type('" + word + "')")
		if end.Abrupt {
			s.WaitStored(s.T, word)
			require.NoError(s, ann.Prepare(end)) // a handover ends sooner
		}
		ben.do("globalThis.asked = failure(autosave.requestEdit())")
		time.Sleep(time.Duration(s.round*7%90) * time.Millisecond) // before, during and after the handover
		require.NoError(s, ann.End(end))
		ben.do("await asked")
		s.found(ben, word, Anywhere...)
		ben.do("await hf.close()")
	})
}

// stolenPage opens a page that lost the lock after a word was typed, and the page that stole the lock.
func (s *Scene) stolenPage(word string) (ann, ben *page) {
	s.Helper()
	ann, ben = s.edits("Ann", Unsaved), s.open(s.project("Ben"))
	ann.do("type('saved'); await autosave.flushNow(); type('" + word + "')")
	ben.do("globalThis.stealer = await hf.acquireProjectLock({steal: true})")
	ann.wait(stolen)
	return ann, ben
}

// A page that lost the lock has its text as a draft. The next page shows the draft while the stealer still holds the
// lock.
func stolenLock(s *series) {
	s.ends(func(s *Scene, end Ending) {
		word := Word()
		ann, ben := s.stolenPage(word)
		s.ends(ann, end, word)
		next := s.edits("Ann", Unsaved)
		next.wait("await places('" + word + "') === 'draft'")
		ben.do("await stealer.release()")
		s.found(next, word, "content")
		next.do("await hf.close()")
	})
}

// A page that lost the lock shows another page's save over its own text. Its text stays a draft, or is saved.
func anotherText(s *series) {
	s.ends(func(s *Scene, end Ending) {
		word := Word()
		ann, ben := s.stolenPage(word)
		ann.do("text = await current()")
		s.ends(ann, end, word)
		ben.do("await hf.close()")
		s.left(word, "content")
	})
	s.rounds(1, 20, func(s *Scene) {
		word := Word()
		ann, ben := s.stolenPage(word)
		ann.do("text = await current()")
		ben.do("await hf.close()")
		ann.wait("!autosave.readOnly")
		ann.do("type(', more'); await autosave.flushNow()")
		s.found(ann, word, Anywhere...)
		ann.do("await hf.close()")
		s.left(word, Anywhere...)
	})
}

// Another page saves while a page has a draft on the previous content: both texts are kept, and a user decides.
func conflict(s *series) {
	s.ends(func(s *Scene, end Ending) {
		mine, theirs := Word(), Word()+"-theirs"
		ann, ben := s.edits("Ann", Unsaved), s.edits("Ben", Unsaved)
		ann.do("type('base, '); await autosave.flushNow()")
		ben.do("await autosave.requestEdit(); type('" + theirs + "'); await autosave.flushNow()")
		ann.wait("autosave.readOnly")
		ann.do("type('" + mine + "')")
		s.ends(ann, end, mine)
		ben.wait("await places('" + mine + "') === 'draft'")
		ben.do("await hf.close()")

		next := s.edits("Cleo", Unsaved)
		s.is(next, "base, "+theirs)
		next.wait("(await autosave.drafts()).length === 1")
		next.do("await autosave.resolveDraft((await autosave.drafts())[0].id, 'content')")
		next.wait(fmt.Sprintf("text === 'base, %s'", mine))
		s.found(next, mine, "content")
		s.found(next, theirs, "history")
		next.wait("autosave.state().drafts === 0")
		next.do("await hf.close()")
	})
}

// A page whose lease expired while its process was stopped finds another editor's text when it continues. Its own
// text is a draft.
func expiredLease(s *series) {
	s.rounds(1, 20, func(s *Scene) {
		word := Word()
		ann, ben := s.edits("Ann", late), s.edits("Ben", late)
		ann.do("type('" + word + "')")
		s.suspend(ann, ben)
		ben.wait("!autosave.readOnly")
		ben.do("type('theirs'); await autosave.flushNow()")
		require.NoError(s, ann.Suspend(false))
		ann.wait(stolen)
		require.NoError(s, ann.End(All[s.round%2])) // reloaded, or closed
		ben.wait("await places('" + word + "') !== 'nowhere'")
		ben.do("await hf.close()")
		next := s.edits("Cleo", late)
		s.found(next, word, Anywhere...)
		s.found(next, "theirs", "content", "history")
		next.do("await hf.close()")
	})
}

// suspend stops the process of a page that holds the lock, but not while that process has the file of locks open.
// Nobody gets a lock over such a file before the process continues: docs/guarantees.md.
func (s *Scene) suspend(holder, other *page) {
	s.Helper()
	free := "await fileClosed('" + s.root + "', 1000)"
	for _, p := range []*page{holder, other} {
		p.do(LockFile)
	}
	for closed := false; !closed; {
		holder.wait(free) // its next step over the file is up to a heartbeat away
		require.NoError(s, holder.Suspend(true))
		if closed = get[bool](other, free); !closed {
			require.NoError(s, holder.Suspend(false))
		}
	}
}

// Text that was kept at a freeze is older than text that was saved later, and never replaces it.
func crashAfterFreeze(s *series) {
	s.rounds(1, 20, func(s *Scene) {
		options := []string{"{}", Unsaved}[s.round%2]
		word, ann := Word(), s.edits("Ann", options)
		ann.do("type('one')")
		require.NoError(s, ann.Freeze(true))
		require.NoError(s, ann.Freeze(false))
		ann.wait("!autosave.readOnly")
		ann.do("type(', two'); await autosave.flushNow(); type(', " + word + "')")
		s.ends(ann, Crashed, word)
		next := s.edits("Ben", options)
		want := "one, two, " + word
		next.wait("!autosave.readOnly && await current() === '" + want + "'")
		next.wait("text === '" + want + "'")
		next.do("await hf.close()")
	})
}

// A page in the back/forward cache is closed or discarded there, or comes back. The text that was typed before is kept, and
// does not replace a save of others.
func backForwardCache(s *series) {
	s.rounds(2, 20, func(s *Scene) {
		word, ann := Word(), s.edits("Ann", Unsaved)
		ann.do("globalThis.cached = 1; type('" + word + "')")
		require.NoError(s, ann.Navigate("/blank?elsewhere"))
		ben := s.edits("Ben", Unsaved)
		s.found(ben, word, "content")
		ben.wait("text.includes('" + word + "')")
		ben.do("type(', theirs'); await autosave.flushNow()")
		if s.round%2 == 0 && back(ann) {
			ann.wait("autosave.readOnly")
			ben.do("await hf.close()")
			ann.wait("!autosave.readOnly && text === '" + word + ", theirs'")
			ann.do("type('!'); await autosave.flushNow(); await hf.close()")
		} else {
			require.NoError(s, ann.End(closed))
			ben.do("await hf.close()")
		}
		next := s.edits("Cleo", Unsaved)
		next.wait("!autosave.readOnly && (await current()).startsWith('" + word + ", theirs')")
		next.do("await hf.close()")
	})
}

// back returns to the page that the tab has left. It reports whether the browser has kept the page: it may discard a page whose
// worker still ends while another page queries its locks.
func back(p *page) bool {
	_ = p.Run("history.back()") // its answer may be lost with the page
	p.wait("location.search !== '?elsewhere' && document.readyState === 'complete'")
	return get[bool](p, "globalThis.cached === 1")
}
