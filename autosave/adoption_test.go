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
func (w *world) crashed(storage *autosavetest.DraftStorage) {
	w.Helper()
	a := w.authorOf(storage, "saved")
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
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.crashed(storage)
		b := w.author("b", storage)
		var full atomic.Bool
		full.Store(true)
		b.store = uncommitting{b.store, &full}
		b.start()
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved", b.shows())
		require.ErrorIs(t, b.State().LastErr, autosave.ErrQuota)
		assert.Empty(t, b.disputes())
		assert.Len(t, b.waits, 1)
		assert.Equal(t, []string{"crashed: saved, journalled"}, storedDrafts(t, storage))
		full.Store(false)
		require.NoError(t, b.Dispose(t.Context()))
		assert.Equal(t, "saved, journalled", w.author("c", storage).start().shows())
	})
}

// A page that could not exclude the previous editor decides about no draft: that editor may still save.
func TestDraftWaitsWhileThePredecessorIsNotShutOut(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.crashed(storage)
		b := w.author("b", storage)
		disk := b.unwritable()
		b.start()
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved", b.shows())
		assert.Equal(t, []string{"saved"}, w.generations())
		assert.Equal(t, 1, b.State().Drafts)
		assert.Equal(t, []string{"crashed: saved, journalled"}, storedDrafts(t, storage))
		disk.full.Store(false)
		w.sleep(time.Minute)
		assert.Equal(t, []string{"saved"}, w.generations(), "this page has changed nothing")
		require.NoError(t, b.Dispose(t.Context()))
		assert.Equal(t, "saved, journalled", w.author("c", storage).start().shows())
	})
}

// unreadable are drafts that are listed and cannot be read.
type unreadable struct{ autosave.Drafts }

func (unreadable) Read(context.Context, string) ([]byte, error) { return nil, autosavetest.ErrDisk }

// A draft that cannot be read waits, and the content stays.
func TestDraftThatCannotBeReadWaits(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.crashed(storage)
		b := w.author("b", storage)
		b.config.Drafts = unreadable{b.pageDrafts}
		b.start()
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved", b.shows())
		assert.Equal(t, []string{"saved"}, w.generations())
		require.ErrorIs(t, b.State().LastErr, autosave.ErrReadFailed)
		assert.Len(t, b.waits, 1)
		assert.Equal(t, []string{"crashed: saved, journalled"}, storedDrafts(t, storage))
		_, err := b.Read(t.Context(), "a-1")
		require.ErrorIs(t, err, autosave.ErrReadFailed)
		require.ErrorIs(t, err, autosavetest.ErrDisk)
	})
}

// The storage of the content was emptied. The draft of a dead page becomes the content, whatever it was typed on.
func TestDraftOutlivesAnEmptiedStorage(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.crashed(storage)
		w.disk.Evict()
		b := w.author("b", storage).start()
		assert.Equal(t, "saved, journalled", b.shows())
		assert.Equal(t, "saved, journalled", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
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
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.crashed(storage)
		var reads atomic.Int32
		b := w.author("b", storage)
		b.store = countingReads{b.store, &reads}
		b.start()
		assert.Zero(t, reads.Load())
		require.NoError(t, b.Dispose(t.Context()))
		for _, id := range []string{"one", "two", "three"} {
			other := storage.Page()
			other.Journal(autosave.Draft{ID: id, Number: 1, At: time.Now(), Base: "1-1"}, []byte(id))
			other.End()
		}
		c := w.author("c", storage)
		c.store = countingReads{c.store, &reads}
		c.start()
		assert.Len(t, c.disputes(), 3)
		assert.Equal(t, int32(1), reads.Load())
	})
}

// A page that saves a text which was typed before it could edit saves that once, and says so. Another page's draft is
// nothing that this page has saved.
func TestAdoptedTextIsSavedOnce(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.crashed(storage)
		b := w.author("b", storage).start()
		assert.Zero(t, b.count(autosave.EventSaved))
		all, err := b.History(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Dispose(t.Context()))
		c := w.author("c", storage)
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
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		require.NoError(t, w.savedOne(storage).Dispose(t.Context()))
		a := w.author("b", storage)
		a.config.NoStandby = true
		a.config.Merge = func(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
			return autosave.Bytes(string(c.Theirs) + strings.TrimPrefix(string(c.Mine), string(c.Base))), nil
		}
		a.start()
		w.stealFrom(a, ", mine")
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs, mine", a.shows())
		assert.Equal(t, []string{"one, mine"}, a.offered(), "the page is offered its text at the loss of the lock")
	})
}

// A page that was killed between a commit and the removal of the draft leaves both. No page offers that draft.
func TestContainedDraftIsNotListed(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, b := w.author("a", storage).start(), w.author("b", storage).start()
		a.types("one")
		w.sleep(time.Second)
		left := storage.Page()
		left.Journal(autosave.Draft{ID: a.id, Number: a.number, At: time.Now()}, []byte("one"))
		left.End()
		require.Len(t, storedDrafts(t, storage), 1)
		assert.Empty(t, b.texts())
		assert.Empty(t, a.texts())
	})
}

