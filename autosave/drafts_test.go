package autosave_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// drafted runs a test with a storage of drafts.
func drafted(t *testing.T, run func(t *testing.T, w *world, storage *autosavetest.DraftStorage)) {
	t.Helper()
	virtual(t, func(t *testing.T, w *world) { run(t, w, autosavetest.NewDraftStorage()) })
}

// storedDrafts returns the texts of all drafts that a new page would find.
func storedDrafts(t *testing.T, storage *autosavetest.DraftStorage) (texts []string) {
	t.Helper()
	p := storage.Page()
	all, err := p.List(t.Context())
	require.NoError(t, err)
	for _, d := range all {
		text, err := p.Read(t.Context(), d.ID)
		require.NoError(t, err)
		texts = append(texts, string(d.Cause)+": "+string(text))
	}
	return texts
}

// authorOf opens a page that saves a text.
func (w *world) authorOf(storage *autosavetest.DraftStorage, text string) *writer {
	w.Helper()
	a := w.author("a", storage).start()
	a.types(text)
	w.sleep(time.Second)
	return a
}

// dispute leaves the content "one, theirs" and the draft "one, mine", both typed on "one".
func (w *world) dispute(storage *autosavetest.DraftStorage) {
	w.Helper()
	a := w.authorOf(storage, "one")
	a.types(", mine")
	b := w.author("b", storage)
	b.config.Drafts = nil // an editor that knows nothing of drafts
	b.start()
	a.die()
	require.Equal(w, "one", b.shows())
	b.types(", theirs")
	w.sleep(time.Second)
	require.NoError(w, b.Dispose(w.Context()))
	require.Equal(w, "one, theirs", w.saved())
}

func TestDraftOfADeadPageBecomesTheContent(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, b := w.author("a", storage).start(), w.author("b", storage).start()
		a.types("saved")
		w.sleep(time.Second)
		a.types(", journalled")
		a.die()
		w.sleep(0)
		assert.Equal(t, "saved, journalled", b.shows())
		assert.Equal(t, []string{"saved, journalled", "saved"}, w.generations())
		assert.Empty(t, storedDrafts(t, storage))
		assert.Empty(t, b.waits)
		assert.Zero(t, b.State().Drafts)
	})
}

// comingDrafts has drafts that are complete only from a time on. Until then each list takes a while and fails.
type comingDrafts struct {
	autosave.Drafts
	complete time.Time
}

func (c comingDrafts) List(ctx context.Context) ([]autosave.Draft, error) {
	if time.Now().Before(c.complete) {
		time.Sleep(4 * time.Second)
		return nil, fmt.Errorf("list: %w", autosave.ErrIncomplete)
	}
	return c.Drafts.List(ctx)
}

// A page edits only after the text of a page that was closed has become a draft, however long that takes: the draft is
// the content then, and conflicts with nothing.
func TestEditorWaitsForTextThatIsBeingStored(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.authorOf(storage, "saved")
		a.types(", last words")
		a.die()
		b := w.author("b", storage)
		b.config.Drafts = comingDrafts{b.pageDrafts, time.Now().Add(time.Minute)}
		require.NoError(t, inTime(t, b.tryOpen))
		w.sleep(30 * time.Second)
		assert.True(t, b.ReadOnly())
		require.ErrorIs(t, b.State().LastErr, autosave.ErrReadFailed)
		_, err := b.Drafts(t.Context())
		require.ErrorIs(t, err, autosave.ErrReadFailed, "an unreadable list is an error, not an empty list")
		w.sleep(time.Minute)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "saved, last words", b.shows())
		assert.Empty(t, storedDrafts(t, storage))
	})
}

func TestFirstDraftOfADocumentBecomesTheContent(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage).start()
		a.types("nothing is saved yet")
		a.die()
		b := w.author("b", storage).start()
		assert.Equal(t, "nothing is saved yet", b.shows())
		assert.Empty(t, storedDrafts(t, storage))
	})
}

func TestContainedDraftIsRemoved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage).start()
		a.types("one")
		a.pageDrafts.Saved("", 0)
		w.sleep(time.Second)
		left := storage.Page()
		left.Journal(autosave.Draft{ID: a.id, Number: a.number, At: time.Now()}, []byte("one")) // the page had no time to empty it
		left.Journal(autosave.Draft{ID: "another", Number: 9, At: time.Now(), Base: "0-1"}, []byte("one"))
		left.End()
		a.die()
		b := w.author("b", storage).start()
		assert.Equal(t, []string{"one"}, w.generations())
		assert.Empty(t, storedDrafts(t, storage))
		assert.Empty(t, b.disputes())
	})
}

