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

// failing makes the operations of a page fail that begin with this.
func (p *page) failing(prefix string, f autosavetest.Fault) {
	p.files.Fails = func(operation string) autosavetest.Fault {
		if strings.HasPrefix(operation, prefix) {
			return f
		}
		return 0
	}
}

// uncancellableStore is a store whose first commit takes the content and then a second, whatever becomes of its context. Then it hangs or succeeds.
type uncancellableStore struct {
	autosave.Store
	first *atomic.Bool
	hang  chan struct{}
}

func (h uncancellableStore) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	if h.first.CompareAndSwap(false, true) {
		taken, err := c.Take(ctx)
		c.Take = func(context.Context) (autosave.Content, error) { return taken, err }
		time.Sleep(time.Second)
		if h.hang != nil {
			<-h.hang
		}
	}
	return h.Store.Commit(context.WithoutCancel(ctx), c)
}

// A save that was under way when the lock was lost succeeds: nothing is unsaved any more, and nothing is offered.
func TestSaveThatSucceedsAfterTheLockIsLost(t *testing.T) {
	for name, typed := range map[string]string{"nothing was typed since": "", "something was typed since": "!"} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.store = uncancellableStore{a.store, new(atomic.Bool), nil}
				a.open()
				a.typed("text")
				w.sleep(1450 * time.Millisecond)
				lease := w.stealer() // just before the save ends
				w.sleep(10 * time.Millisecond)
				if typed != "" {
					a.typed(typed)
				}
				a.forget()
				w.sleep(time.Second)
				require.Equal(t, "text", w.saved())
				assert.Equal(t, typed != "", a.State().PendingBytes > 0)
				require.NoError(t, lease.Release(t.Context()))
				w.sleep(time.Second / 10)
				assert.False(t, a.ReadOnly())
				assert.Nil(t, last(a, autosave.EventEditable).Unsaved)
				w.sleep(time.Minute)
				assert.Equal(t, "text"+typed, w.saved())
				assert.Equal(t, 1+len(typed), len(w.generations()), "a saved text is not saved again")
			})
		})
	}
}

// A save hangs as the lock is lost. It does not hold up the saves under the next lease.
func TestHungSaveOfAFormerLeaseDelaysNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hang := make(chan struct{})
		defer close(hang)
		a.store = uncancellableStore{a.store, new(atomic.Bool), hang}
		a.open()
		a.typed("text")
		w.sleep(time.Second)
		lease := w.stealer()
		w.sleep(100 * time.Millisecond)
		require.NoError(t, lease.Release(t.Context()))
		w.sleep(time.Second)
		require.False(t, a.ReadOnly())
		assert.Equal(t, "text", w.saved())
	})
}

// The page could not say what it had when it lost the lock, and there is no place for drafts. It is asked again before
// it loads another text.
func TestTextIsTakenLaterIfTheSnapshotFailed(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.NoStandby = true
		broken := a.breakable()
		a.open()
		a.typed("mine")
		broken.Store(true)
		lease := w.stealer()
		w.sleep(100 * time.Millisecond)
		require.Empty(t, a.offered())
		require.NoError(t, lease.Release(t.Context()))
		w.overwritten("theirs")
		broken.Store(false)
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"mine"}, a.offered())
	})
}

// A draft says why the page could not save. A page that has sealed its text before keeps that reason, unless a save has failed since.
func TestDraftKeepsItsCause(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, a *writer)
		want string
	}{
		"closed after it has lost the lock": {func(w *world, a *writer) {
			require.Error(w, a.Dispose(w.Context()))
		}, "lock-lost: one, mine, more"},
		"closed when it could not save": {func(w *world, a *writer) {
			require.NoError(w, a.RequestEdit(w.Context(), autosave.EditOptions{}))
			all, err := a.Drafts(w.Context())
			require.NoError(w, err)
			require.Equal(w, autosave.CauseLockLost, all[0].Cause)
			a.failing("write", autosavetest.Refused)
			require.Error(w, a.Dispose(w.Context()))
		}, "save-failed: one, mine, more"},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.readOnlyTypist(storage, ", more")
				c.end(w, a)
				assert.Contains(t, storedDrafts(t, storage), c.want)
			})
		})
	}
	t.Run("another draft waits", func(t *testing.T) {
		drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
			w.dispute(storage)
			w.author("c", storage).start()
			d := w.author("d", storage).start()
			require.Len(t, d.texts(), 1)
			d.types("typed in a read-only page")
			require.Error(t, d.Dispose(t.Context()))
			assert.Contains(t, storedDrafts(t, storage), "closed: typed in a read-only page")
		})
	})
}

// rolledBack is a store that has lost its newest generation while back is set.
type rolledBack struct {
	autosave.Store
	back *atomic.Bool
}

func (r rolledBack) List(ctx context.Context) ([]autosave.Generation, error) {
	all, err := r.Store.List(ctx)
	if r.back.Load() && len(all) > 1 {
		all = all[1:]
		all[0].Current = true
	}
	return all, err
}

