package autosavetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// DraftPage is one page in the form that the suite of drafts needs: its Drafts, and its operations on its own draft.
type DraftPage struct {
	autosave.Drafts
	// Journal writes a snapshot and keeps the draft open. It returns when another page would find the snapshot if this
	// one died. It ignores the Cause of the draft.
	Journal func(d autosave.Draft, text []byte)
	// Type sets the text that no commit contains, which Seal stores. nil means that everything is saved.
	Type func(d autosave.Draft, text []byte)
	// Saved informs the page that a commit contains its draft up to the number.
	Saved func(id string, number int64)
	// End ends the page without notice, and returns when its files are closed.
	End func()
}

// RunDrafts runs the suite that every Drafts must pass. open returns an empty storage: a function that opens a page of
// it.
func RunDrafts(t *testing.T, open func(t *testing.T) func() DraftPage) {
	for _, c := range []struct {
		name string
		run  func(*drafts)
	}{
		{"an empty storage has no drafts", testNoDrafts},
		{"the draft of a live page is not listed", testLiveDraft},
		{"the draft of a page that is gone is found", testLeftDraft},
		{"a sealed draft is listed at once", testSealed},
		{"everything saved seals nothing", testNothingToSeal},
		{"a later seal replaces the draft", testSealedAgain},
		{"a sealed draft is opened again", testReopened},
		{"a lower number replaces nothing", testLateNumber},
		{"a commit empties the draft", testSavedDraft},
		{"removing spares a later number", testRemoveNumber},
		{"a discarded text does not come back", testDiscarded},
		{"the newest draft is first", testDraftOrder},
		{"drafts of several lineages are kept apart", testLineages},
		{"any text is kept", testDraftTexts},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&drafts{T: t, open: open(t), at: time.UnixMilli(1_700_000_000_000)}) })
	}
}

type drafts struct {
	*testing.T
	open func() DraftPage
	at   time.Time
}

// draft returns the description of a snapshot, a second after the last one.
func (h *drafts) draft(id string, number int64) autosave.Draft {
	h.at = h.at.Add(time.Second)
	return autosave.Draft{ID: id, Number: number, Path: []string{"a/b", "c"}, OwnerID: "owner", OwnerName: "Ada 🦀", At: h.at, Base: "12-3"}
}

// holds fails unless the page lists exactly these texts, the newest first.
func (h *drafts) holds(p DraftPage, want ...string) []autosave.Draft {
	h.Helper()
	all, err := p.List(h.Context())
	require.NoError(h, err)
	got := []string{}
	for _, d := range all {
		text, err := p.Read(h.Context(), d.ID)
		require.NoError(h, err)
		assert.Equal(h, int64(len(text)), d.Bytes)
		got = append(got, string(text))
	}
	require.Equal(h, strings.Join(want, "|"), strings.Join(got, "|"))
	return all
}

func (h *drafts) seal(p DraftPage, cause autosave.Cause) *autosave.Draft {
	h.Helper()
	d, err := p.Seal(h.Context(), cause)
	require.NoError(h, err)
	return d
}

func testNoDrafts(h *drafts) {
	p := h.open()
	h.holds(p)
	_, err := p.Read(h.Context(), "00000000-0000-4000-8000-000000000000")
	require.ErrorIs(h, err, autosave.ErrNotFound)
	require.NoError(h, p.Remove(h.Context(), "00000000-0000-4000-8000-000000000000", 9))
	h.holds(p)
}

func testLiveDraft(h *drafts) {
	p, other := h.open(), h.open()
	p.Journal(h.draft("a", 1), []byte("typing"))
	h.holds(p)
	h.holds(other)
	_, err := other.Read(h.Context(), "a")
	require.ErrorIs(h, err, autosave.ErrNotFound)
}

func testLeftDraft(h *drafts) {
	p := h.open()
	p.Journal(h.draft("a", 1), []byte("first"))
	want := h.draft("a", 2)
	p.Journal(want, []byte("first, second"))
	p.End()
	got := h.holds(h.open(), "first, second")
	want.Cause, want.Bytes = autosave.CauseCrashed, int64(len("first, second"))
	assert.Equal(h, []autosave.Draft{want}, got)
}

func testSealed(h *drafts) {
	for _, cause := range []autosave.Cause{autosave.CauseLockLost, autosave.CauseOffline, autosave.CauseSaveFailed, autosave.CauseClosed} {
		p, other := h.open(), h.open()
		want := h.draft("a", 7)
		want.Cause, want.Bytes = cause, 4
		p.Type(want, []byte("mine"))
		got := h.seal(p, cause)
		require.NotNil(h, got)
		assert.Equal(h, want, *got)
		assert.Equal(h, []autosave.Draft{want}, h.holds(other, "mine"))
		h.holds(p, "mine")
		require.NoError(h, other.Remove(h.Context(), "a", 7))
		p.End()
		other.End()
	}
}

func testNothingToSeal(h *drafts) {
	p := h.open()
	assert.Nil(h, h.seal(p, autosave.CauseLockLost))
	p.Journal(h.draft("a", 1), []byte("typing"))
	p.Type(autosave.Draft{}, nil)
	p.Saved("a", 1)
	assert.Nil(h, h.seal(p, autosave.CauseLockLost))
	h.holds(h.open())
}