// The store refuses the token of a page that is about to edit: the page does not edit, whichever text it was about to save first.
func TestRefusedAdoptionKeepsThePageReadonly(t *testing.T) {
	for name, leave := range map[string]func(w *world, storage *autosavetest.DraftStorage, b *writer){
		"a draft that continues the content": func(w *world, storage *autosavetest.DraftStorage, _ *writer) { w.crashed(storage) },
		"a draft that is merged":             func(w *world, storage *autosavetest.DraftStorage, _ *writer) { w.dispute(storage) },
		"its own text, and a draft waits": func(w *world, storage *autosavetest.DraftStorage, b *writer) {
			w.dispute(storage)
			all, err := w.disk.Page().List(w.Context())
			require.NoError(w, err)
			b.config.Shown, b.text = all[0].ID, "one, theirs"
			b.types(", more")
		},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				b := w.author("b", storage)
				b.config.Merge = func(context.Context, autosave.Conflict) (autosave.Content, error) {
					return autosave.Bytes("merged"), nil
				}
				leave(w, storage, b)
				b.store = refusing{b.store}
				b.start()
				w.sleep(time.Minute)
				assert.True(t, b.ReadOnly())
				assert.Zero(t, b.count(autosave.EventEditable))
				require.ErrorIs(t, b.State().LastErr, autosave.ErrStaleToken)
				assert.Contains(t, strings.Join(storedDrafts(t, storage), "; "), "crashed: ")
			})
		})
	}
}

// A page that has the lock back saves the text that it had sealed. No draft of it is counted any more.
func TestSavedDraftIsNotCounted(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.readOnlyTypist(storage, ", more")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		_, err := a.Drafts(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, a.State().Drafts)
		w.sleep(time.Second)
		assert.Zero(t, a.State().Drafts)
		assert.Empty(t, storage.Texts())
		a.types("!")
		assert.Empty(t, a.texts())
	})
}

// The page gets an event for each draft that it does not know: of another page with the same number, or with more text.
func TestEachDraftIsReportedOnce(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage)
		c.config.NoStandby = true
		c.start()
		require.Len(t, c.reportedDrafts(), 1)
		number := c.reportedDrafts()[0].Number
		for i, news := range []autosave.Draft{{ID: "other", Number: number}, {ID: "other", Number: number + 1}} {
			require.NoError(t, w.stealer().Release(t.Context()))
			news.At, news.Base = time.Now(), "1-1"
			other := storage.Page()
			other.Journal(news, []byte("other"))
			other.End()
			w.sleep(time.Second)
			require.NoError(t, c.RequestEdit(t.Context(), autosave.EditOptions{}))
			require.Len(t, c.reportedDrafts(), i+2)
			assert.Equal(t, news.Number, c.reportedDrafts()[i+1].Number)
			assert.Equal(t, "other", c.reportedDrafts()[i+1].ID)
		}
	})
}

// A merge that never comes back holds the page up once, not once for each conflict.
func TestMergeThatHangsIsAskedOnce(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		other := storage.Page()
		other.Journal(autosave.Draft{ID: "other", Number: 1, At: time.Now(), Base: "1-1"}, []byte("other"))
		other.End()
		c := w.author("c", storage)
		c.config.Merge = func(ctx context.Context, _ autosave.Conflict) (autosave.Content, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		c.start()
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.Len(t, c.disputes(), 2)
	})
}

// The drafts cannot be listed as the page gets the lock back. Its text is offered from memory.
func TestTextIsOfferedIfDraftsCannotBeListed(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		w.overwritten("theirs")
		a.types(", more")
		a.failing("list drafts", autosavetest.Refused)
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"one, mine", "one, mine, more"}, a.offered())
		require.Len(t, a.reportedDrafts(), 2, "one event at the loss of the lock, one before another text was loaded")
		assert.Equal(t, a.reportedDrafts()[0].Number+1, a.reportedDrafts()[1].Number)
	})
}

// A page removes the draft that it has sealed as soon as its text is saved, also where its journal does not.
func TestSavedDraftIsRemoved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.Listener, a.config.NoStandby = a.hear, true
		a.start()
		w.stealFrom(a, "mine")
		require.Len(t, storedDrafts(t, storage), 1)
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, "mine", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// The store cannot save the page's own text as the page gets the lock back. No draft takes its place, not even one that continues the content.
func TestOwnTextThatCannotBeSavedComesFirst(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		var full atomic.Bool
		a.store = uncommitting{a.store, &full}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		base := a.base
		w.stealFrom(a, ", mine")
		other := storage.Page()
		other.Journal(autosave.Draft{ID: "other", Number: 1, At: time.Now(), Base: base}, []byte("one, other"))
		other.End()
		full.Store(true)
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "one, mine", a.shows())
		assert.Len(t, a.waits, 1)
		require.ErrorIs(t, a.State().LastErr, autosave.ErrQuota)
		full.Store(false)
		w.sleep(time.Minute)
		assert.Equal(t, "one, mine", w.saved())
		assert.Equal(t, []string{"crashed: one, other"}, storedDrafts(t, storage))
	})
}

// The journal of a dead page names the generation that it began with. The base of the conflict is the last one that the page has saved.
func TestBaseIsTheLastGenerationOfTheDraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		first := a.base
		a.types(", two")
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.overwritten("theirs")
		left := storage.Page()
		left.Journal(autosave.Draft{ID: a.id, Number: a.number + 1, At: time.Now(), Base: first}, []byte("one, two, three"))
		left.End()
		assert.Equal(t, []string{"one, two|one, two, three|theirs"}, w.author("b", storage).start().disputes())
	})
}

// A page dies after a save of its text, before it knows that its next snapshot builds on it: the draft goes on with it.
func TestDraftContinuesTheLastGenerationOfItsText(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		first := a.base
		a.types(", two")
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		left := storage.Page()
		left.Journal(autosave.Draft{ID: a.id, Number: a.number + 1, At: time.Now(), Base: first}, []byte("one, two, three"))
		left.End()
		b := w.author("b", storage).start()
		assert.Equal(t, "one, two, three", b.shows())
		assert.Empty(t, b.disputes())
		assert.Empty(t, storedDrafts(t, storage))
	})
}
