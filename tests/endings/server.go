package endings

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

const (
	// late are the options of an AutoSave that does not save on its own during an attack, with a server whose leases
	// are short.
	late = "{debounceMs: 60000, idleMs: 60000, lock: {ttlMs: 3000, heartbeatIntervalMs: 600}}"
	// Soon are the options of an AutoSave that detects within seconds that its server does not answer.
	Soon = "{debounceMs: 50, lock: {ttlMs: 3000, heartbeatIntervalMs: 600, backoff: {initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0}}}"
	// LockTTL is the TTL of the server's leases with these options, as a flag value.
	LockTTL = "3s"
)

// A page is disconnected from its server, continues to type, and ends in any way. Its text is saved when the document
// is opened again with the server. If the disconnection outlasts the lease, the text is a draft before that.
func cutOff(s *series) {
	s.yesOrNo("expired", func(s *series, expired bool) {
		s.ends(func(s *Scene, end Ending) { s.cutOff(end, expired) })
	})
}

func (s *Scene) cutOff(end Ending, expired bool) {
	defer s.Cut(false)
	first, second := Word(), Word()
	ann := s.edits("Ann", Soon)
	ann.do("type('before'); await autosave.flushNow()")
	s.Cut(true)
	ann.do("type(', " + first + "')")
	if expired {
		require.NoError(s, ann.Wait(stolen, 2*browser.Limit))
		ann.wait("await drafted('" + first + "')")
	} else {
		ann.do("type(', " + second + "')")
	}
	if end.Abrupt && !expired {
		s.WaitStored(s.T, second)
	}
	s.ends(ann, end, first)
	openedOffline := s.round%2 == 0
	if !openedOffline {
		s.Cut(false)
	}
	next := s.open(s.project("Ann"))
	next.do("globalThis.opened = edit(" + Soon + ")")
	s.Cut(false)
	next.do("await opened")
	s.found(next, first, "content")
	if !expired {
		s.found(next, second, "content")
	}
	assert.Contains(s, get[string](next, "await current()"), "before")
	next.do("await hf.close()")
}

// While a page was disconnected, another user saved: both texts are kept, and neither replaces the other.
func bothSidesChanged(s *series) {
	other := s.Other(s.T)
	s.rounds(1, 20, func(s *Scene) {
		mine, theirs := Word(), Word()
		ann := s.edits("Ann", Soon)
		ann.do("type('before'); await autosave.flushNow()")
		s.Cut(true)
		ann.do("type(', " + mine + "')")
		require.NoError(s, ann.Wait(stolen, 2*browser.Limit))
		s.ends(ann, All[s.round%len(All)], mine)
		s.Cut(false)
		elsewhere := *s
		elsewhere.Stage = other
		ben := elsewhere.edits("Ben", Soon)
		require.NoError(s, ben.Wait("!autosave.readOnly", 2*browser.Limit))
		ben.do("type(', " + theirs + "'); await autosave.flushNow(); await hf.close()")

		next := s.edits("Ann", Soon)
		s.found(next, theirs, "content")
		s.found(next, mine, "draft")
		next.wait("autosave.state().drafts === 1")
		next.do("await hf.close()")
	})
}

// A project in this browser and a project with the same name on a server are two documents. No text of one gets into
// the other.
func neverMix(s *series) {
	s.yesOrNo("on the server", func(s *series, onServer bool) {
		s.ends(func(s *Scene, end Ending) { s.neverMix(end, onServer) })
	})
}

func (s *Scene) neverMix(end Ending, onServer bool) {
	here := Setup{s.Host, "web-lock"}
	mine, other := s.project("Ann"), here.holdfast(s.root, "Ann")
	if !onServer {
		mine, other = other, mine
	}
	edits := func(holdfast string) *page {
		p := s.open(holdfast)
		p.do("await edit(" + late + ")")
		return p
	}
	word, ann := Word(), edits(mine)
	ann.do("type('saved, '); await autosave.flushNow(); type('" + word + "')")
	s.ends(ann, end, word)
	ben := edits(other)
	ben.wait("!autosave.readOnly && heard('editable').length === 1")
	ben.do("type('of the other'); await autosave.flushNow()")
	assert.Equal(s, "nowhere", get[string](ben, "await places('"+word+"')"))
	assert.Equal(s, "of the other", get[string](ben, "await current()"))
	ben.do("await hf.close()")
	next := edits(mine)
	s.found(next, word, "content")
	assert.Equal(s, "nowhere", get[string](next, "await places('of the other')"))
	next.do("await hf.close()")
}