func TestConflictHasThreeSides(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage).start()
		assert.Equal(t, "one, theirs", c.shows())
		assert.Equal(t, []string{"one|one, mine|one, theirs"}, c.disputes())
		require.Len(t, c.waits, 1, "autosave:editable carries what waits")
		assert.Equal(t, "a-1", c.waits[0].ID)
		require.Len(t, c.reportedDrafts(), 1, "autosave:draft comes once")
		assert.Equal(t, autosave.CauseCrashed, c.reportedDrafts()[0].Cause)
		assert.Equal(t, 1, c.State().Drafts)
		assert.Equal(t, 1, last(c.page, autosave.EventEditable).State.Drafts)
		assert.Equal(t, []string{"one, mine"}, c.texts())
		text, err := c.Read(t.Context(), "a-1")
		require.NoError(t, err)
		assert.Equal(t, "one, mine", string(text))
		_, err = c.Read(t.Context(), "no-such-draft")
		require.ErrorIs(t, err, autosave.ErrNotFound)

		require.NoError(t, c.Dispose(t.Context()))
		d := w.author("d", storage).start()
		assert.Equal(t, []string{"one, mine"}, d.texts(), "nothing but a decision removes it")
		assert.Len(t, d.disputes(), 1)
	})
}

func TestConflictWithoutItsBase(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage)
		c.config.Limits.MaxGenerations = 1
		c.start()
		c.types("!")
		w.sleep(time.Second)
		require.NoError(t, c.Dispose(t.Context()))
		d := w.author("d", storage).start()
		assert.Equal(t, []string{"(gone)|one, mine|one, theirs!"}, d.disputes())
	})
}

func TestMerge(t *testing.T) {
	both := func(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
		return autosave.Bytes(string(c.Theirs) + strings.TrimPrefix(string(c.Mine), string(c.Base))), nil
	}
	for name, test := range map[string]struct {
		merge func(context.Context, autosave.Conflict) (autosave.Content, error)
		saved string
		waits int
		takes time.Duration
	}{
		"makes one text": {both, "one, theirs, mine", 0, 0},
		"declines":       {func(context.Context, autosave.Conflict) (autosave.Content, error) { return nil, nil }, "one, theirs", 1, 0},
		"fails with a text": {func(context.Context, autosave.Conflict) (autosave.Content, error) {
			return autosave.Bytes("half"), errors.New("no")
		}, "one, theirs", 1, 0},
		"fails": {func(context.Context, autosave.Conflict) (autosave.Content, error) { return nil, errors.New("no") }, "one, theirs", 1, 0},
		"takes its time": {func(ctx context.Context, c autosave.Conflict) (autosave.Content, error) {
			time.Sleep(4 * time.Second)
			return both(ctx, c)
		}, "one, theirs, mine", 0, 4 * time.Second},
		"never comes back": {func(ctx context.Context, _ autosave.Conflict) (autosave.Content, error) {
			<-ctx.Done()
			return autosave.Bytes("late"), nil
		}, "one, theirs", 1, 5 * time.Second},
		"makes an empty text": {func(context.Context, autosave.Conflict) (autosave.Content, error) { return autosave.Bytes(nil), nil }, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				began := time.Now()
				c := w.author("c", storage)
				c.config.Merge = test.merge
				c.start()
				assert.Equal(t, test.takes, time.Since(began))
				assert.Equal(t, test.saved, c.shows())
				assert.Equal(t, test.saved, w.saved())
				assert.Len(t, c.disputes(), test.waits)
				assert.Len(t, storedDrafts(t, storage), test.waits)
				assert.Contains(t, w.generations(), "one, theirs", "the other side stays in the history")
			})
		})
	}
}

func TestSeveralDrafts(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.authorOf(storage, "one")
		var base string
		all, err := a.History(t.Context())
		require.NoError(t, err)
		base = all[0].ID
		require.NoError(t, a.Dispose(t.Context()))
		leave := func(id, base, text string, age time.Duration) {
			p := storage.Page()
			p.Journal(autosave.Draft{ID: id, Number: 1, At: time.Now().Add(-age), Base: base}, []byte(text))
			p.End()
		}
		leave("stranger", "1-1", "of another time", 0)
		leave("newest", base, "one, newest", time.Minute)
		leave("older", base, "one, older", time.Hour)
		leave("same", "1-1", "one, newest", 2*time.Hour)
		b := w.author("b", storage).start()
		assert.Equal(t, "one, newest", b.shows(), "the newest that fits becomes the content")
		assert.Equal(t, []string{"of another time", "one, older"}, b.texts(), "one that is equal to it is contained")
		assert.Equal(t, []string{"(gone)|of another time|one, newest", "one|one, older|one, newest"}, b.disputes())
		assert.Equal(t, []string{"one, newest", "one"}, w.generations())
	})
}

