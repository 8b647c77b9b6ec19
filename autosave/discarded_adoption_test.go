package autosave_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// readThen are drafts that call a function after each reading of a text.
type readThen struct {
	autosave.Drafts
	then func()
}

func (r readThen) Read(ctx context.Context, id string) ([]byte, error) {
	text, err := r.Drafts.Read(ctx, id)
	r.then()
	return text, err
}

// adopting opens a page that reads a draft of a dead page, and begins to edit once it may go on.
func (w *world) adopting(storage *autosavetest.DraftStorage, prepare func(*writer)) *writer {
	w.Helper()
	w.crashed(storage)
	stealer := w.stealer()
	b := w.author("b", storage)
	prepare(b)
	b.start()
	require.True(w, b.ReadOnly())
	require.NoError(w, stealer.Release(w.Context()))
	w.sleep(0)
	require.True(w, b.ReadOnly())
	return b
}

// committing is adopting, for a page that waits in the commit of the draft until the channel is closed.
func (w *world) committing(storage *autosavetest.DraftStorage) (*writer, chan<- struct{}) {
	w.Helper()
	goOn := make(chan struct{})
	return w.adopting(storage, func(b *writer) {
		b.files.Before = func(operation string) {
			if strings.HasPrefix(operation, "write history/") {
				<-goOn
			}
		}
	}), goOn
}

// The user discards a draft after the page has read it, and before the page makes it the content. The draft is gone.
func TestDraftDiscardedBeforeItsAdoption(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		goOn := make(chan struct{})
		b := w.adopting(storage, func(b *writer) {
			b.config.Drafts = readThen{b.pageDrafts, func() { <-goOn }}
		})
		require.NoError(t, b.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		close(goOn)
		w.sleep(time.Second)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved", b.shows())
		assert.Equal(t, []string{"saved"}, w.generations())
		assert.Empty(t, storedDrafts(t, storage))
		assert.Zero(t, b.State().Drafts)
	})
}

// The user discards a draft while the page makes it the content. It becomes the content, and the call says that there is no such draft.
func TestDraftDiscardedDuringItsAdoption(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		b, goOn := w.committing(storage)
		result := make(chan error, 1)
		go func() { result <- b.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard) }()
		synctest.Wait()
		close(goOn)
		require.ErrorIs(t, <-result, autosave.ErrNotFound)
		w.sleep(time.Second)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved, journalled", b.shows())
		assert.Equal(t, "saved, journalled", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// The store does not answer while a draft becomes the content. A discard rejects within its limit, and the draft stays.
func TestDraftDiscardedDuringAnAdoptionThatHangs(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		b, goOn := w.committing(storage)
		began := time.Now()
		require.ErrorIs(t, b.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard), autosave.ErrWriteFailed)
		assert.LessOrEqual(t, time.Since(began), 14*time.Second)
		assert.Equal(t, []string{"crashed: saved, journalled"}, storedDrafts(t, storage))
		close(goOn)
		w.sleep(time.Minute)
		assert.Equal(t, "saved, journalled", b.shows())
	})
}
