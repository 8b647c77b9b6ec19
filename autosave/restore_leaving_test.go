package autosave_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// The user types during a restore, and another page asks for the lock. The restore is refused as soon as its content is
// written, and the page's text is saved once.
func TestRestoreIsRefusedWhileThePageLeaves(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, first := w.restoring()
		restored := a.restore(t.Context(), first)
		w.sleep(500 * time.Millisecond)
		a.typed("!")
		began := time.Now()
		w.ghostAsks() // nobody takes the lock for ten seconds
		require.ErrorIs(t, <-restored, autosave.ErrReadOnly)
		assert.Equal(t, 500*time.Millisecond, time.Since(began))
		w.sleep(time.Minute)
		assert.Equal(t, []string{"one two!", "one", "one two", "one"}, w.generations())
	})
}

// The same with a draft, which the page would load by an event.
func TestResolutionIsRefusedWhileThePageLeaves(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		c := w.slowMerger(storage)
		result := make(chan error, 1)
		go func() { result <- c.ResolveDraft(context.Background(), "a-1", autosave.AsContent) }()
		w.sleep(500 * time.Millisecond)
		began := time.Now()
		w.ghostAsks()
		require.ErrorIs(t, <-result, autosave.ErrReadOnly)
		assert.Equal(t, 500*time.Millisecond, time.Since(began))
		w.sleep(time.Minute)
		assert.Equal(t, []string{"one, theirs", "one, mine", "one, theirs", "one"}, w.generations())
		assert.Equal(t, "one, theirs", c.shows())
	})
}

// A page has restored a generation and typed on. Another page saves a text that goes on with what the first page showed
// before. That is another text: the first page loads it.
func TestRestoredTextIsAnotherText(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		first, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		a.types(", two")
		_, err = a.FlushNow(t.Context())
		require.NoError(t, err)
		_, err = a.Restore(t.Context(), first.ID)
		require.NoError(t, err)
		a.mu.Lock()
		a.text = "one"
		a.renew(first.ID)
		a.mu.Unlock()
		a.types("!")
		synctest.Wait()                         // no operation on the files is under way
		a.failing("seal", autosavetest.Refused) // otherwise the draft names the text
		stealer := w.stealer()
		w.sleep(time.Second)
		_, err = w.disk.Page().Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("one, two, theirs"), Draft: "a-1", Number: 99,
			Token: stealer.Token, SavedAt: time.Now()})
		require.NoError(t, err)
		require.NoError(t, stealer.Release(t.Context()))
		synctest.Wait()
		a.files.Fails = nil
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Minute)
		assert.Equal(t, "one, two, theirs", w.saved())
		assert.Equal(t, "one, two, theirs", a.shows())
		assert.Equal(t, []string{"lock-lost: one!"}, storedDrafts(t, storage))
	})
}
