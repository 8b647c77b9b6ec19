package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page with unsaved text is suspended, and another page decides about its draft. It says that it has nothing unsaved, and loads what is saved
// as it wakes.
func TestDraftOfASuspendedPageIsDecidedElsewhere(t *testing.T) {
	for as, saved := range map[autosave.Resolution]string{autosave.AsDiscard: "theirs", autosave.AsGeneration: "theirs", autosave.AsContent: "one, mine"} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				w.stealFrom(a, ", mine")
				w.overwritten("theirs")
				require.NoError(t, a.Suspend(t.Context()))
				b := w.author("b", storage).start()
				require.NoError(t, b.ResolveDraft(t.Context(), "a-1", as))
				w.sleep(time.Second)
				assert.Zero(t, a.State().PendingBytes)
				assert.Zero(t, a.State().Drafts)
				require.NoError(t, b.Dispose(t.Context()))
				require.NoError(t, a.Resume(t.Context()))
				assert.Equal(t, saved, a.shows())
				assert.Equal(t, saved, w.saved())
			})
		})
	}
}

// viewerWithDraft opens a page that has saved "one" and lost its lock to the returned lease. Then its user has typed ", mine", of which the page
// has made a draft by itself.
func (w *world) viewerWithDraft(storage *autosavetest.DraftStorage) (a *writer, giveBack func()) {
	w.Helper()
	a = w.savedOne(storage)
	stealer := w.stealer()
	w.sleep(100 * time.Millisecond)
	require.True(w, a.ReadOnly())
	a.types(", mine")
	_, err := a.pageDrafts.Seal(w.Context(), autosave.CauseLockLost)
	require.NoError(w, err)
	require.Equal(w, []string{"one, mine"}, a.texts())
	return a, func() { require.NoError(w, stealer.Release(w.Context())) }
}

// Another page discards the draft that a viewer has made by itself. The viewer says that it has nothing unsaved, and it does not save the
// discarded text as it edits again.
func TestDiscardedTextOfAViewerIsNotSaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, giveBack := w.viewerWithDraft(storage)
		b := w.author("b", storage)
		b.config.NoStandby = true
		b.start()
		require.NoError(t, b.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		w.sleep(time.Second)
		assert.Zero(t, a.State().PendingBytes)
		giveBack()
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Minute)
		assert.Equal(t, "one", a.shows())
		assert.Equal(t, "one", w.saved())
	})
}

// Another page makes the draft of a viewer the content. The viewer has nothing unsaved then. Later text of its user is a new draft.
func TestAdoptedTextOfAViewerIsNotUnsaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, giveBack := w.viewerWithDraft(storage)
		giveBack()
		b := w.author("b", storage).start()
		require.Equal(t, "one, mine", b.shows())
		w.sleep(time.Second)
		assert.Zero(t, a.State().PendingBytes)
		assert.Zero(t, a.State().Drafts)
		a.types(", more")
		assert.NotZero(t, a.State().PendingBytes)
		require.ErrorIs(t, a.Dispose(t.Context()), autosave.ErrReadOnly)
		stored := storedDrafts(t, storage)
		require.Len(t, stored, 1)
		assert.Contains(t, stored[0], ": one, mine, more") // made when the state was asked for, or by Dispose
	})
}

// A page loses its lock while it saves, and another page makes its draft the content. Then the save fails, or the page is suspended before that:
// all text is saved nevertheless.
func TestSaveFailsAfterAnotherPageHasSavedItsText(t *testing.T) {
	for name, sleeps := range map[string]bool{"it stays": false, "it sleeps": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.savedOne(storage)
				b := w.author("b", storage).start()
				a.slow()
				a.types(", two")
				w.sleep(600 * time.Millisecond)
				require.NotEqual(t, autosave.PhaseIdle, a.State().Phase)
				require.NoError(t, w.stealer().Release(t.Context()))
				w.sleep(10 * time.Millisecond)
				require.Equal(t, "one, two", b.shows())
				if sleeps {
					require.NoError(t, a.Suspend(t.Context()))
				}
				w.sleep(2 * time.Second)
				assert.True(t, a.ReadOnly())
				assert.Zero(t, a.State().PendingBytes)
			})
		})
	}
}

// A page loses its lock while it restores a generation. Its own text was saved before.
func TestLockStolenDuringARestoreLeavesNothingUnsaved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		a.slow()
		restored := make(chan error, 1)
		go func() { _, err := a.Restore(t.Context(), autosave.Current); restored <- err }()
		w.sleep(100 * time.Millisecond)
		require.Equal(t, autosave.PhaseWriting, a.State().Phase)
		w.stealer()
		w.sleep(2 * time.Second)
		require.ErrorIs(t, <-restored, autosave.ErrReadOnly)
		assert.Zero(t, a.State().PendingBytes)
	})
}
