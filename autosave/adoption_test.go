package autosave_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// crashed leaves the content "saved" and a draft of a dead page that continues it.
func (w *world) crashed(shelf *autosavetest.DraftStorage) {
	w.Helper()
	a := w.author("a", shelf).start()
	a.types("saved")
	w.sleep(time.Second)
	a.types(", journalled")
	a.die()
}

// uncommitting is a store that refuses commits while full is set.
type uncommitting struct {
	autosave.Store
	full *atomic.Bool
}

func (u uncommitting) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	if u.full.Load() {
		return autosave.Generation{}, autosave.ErrQuota
	}
	return u.Store.Commit(ctx, c)
}

// A draft that continues the content waits while the store cannot save it. It is no conflict.
func TestDraftThatCannotBeSavedWaits(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		w.crashed(shelf)
		b := w.author("b", shelf)
		var full atomic.Bool
		full.Store(true)
		b.store = uncommitting{b.store, &full}
		b.start()
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved", b.shows())
		require.ErrorIs(t, b.State().LastErr, autosave.ErrQuota)
		assert.Empty(t, b.disputes())
		assert.Len(t, b.waits, 1)
		assert.Equal(t, []string{"crashed: saved, journalled"}, storedDraft(t, shelf))
		full.Store(false)
		require.NoError(t, b.Dispose(t.Context()))
		assert.Equal(t, "saved, journalled", w.author("c", shelf).start().shows())
	})
}

// unreadable are drafts that are listed and cannot be read.
type unreadable struct{ autosave.Drafts }

func (unreadable) Read(context.Context, string) ([]byte, error) { return nil, autosavetest.ErrDisk }

// A draft that cannot be read waits, and the content stays.
func TestDraftThatCannotBeReadWaits(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		w.crashed(shelf)
		b := w.author("b", shelf)
		b.config.Drafts = unreadable{b.desk}
		b.start()
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved", b.shows())
		assert.Equal(t, []string{"saved"}, w.generations())
		require.ErrorIs(t, b.State().LastErr, autosave.ErrReadFailed)
		assert.Len(t, b.waits, 1)
		assert.Equal(t, []string{"crashed: saved, journalled"}, storedDraft(t, shelf))
	})
}

// The storage of the content was emptied. The draft of a dead page becomes the content, whatever it was typed on.
func TestDraftOutlivesAnEmptiedStorage(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		w.crashed(shelf)
		w.disk.Evict()
		b := w.author("b", shelf).start()
		assert.Equal(t, "saved, journalled", b.shows())
		assert.Equal(t, "saved, journalled", w.saved())
		assert.Empty(t, storedDraft(t, shelf))
	})
}

// countingReads is a store that counts how often a content was read.
type countingReads struct {
	autosave.Store
	n *atomic.Int32
}

func (c countingReads) Read(ctx context.Context, id string) ([]byte, error) {
	c.n.Add(1)
	return c.Store.Read(ctx, id)
}

// However many drafts there are, the page reads the content once, and not at all if a draft takes its place.
func TestContentIsReadOnce(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		w.crashed(shelf)
		var reads atomic.Int32
		b := w.author("b", shelf)
		b.store = countingReads{b.store, &reads}
		b.start()
		assert.Zero(t, reads.Load())
		require.NoError(t, b.Dispose(t.Context()))
		for _, id := range []string{"one", "two", "three"} {
			other := shelf.Page()
			other.Journal(autosave.Draft{ID: id, Number: 1, At: time.Now(), Base: "1-1"}, []byte(id))
			other.End()
		}
		c := w.author("c", shelf)
		c.store = countingReads{c.store, &reads}
		c.start()
		assert.Len(t, c.disputes(), 3)
		assert.Equal(t, int32(1), reads.Load())
	})
}

// A page that saves a text which was typed before it could edit saves that once, and says so. Another page's draft is
// nothing that this page has saved.
func TestAdoptedTextIsSavedOnce(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		w.crashed(shelf)
		b := w.author("b", shelf).start()
		assert.Zero(t, b.count(autosave.EventSaved))
		all, err := b.History(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Dispose(t.Context()))
		c := w.author("c", shelf)
		c.text, c.base = "saved, journalled", all[0].ID // it shows what is saved before it is known who edits
		c.types(", typed")
		c.start()
		w.sleep(time.Minute)
		assert.Equal(t, 1, c.count(autosave.EventSaved))
		assert.Equal(t, []string{"saved, journalled, typed", "saved, journalled", "saved"}, w.generations())
		assert.Zero(t, c.State().PendingBytes)
	})
}

// Its own text was merged as the page took the lock back: it is not offered again.
func TestMergedTextIsNotOffered(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		require.NoError(t, w.savedOne(shelf).Dispose(t.Context()))
		a := w.author("b", shelf)
		a.config.NoStandby = true
		a.config.Merge = func(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
			return autosave.Bytes(string(c.Theirs) + strings.TrimPrefix(string(c.Mine), string(c.Base))), nil
		}
		a.start()
		w.robbed(a, ", mine")
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs, mine", a.shows())
		assert.Equal(t, []string{"one, mine"}, a.offered(), "as the lock was lost")
	})
}

// A page that was killed between a commit and the removal of the draft leaves both. No page offers that draft.
func TestContainedDraftIsNotListed(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, shelf *autosavetest.DraftStorage) {
		a, b := w.author("a", shelf).start(), w.author("b", shelf).start()
		a.types("one")
		w.sleep(time.Second)
		left := shelf.Page()
		left.Journal(autosave.Draft{ID: a.id, Number: a.number, At: time.Now()}, []byte("one"))
		left.End()
		require.Len(t, storedDraft(t, shelf), 1)
		assert.Empty(t, b.texts())
		assert.Empty(t, a.texts())
	})
}
