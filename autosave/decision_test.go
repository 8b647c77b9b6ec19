package autosave_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// The history has no room for the draft beside the content. The draft is not given up.
func TestDraftThatTheLimitsLeaveNoRoomFor(t *testing.T) {
	for name, limits := range map[string]autosave.Limits{
		"one generation": {MaxGenerations: 1},
		"few bytes":      {MaxBytes: int64(len("one, theirs, mine"))},
		"the latest":     {MaxGenerations: 1, Keep: autosave.KeepLatest},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				c := w.author("c", storage)
				c.config.Limits = limits
				c.start()
				files := w.disk.Paths()
				require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsGeneration), autosave.ErrQuota)
				assert.Equal(t, []string{"one, mine"}, c.texts())
				assert.Equal(t, files, w.disk.Paths(), "nothing is left behind")
				require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsContent), "the user may decide otherwise")
				assert.Equal(t, "one, mine", w.saved())
			})
		})
	}
}

// The storage was emptied while the page had nothing to save. An error about a draft is the first sign of it.
func TestEmptiedStorageGetsTheTextWhenADraftIsResolved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage).start()
		w.disk.Evict()
		require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsGeneration), autosave.ErrEvicted)
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsGeneration))
		w.sleep(time.Second)
		assert.Equal(t, "one, theirs", c.shows())
		assert.Equal(t, []string{"one, theirs", "one, mine"}, w.generations())
	})
}

// A draft is saved and cannot be removed, for example because another page is suspended. The decision has succeeded: the draft is not offered
// again, and the next editor removes it.
func TestDecisionHoldsAlthoughTheDraftStays(t *testing.T) {
	for as, texts := range map[autosave.Resolution][]string{
		autosave.AsContent:    {"one, mine", "one, theirs", "one"},
		autosave.AsGeneration: {"one, theirs", "one, mine", "one"},
	} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				c := w.author("c", storage)
				c.config.Drafts = slowRemovals{c.pageDrafts}
				c.start()
				require.NoError(t, c.ResolveDraft(t.Context(), "a-1", as))
				assert.Equal(t, texts, w.generations())
				assert.Empty(t, c.texts())
				assert.Zero(t, c.State().Drafts)
				require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", as), autosave.ErrNotFound)
				require.NoError(t, c.Dispose(t.Context()))
				w.author("d", storage).start()
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}

// One draft is decided and another one appears: their number is the same.
func TestOneDraftGoesAndAnotherComes(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage).start()
		require.Equal(t, 1, c.State().Drafts)
		d := w.author("d", storage).start()
		d.types("another")
		d.die()
		require.NoError(t, storage.Page().Remove(t.Context(), "a-1", 9), "another page has decided")
		assert.Equal(t, []string{"another"}, c.texts())
		require.NoError(t, c.ResolveDraft(t.Context(), "d-1", autosave.AsContent))
		w.sleep(0)
		assert.Empty(t, c.waits)
		assert.Zero(t, c.State().Drafts)
	})
}

// The user decides twice that a draft becomes the content, at once or while the first decision is carried out. The page gets the draft once,
// and text typed after that stays the content. The second decision was made about another content.
func TestDraftIsMadeTheContentOnce(t *testing.T) {
	for name, late := range map[string]bool{"at once": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				b, goOn := w.author("b", storage), make(chan struct{})
				var readings atomic.Int64
				b.config.Drafts = readThen{b.pageDrafts, func() {
					if n := readings.Add(1); n == 2 || n == 3 && !late { // the first one is that of the load
						<-goOn
					}
				}}
				b.start()
				all, err := b.Drafts(t.Context())
				require.NoError(t, err)
				results := make(chan error, 2)
				for range 2 {
					go func() { results <- b.ResolveDraft(t.Context(), all[0].ID, autosave.AsContent) }()
				}
				w.sleep(0)
				if !late {
					close(goOn)
					w.sleep(0)
				}
				b.types("!")
				w.sleep(time.Second)
				if late {
					close(goOn)
				}
				errs := []error{<-results, <-results}
				assert.Contains(t, errs, nil)
				require.ErrorIs(t, errors.Join(errs...), autosave.ErrReadOnly)
				w.sleep(time.Second)
				assert.Equal(t, []string{"one, mine!", "one, mine", "one, theirs", "one"}, w.generations())
				assert.Equal(t, "one, mine!", b.shows())
				assert.Equal(t, 2, b.count(autosave.EventEditable))
			})
		})
	}
}