// One of two drafts is merged after the other one was declined. The other waits, and its conflict shows the merged text.
func TestMergeOfOneDraftLeavesTheOther(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		other := storage.Page()
		other.Journal(autosave.Draft{ID: "other", Number: 1, At: time.Now().Add(time.Hour), Base: "1-1"}, []byte("other"))
		other.End()
		c := w.author("c", storage)
		c.config.Merge = func(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
			if c.Draft.ID == "other" {
				return nil, nil
			}
			return autosave.Bytes("one, theirs, mine"), nil
		}
		c.start()
		assert.Equal(t, "one, theirs, mine", w.saved())
		assert.Equal(t, []string{"other"}, c.texts())
		assert.Equal(t, []string{"(gone)|other|one, theirs, mine"}, c.disputes())
	})
}

// unremovableDrafts are drafts that cannot be removed.
type unremovableDrafts struct{ autosave.Drafts }

func (unremovableDrafts) Remove(context.Context, string, int64) error { return autosavetest.ErrDisk }

func (unremovableDrafts) Discard(context.Context, string, int64) error { return autosavetest.ErrDisk }

// A merged draft that could not be removed is not offered again, and the next editor removes it.
func TestMergedDraftThatStaysIsNotOffered(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage)
		c.config.Drafts = unremovableDrafts{c.pageDrafts}
		c.config.Merge = func(context.Context, autosave.Conflict) (autosave.Content, error) {
			return autosave.Bytes("merged"), nil
		}
		c.start()
		require.Len(t, storedDrafts(t, storage), 1)
		require.NoError(t, c.Dispose(t.Context()))
		d := w.author("d", storage).start()
		assert.Empty(t, d.disputes())
		assert.Equal(t, "merged", d.shows())
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// The storage was emptied while a page without unsaved text was asleep. Only this page has the text, which is saved before
// the draft of another page is read.
func TestTextOfAnEmptiedStorageComesBeforeDrafts(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.authorOf(storage, "one")
		require.NoError(t, a.Suspend(t.Context()))
		w.disk.Evict()
		other := storage.Page()
		other.Journal(autosave.Draft{ID: "other", Number: 1, At: time.Now()}, []byte("other"))
		other.End()
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(time.Minute)
		assert.Contains(t, w.generations(), "one")
		assert.Equal(t, w.saved(), a.shows())
		assert.Equal(t, "one", a.shows())
		assert.Equal(t, []string{"other"}, a.texts())
	})
}

// unreadableDrafts are drafts that cannot be read while the switch is on.
type unreadableDrafts struct {
	autosave.Drafts
	on *atomic.Bool
}

func (b unreadableDrafts) Read(ctx context.Context, id string) ([]byte, error) {
	if b.on.Load() {
		return nil, autosavetest.ErrDisk
	}
	return b.Drafts.Read(ctx, id)
}

// A decision about a draft that cannot be read, or for which there is no room, fails. The draft stays.
func TestDraftStaysIfItsResolutionFails(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				b, unreadable := w.author("b", storage), new(atomic.Bool)
				b.config.Drafts = unreadableDrafts{b.pageDrafts, unreadable}
				b.start()
				all, err := b.Drafts(t.Context())
				require.NoError(t, err)
				require.Len(t, all, 1)

				unreadable.Store(true)
				require.ErrorIs(t, b.ResolveDraft(t.Context(), all[0].ID, as), autosave.ErrReadFailed)
				unreadable.Store(false)
				w.disk.SetCapacity(w.disk.Used())
				require.ErrorIs(t, b.ResolveDraft(t.Context(), all[0].ID, as), autosave.ErrQuota)
				require.Len(t, storedDrafts(t, storage), 1)
				assert.Equal(t, "one, theirs", b.shows())

				w.disk.SetCapacity(0)
				require.NoError(t, b.ResolveDraft(t.Context(), all[0].ID, as))
				assert.Empty(t, storedDrafts(t, storage))
				assert.Contains(t, w.generations(), "one, mine")
			})
		})
	}
}