// The store was restored from a backup while the page was away. A page with nothing unsaved loads what is there.
func TestPageLoadsAnEarlierTextOfItsOwn(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		var back atomic.Bool
		a.store = rolledBack{a.store, &back}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		a.types(", two")
		require.NoError(t, a.Suspend(t.Context()))
		back.Store(true)
		require.NoError(t, a.Resume(t.Context()))
		assert.Equal(t, "one", a.shows())
	})
}

// A save was written, its answer was lost, and the lock as well. The page knows its own text again, even if it can
// store no draft: it goes on with what was typed since.
func TestPageKnowsItsTextThoughTheAnswerWasLost(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		a.failing("write index", autosavetest.Lied)
		a.types(" two")
		w.sleep(600 * time.Millisecond)
		require.Equal(t, "one two", w.saved())
		require.ErrorIs(t, a.State().LastErr, autosave.ErrWriteFailed)
		a.failing("seal", autosavetest.Refused)
		w.stealFrom(a, " three")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "one two three", a.shows())
		w.sleep(time.Second)
		assert.Equal(t, "one two three", w.saved())
	})
}

// The page must load the content of another editor while it waits to save. Nothing of that content is saved without a
// change.
func TestLoadedTextIsNotSavedForAnEarlierFlush(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b, disk := w.preparedOnFullDisk()
		b.open()
		require.False(t, b.ReadOnly())
		w.sleep(time.Millisecond)
		w.savedUnder(1, "theirs")
		b.files.Before = func(operation string) {
			if operation == "list index" {
				time.Sleep(time.Second)
			}
		}
		b.typed(", mine")
		disk.full.Store(false)
		flushes := make(chan error, 2)
		flush := func() { _, err := b.FlushNow(context.Background()); flushes <- err }
		go flush()
		w.sleep(500 * time.Millisecond)
		go flush() // while the page looks at the store
		require.ErrorIs(t, <-flushes, autosave.ErrReadOnly)
		require.ErrorIs(t, <-flushes, autosave.ErrReadOnly)
		w.sleep(time.Minute)
		assert.Equal(t, "theirs", b.shows())
		assert.Equal(t, []string{"theirs", "before"}, w.generations())
	})
}

// The page has the lock back, and has saved, before its text is sealed. That text is not offered at the next loss.
func TestLateSealOffersNoSavedText(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.files.Before = func(operation string) {
			if operation == "seal" {
				time.Sleep(3 * time.Second)
			}
		}
		a.start()
		a.types("text")
		require.NoError(t, w.stealer().Release(t.Context()))
		w.sleep(2 * time.Second)
		require.False(t, a.ReadOnly())
		require.Equal(t, "text", w.saved())
		w.sleep(2 * time.Second)
		a.forget()
		w.stealer()
		w.sleep(100 * time.Millisecond)
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Nil(t, last(a.page, autosave.EventReadonly).Unsaved)
	})
}

// The page cannot say any more what it had when it lost the lock. It edits nevertheless, and its text is offered from memory.
func TestKeptTextIsNotTakenAgain(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.NoStandby = true
		broken := a.breakable()
		a.open()
		a.typed("mine")
		lease := w.stealer()
		w.sleep(100 * time.Millisecond)
		require.NoError(t, lease.Release(t.Context()))
		w.overwritten("theirs")
		broken.Store(true)
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"mine", "mine"}, a.offered())
	})
}

// A save lands as the lock is lost, and something was typed since. The draft of that is discarded: nothing is left behind.
func TestDraftOfLaterTextOutlivesAnEarlierSave(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		a.store = uncancellableStore{a.store, new(atomic.Bool), nil}
		a.start()
		a.types("text")
		w.sleep(1450 * time.Millisecond)
		a.types("!")
		w.stealer()
		w.sleep(time.Second)
		require.Equal(t, "text", w.saved())
		require.Equal(t, []string{"lock-lost: text!"}, storedDrafts(t, storage))
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		require.NoError(t, a.Dispose(t.Context()))
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// A seal that failed as the lock was lost is tried again before the page loads another text.
func TestFailedSealIsTriedAgain(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		a.failing("seal", autosavetest.Refused)
		w.stealFrom(a, ", mine")
		require.Empty(t, storedDrafts(t, storage))
		a.files.Fails = nil
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"lock-lost: one, mine"}, storedDrafts(t, storage))
	})
}

// The page can never say what it has. Its journal is sealed as it loses the lock: so it can edit again.
func TestSealedTextNeedsNoSnapshot(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		a.config.Snapshot = func(context.Context) (autosave.Content, error) { return nil, errNotNow }
		a.start()
		w.stealFrom(a, "mine")
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"lock-lost: mine"}, storedDrafts(t, storage))
	})
}

// No draft can be stored. The text is offered from memory, and the page says why there is no draft.
func TestTextIsOfferedIfItCannotBeSealed(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		a.failing("seal", autosavetest.Refused)
		w.stealFrom(a, ", mine")
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"one, mine", "one, mine"}, a.offered())
		require.ErrorIs(t, a.State().LastErr, autosave.ErrWriteFailed)
		require.ErrorIs(t, a.State().LastErr, autosavetest.ErrDisk)
	})
}
