package autosave_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// savedOne opens a page that does not stand by and saves the text "one".
func (w *world) savedOne(storage *autosavetest.DraftStorage) *writer {
	w.Helper()
	a := w.author("a", storage)
	a.config.NoStandby = true
	a.start()
	a.types("one")
	w.sleep(time.Second)
	return a
}

// stealFrom steals the lock of a page that has typed the text, and leaves it to nobody.
func (w *world) stealFrom(a *writer, text string) {
	w.Helper()
	a.types(text)
	stealer := w.stealer()
	w.sleep(100 * time.Millisecond)
	require.True(w, a.ReadOnly())
	require.NoError(w, stealer.Release(w.Context()))
}

// readOnlyTypist opens a page that has saved "one" and lost its lock after typing ", mine". The user types on.
func (w *world) readOnlyTypist(storage *autosavetest.DraftStorage, more string) *writer {
	w.Helper()
	a := w.savedOne(storage)
	w.stealFrom(a, ", mine")
	a.types(more)
	return a
}

// overwritten lets another page without drafts save over what is there, while nobody holds the lock.
func (w *world) overwritten(text string) {
	w.Helper()
	b := w.prepare("overwriter")
	b.config.NoStandby = true
	b.open()
	for b.ReadOnly() {
		require.NoError(w, b.RequestEdit(w.Context(), autosave.EditOptions{Force: true, Grace: time.Millisecond}))
	}
	b.mu.Lock()
	b.text = ""
	b.mu.Unlock()
	b.typed(text)
	w.sleep(time.Second)
	require.NoError(w, b.Dispose(w.Context()))
}

func TestLostLockMakesDraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		assert.Equal(t, []string{"lock-lost: one, mine"}, storedDrafts(t, storage))
		require.Len(t, a.reportedDrafts(), 1)
		assert.Equal(t, 1, a.State().Drafts)
		assert.Equal(t, []string{"one, mine"}, a.offered(), "autosave:readonly still offers it")
		assert.Equal(t, []string{"one, mine"}, a.texts())
		a.MarkDirty()
		assert.Equal(t, []string{"one, mine"}, a.texts(), "a draft is listed once")

		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "one, mine", a.shows(), "nobody has saved since: it goes on")
		w.sleep(time.Second)
		assert.Equal(t, "one, mine", w.saved())
		assert.Empty(t, storedDrafts(t, storage), "the commit contains it")
		assert.Zero(t, a.State().Drafts)
		assert.Empty(t, a.disputes())
		assert.Equal(t, "a-1", a.id, "under the same id")
	})
}

func TestTextIsSealedBeforeItIsReplaced(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.readOnlyTypist(storage, " in a read-only page")
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"lock-lost: one, mine in a read-only page"}, storedDrafts(t, storage))
		assert.Equal(t, []string{"one|one, mine in a read-only page|theirs"}, a.disputes())
		assert.Equal(t, "a-2", a.id)
		assert.Equal(t, []string{"one, mine", "one, mine in a read-only page"}, a.offered())
	})
}

// Defect 16 of issue 17: of two losses, the later one was forgotten.
func TestEveryLossIsADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		for _, text := range []string{", first loss", ", second loss", ", third loss"} {
			w.stealFrom(a, text)
			w.overwritten("theirs")
			require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
			assert.Equal(t, "theirs", a.shows())
		}
		assert.Equal(t, []string{"one, first loss", "theirs, second loss", "theirs, third loss"}, a.texts())
		assert.Equal(t, 3, a.State().Drafts)
		assert.Len(t, a.waits, 3)
		assert.Len(t, a.reportedDrafts(), 3, "the page gets one event for each")
	})
}

// Defect 16, without a place for drafts: the later loss is offered.
func TestLaterLossIsOffered(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.NoStandby = true
		a.open()
		a.typed("first")
		stealer := w.stealer()
		w.sleep(100 * time.Millisecond)
		a.typed(", second")
		require.NoError(t, stealer.Release(t.Context()))
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, []string{"first", "first, second"}, a.offered())
		a.typed(", third")
		w.stealer()
		w.sleep(100 * time.Millisecond)
		assert.Equal(t, []string{"first", "first, second", "theirs, third"}, a.offered())
	})
}

// Defect 11 of issue 17: text of an earlier editor was dropped without being offered.
func TestDraftOfAnEarlierEditorIsOffered(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		for range 3 {
			w.overwritten("one, theirs, later")
		}
		c := w.author("c", storage)
		c.types("typed before it begins")
		c.start()
		assert.Equal(t, []string{"one, mine", "typed before it begins"}, c.texts())
		assert.Equal(t, "one, theirs, later", c.shows())
		assert.Contains(t, c.disputes(), "|typed before it begins|one, theirs, later", "it was typed on an empty document")
	})
}

func TestTypedTextBecomesTheContentWhenItsPageBegins(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.authorOf(storage, "one")
		all, err := a.History(t.Context())
		require.NoError(t, err)
		require.NoError(t, a.Dispose(t.Context()))
		b := w.author("b", storage)
		b.text, b.base = "one", all[0].ID // it shows what is saved before it is known who edits
		b.types(", two")
		b.start()
		assert.Equal(t, "one, two", w.saved())
		assert.Equal(t, "one, two", b.shows())
		assert.Equal(t, "b-1", b.id, "its text was not replaced")
		assert.Empty(t, storedDrafts(t, storage))
		b.types(", three")
		w.sleep(time.Second)
		assert.Equal(t, "one, two, three", w.saved())
	})
}