func testSealedAgain(h *drafts) {
	p, other := h.open(), h.open()
	p.Type(h.draft("a", 1), []byte("one"))
	h.seal(p, autosave.CauseLockLost)
	p.Type(h.draft("a", 2), []byte("one, two"))
	require.Equal(h, int64(2), h.seal(p, autosave.CauseClosed).Number)
	all := h.holds(other, "one, two")
	assert.Equal(h, autosave.CauseClosed, all[0].Cause)
}

func testReopened(h *drafts) {
	p, other := h.open(), h.open()
	p.Type(h.draft("a", 1), []byte("one"))
	h.seal(p, autosave.CauseLockLost)
	p.Journal(h.draft("a", 2), []byte("one, two"))
	h.holds(other)
	p.End()
	h.holds(other, "one, two")
}

func testLateNumber(h *drafts) {
	p := h.open()
	p.Journal(h.draft("a", 5), []byte("later"))
	p.Journal(h.draft("a", 4), []byte("earlier"))
	p.End()
	h.holds(h.open(), "later")
}

func testSavedDraft(h *drafts) {
	p := h.open()
	p.Journal(h.draft("a", 1), []byte("one"))
	p.Saved("a", 1)
	p.Journal(h.draft("a", 2), []byte("one, two"))
	p.Saved("a", 1) // an answer that arrives late
	p.End()
	other := h.open()
	h.holds(other, "one, two")

	p = h.open()
	p.Journal(h.draft("b", 3), []byte("saved"))
	p.Saved("b", 4)
	p.End()
	h.holds(other, "one, two")
}

func testRemoveNumber(h *drafts) {
	p, other := h.open(), h.open()
	p.Type(h.draft("a", 5), []byte("mine"))
	h.seal(p, autosave.CauseLockLost)
	require.NoError(h, other.Remove(h.Context(), "a", 4))
	h.holds(other, "mine")
	require.NoError(h, other.Remove(h.Context(), "a", 5))
	require.NoError(h, other.Remove(h.Context(), "a", 5), "again")
	h.holds(other)
	h.holds(p)
	p.Type(h.draft("a", 6), []byte("mine, and more"))
	h.seal(p, autosave.CauseLockLost)
	h.holds(other, "mine, and more")
}

func testDiscarded(h *drafts) {
	p, other := h.open(), h.open()
	p.Type(h.draft("a", 5), []byte("mine"))
	h.seal(p, autosave.CauseLockLost)
	require.NoError(h, other.Discard(h.Context(), "a", 4))
	h.holds(other, "mine")
	require.NoError(h, other.Discard(h.Context(), "a", 5))
	h.holds(other)
	require.NoError(h, other.Discard(h.Context(), "a", 5), "again")
	for range 2 {
		p.Type(h.draft("a", 6), []byte("mine"))
		assert.Nil(h, h.seal(p, autosave.CauseLockLost), "the same text")
		p.Journal(h.draft("a", 7), []byte("mine"))
		p.End()
		h.holds(other)
		p = h.open()
	}
	p.Type(h.draft("a", 8), []byte("mine, and more"))
	require.NotNil(h, h.seal(p, autosave.CauseLockLost))
	h.holds(other, "mine, and more")
	require.NoError(h, other.Remove(h.Context(), "a", 8))
	p.Type(h.draft("a", 9), []byte("mine"))
	require.NotNil(h, h.seal(p, autosave.CauseLockLost), "the user has typed it again")
	h.holds(other, "mine")
}

func testDraftOrder(h *drafts) {
	for i, id := range []string{"b", "c", "a"} {
		p := h.open()
		p.Journal(h.draft(id, int64(10-i)), []byte(id))
		p.End()
	}
	h.holds(h.open(), "a", "c", "b")
}

func testLineages(h *drafts) {
	p, other := h.open(), h.open()
	p.Type(h.draft("a", 1), []byte("first text"))
	h.seal(p, autosave.CauseLockLost)
	p.Type(h.draft("b", 2), []byte("second text"))
	h.seal(p, autosave.CauseLockLost)
	h.holds(other, "second text", "first text")
	require.NoError(h, other.Remove(h.Context(), "b", 9))
	h.holds(other, "first text")
}

func testDraftTexts(h *drafts) {
	for i, text := range []string{"", "\x00\xff\xfe", "日本語 🦀 e\u0301 \u202e", strings.Repeat("0123456789abcdef", 1<<20/16)} {
		p := h.open()
		d := h.draft(fmt.Sprint("a", i), 1)
		if i%2 == 0 {
			p.Journal(d, []byte(text))
		} else {
			p.Type(d, []byte(text))
			h.seal(p, autosave.CauseClosed)
		}
		p.End()
		next := h.open()
		all, err := next.List(h.Context())
		require.NoError(h, err)
		require.Len(h, all, 1)
		got, err := next.Read(h.Context(), d.ID)
		require.NoError(h, err)
		require.True(h, text == string(got), "text %d", i)
		require.NoError(h, next.Remove(h.Context(), d.ID, 1))
		next.End()
	}
}
