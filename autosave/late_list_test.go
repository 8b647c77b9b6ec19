package autosave_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// stopsAt makes the page wait once, in the first operation with that prefix, until goOn is called. stopped reports whether it waits.
func (a *writer) stopsAt(prefix string) (stopped func() bool, goOn func()) {
	waits, end := false, make(chan struct{})
	a.files.Before = func(operation string) {
		if !waits && strings.HasPrefix(operation, prefix) {
			waits = true
			<-end
		}
	}
	return func() bool { synctest.Wait(); return waits }, func() { close(end) }
}

// listing begins to list the drafts, and waits in the list until goOn is called. Then the channel has the result.
func (a *writer) listing() (listed <-chan []autosave.Draft, goOn func()) {
	result := make(chan []autosave.Draft, 1)
	stopped, goOn := a.stopsAt("list index") // the drafts are listed by then
	go func() {
		drafts, err := a.Drafts(a.w.Context())
		assert.NoError(a.w, err)
		result <- drafts
	}()
	require.True(a.w, stopped())
	return result, goOn
}

// A draft is discarded while a slow call lists the drafts. The late list does not bring it back.
func TestDraftDiscardedDuringAListIsNotCounted(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage).start()
		require.Equal(t, 1, c.State().Drafts)
		listed, goOn := c.listing()
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		goOn()
		assert.Empty(t, <-listed)
		assert.Zero(t, c.State().Drafts)
		w.sleep(0)
		assert.Zero(t, last(c.page, autosave.EventPhase).State.Drafts)
	})
}

// The text of a page becomes a draft while a slow call lists the drafts. The late list does not forget it.
func TestDraftSealedDuringAListIsCounted(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage).start()
		listed, goOn := c.listing()
		c.types("!")
		w.stealer()
		w.sleep(100 * time.Millisecond)
		require.True(t, c.ReadOnly())
		require.Equal(t, 2, c.State().Drafts)
		goOn()
		assert.Len(t, <-listed, 2)
		assert.Equal(t, 2, c.State().Drafts)
	})
}

// A draft is discarded after an editor that begins has left it to the user. The user is not asked about it.
func TestDraftDiscardedDuringALoadIsNotOffered(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		editor := w.author("editor", storage).start()
		c := w.author("c", storage).start()
		stopped, goOn := c.stopsAt("read history/")
		require.NoError(t, editor.Dispose(t.Context()))
		require.True(t, stopped())
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		goOn()
		w.sleep(time.Second)
		require.False(t, c.ReadOnly())
		assert.Equal(t, "one, theirs", c.shows())
		assert.Empty(t, c.waits)
		assert.Empty(t, c.disputes())
		assert.Zero(t, c.State().Drafts)
	})
}

// A draft is discarded in another page after an editor that begins has left it to its user. That user is not asked about it either.
func TestDraftDiscardedElsewhereDuringALoadIsNotOffered(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		editor, other := w.author("editor", storage).start(), w.author("other", storage)
		c := w.author("c", storage).start()
		other.start()
		stopped, goOn := c.stopsAt("read history/")
		require.NoError(t, editor.Dispose(t.Context()))
		require.True(t, stopped())
		require.NoError(t, other.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		goOn()
		w.sleep(time.Second)
		require.False(t, c.ReadOnly())
		assert.Empty(t, c.waits)
		assert.Empty(t, c.disputes())
		assert.Zero(t, c.State().Drafts)
	})
}