// A page that goes on with text of its own saves it before the draft of another page.
func TestOwnTextComesBeforeDraftsOfOthers(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		base := a.base
		w.stealFrom(a, ", mine")
		other := storage.Page()
		other.Journal(autosave.Draft{ID: "other", Number: 1, At: time.Now(), Base: base}, []byte("one, other"))
		other.End()
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, "one, mine", a.shows())
		assert.Equal(t, "one, mine", w.saved())
		saved := last(a.page, autosave.EventSaved)
		assert.Equal(t, saved.Generation.SavedAt, saved.State.LastSuccess)
		assert.Equal(t, []string{"one|one, other|one, mine"}, a.disputes())
		assert.Equal(t, []string{"crashed: one, other"}, storedDrafts(t, storage))
		a.types("!")
		w.sleep(time.Second)
		assert.Equal(t, "one, mine!", w.saved())
	})
}

func TestDisposeOfAReadonlyPageLeavesADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, b := w.author("a", storage).start(), w.author("b", storage).start()
		b.types("typed while another page edits")
		require.ErrorIs(t, b.Dispose(t.Context()), autosave.ErrReadOnly)
		assert.Equal(t, []string{"closed: typed while another page edits"}, storedDrafts(t, storage))
		c := w.author("c", storage).start()
		require.NoError(t, c.Dispose(t.Context()), "it has typed nothing")
		require.NoError(t, a.Dispose(t.Context()))
		assert.Len(t, storedDrafts(t, storage), 1)
	})
}

func TestDisposeThatCannotSaveLeavesADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.pageDrafts = storage.PageDrafts(nil) // another storage than the one that fails
		a.pageDrafts.Unsaved = func() (autosave.Draft, []byte, bool) { return a.now(), []byte(a.text), true }
		a.config.Drafts = a.pageDrafts
		a.start()
		a.files.Fail()
		a.types("no room")
		err := a.Dispose(t.Context())
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		assert.Equal(t, []string{"save-failed: no room"}, storedDrafts(t, storage))
		assert.Empty(t, a.manager.Leases())
	})
}

func TestDisposeWithoutDraftsReportsLoss(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.author("a", storage).start()
		b := w.author("b", storage).start()
		b.types("nowhere to go")
		b.files.Fail()
		err := b.Dispose(t.Context())
		require.ErrorIs(t, err, autosave.ErrReadOnly)
		require.ErrorIs(t, err, autosavetest.ErrDisk)
	})
}

func TestSuspendedPageLeavesADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.author("a", storage).start()
		b := w.author("b", storage).start()
		b.types("asleep")
		require.NoError(t, b.Suspend(t.Context()), "the text of the page is kept")
		assert.Equal(t, []string{"closed: asleep"}, storedDrafts(t, storage))
		assert.Len(t, b.reportedDrafts(), 1)
		require.NoError(t, b.Resume(t.Context()))
		assert.Equal(t, "asleep", b.shows())
	})
}

// A mark that arrives just after the lock was lost belongs to the loss: its text is a draft, too.
func TestTextTypedAsTheLockIsLostIsADraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		listen, late := a.config.Listener, false
		a.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventPhase && e.State.Phase == autosave.PhaseReadonly && !late {
				late = true
				a.types(", late")
			}
			listen(e)
		}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		w.stealer()
		w.sleep(100 * time.Millisecond)
		assert.Equal(t, []string{"lock-lost: one, late"}, storedDrafts(t, storage))
		assert.Len(t, a.reportedDrafts(), 1)
		assert.Equal(t, 1, a.State().Drafts)
	})
}

// The page gets autosave:readonly even if its text takes a while. The draft comes later.
func TestSlowSealDoesNotDelayReadonly(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		a.files.Before = func(operation string) {
			if operation == "seal" {
				time.Sleep(time.Second)
			}
		}
		a.start()
		a.types("mine")
		w.stealer()
		began := time.Now()
		w.sleep(100 * time.Millisecond)
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Empty(t, a.reportedDrafts())
		w.sleep(time.Second)
		synctest.Wait()
		assert.Len(t, a.reportedDrafts(), 1)
		assert.Less(t, time.Since(began), 2*time.Second)
	})
}

// The machine slept for longer than its lease from a server was valid. Nobody took the lock, so the draft names the lost connection.
func TestLeaseThatRanOutOnServerMakesOfflineDraft(t *testing.T) {
	for strategy, cause := range map[lock.Strategy]string{lock.Remote: "offline", lock.WebLock: "lock-lost"} {
		drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
			a := w.author("a", storage)
			a.config.NoStandby, a.store = true, broken{a.store}
			a.options.Backends[0].Strategy = strategy
			a.start()
			a.types("mine")
			w.clock.Sleep(time.Hour)
			w.sleep(time.Minute)
			require.True(t, a.ReadOnly())
			assert.Equal(t, []string{cause + ": mine"}, storedDrafts(t, storage))
		})
	}
}
