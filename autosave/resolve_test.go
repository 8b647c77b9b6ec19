package autosave_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

func TestResolveDraft(t *testing.T) {
	for as, want := range map[autosave.Resolution]struct {
		shows       string
		generations []string
	}{
		autosave.AsContent:    {"one, mine", []string{"one, mine", "one, theirs!", "one, theirs", "one"}},
		autosave.AsGeneration: {"one, theirs!", []string{"one, theirs!", "one, mine", "one, theirs", "one"}},
		autosave.AsDiscard:    {"one, theirs!", []string{"one, theirs!", "one, theirs", "one"}},
	} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				c := w.author("c", storage).start()
				c.types("!")
				if as == autosave.AsGeneration {
					w.sleep(time.Second)
				}
				require.NoError(t, c.ResolveDraft(t.Context(), "a-1", as))
				w.sleep(time.Second)
				assert.Equal(t, want.shows, c.shows())
				assert.Equal(t, want.generations, w.generations())
				assert.Empty(t, storedDrafts(t, storage))
				assert.Empty(t, c.texts())
				assert.Zero(t, c.State().Drafts)
				require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", as), autosave.ErrNotFound)

				assert.False(t, c.ReadOnly())
				c.types(", more")
				w.sleep(time.Second)
				assert.Equal(t, want.shows+", more", w.saved())
				require.NoError(t, c.Dispose(t.Context()))
				d := w.author("d", storage).start()
				assert.Equal(t, want.shows+", more", d.shows())
				assert.Empty(t, d.texts())
			})
		})
	}
}

// Nothing is saved when the editor of an empty document keeps a draft in the history. The editor saves its own text first: so the content is
// what it shows.
func TestDraftKeptInAnEmptyHistoryIsNotTheContent(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, b := w.author("a", storage).start(), w.author("b", storage).start()
		b.types("theirs")
		require.ErrorIs(t, b.Dispose(t.Context()), autosave.ErrReadOnly)
		require.NoError(t, a.ResolveDraft(t.Context(), "b-1", autosave.AsGeneration))
		w.sleep(time.Minute)
		assert.Empty(t, a.shows())
		assert.Equal(t, []string{"", "theirs"}, w.generations())
	})
}

func TestResolveDraftOfAReadonlyPage(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		w.author("editor", storage).start()
		c := w.author("c", storage).start()
		require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsContent), autosave.ErrReadOnly)
		require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsGeneration), autosave.ErrReadOnly)
		require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", "gone"), autosave.ErrInvalidArgument)
		assert.Equal(t, []string{"one, mine"}, c.texts())
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard), "it changes nothing that is saved")
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// A page knows how many drafts wait, also after another page has decided about one.
func TestDecisionOfAnotherPage(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsDiscard} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				editor := w.author("editor", storage).start()
				c := w.author("c", storage).start()
				decides, other := c, editor
				if as == autosave.AsContent { // an editor alone may do that
					decides, other = editor, c
				}
				all, err := other.Drafts(t.Context())
				require.NoError(t, err)
				require.Len(t, all, 1)
				require.Equal(t, 1, other.State().Drafts)
				require.NoError(t, decides.ResolveDraft(t.Context(), "a-1", as))
				w.sleep(time.Second)
				assert.Zero(t, other.State().Drafts)
				assert.Zero(t, last(other.page, autosave.EventPhase).State.Drafts)
			})
		})
	}
}

// A decision that cannot be carried out changes nothing, and can be repeated.
func TestResolveDraftThatFails(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration, autosave.AsDiscard} {
		t.Run(string(as), func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.dispute(storage)
				c := w.author("c", storage).start()
				c.files.Fail()
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				require.Error(t, c.ResolveDraft(ctx, "a-1", as))
				c.files.Mend()
				assert.Equal(t, "one, theirs", w.saved())
				assert.Equal(t, []string{"one, mine"}, c.texts())
				require.NoError(t, c.ResolveDraft(t.Context(), "a-1", as))
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}

// slowMerger opens a page whose commits take a second, and which has to decide about a disputed draft.
func (w *world) slowMerger(storage *autosavetest.DraftStorage) *writer {
	w.Helper()
	w.dispute(storage)
	c := w.author("c", storage)
	c.slow()
	return c.start()
}

func TestTypingWhileADraftIsResolved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		c := w.slowMerger(storage)
		go func() {
			for range 8 {
				time.Sleep(300 * time.Millisecond)
				c.types("!")
			}
		}()
		err := c.ResolveDraft(t.Context(), "a-1", autosave.AsContent)
		w.sleep(time.Minute)
		require.NoError(t, err)
		have := append(w.generations(), c.texts()...)
		assert.Contains(t, have, "one, mine")
		assert.Equal(t, c.shows(), w.saved())
	})
}

// everyEnding runs a test once for each operation of a page and each fault, in a world of
// its own. The page that the test gives to kill dies at that operation.
func everyEnding(t *testing.T, run func(t *testing.T, w *world, storage *autosavetest.DraftStorage, kill func(*writer))) {
	steps := 0
	for n := 0; n <= steps; n++ {
		for _, fault := range autosavetest.Faults {
			t.Run(fmt.Sprint(n, " ", fault), func(t *testing.T) {
				drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
					run(t, w, storage, func(a *writer) {
						a.files.Break(n, fault, true)
						t.Cleanup(func() { steps = max(steps, a.files.Ops()) })
					})
				})
			})
		}
	}
	require.Greater(t, steps, 10, "there were that many operations")
}

// successor opens a page after the one that was killed, and returns it.
func (w *world) successor(a *writer, storage *autosavetest.DraftStorage) *writer {
	w.Helper()
	w.sleep(time.Minute)
	a.die()
	return w.author("successor", storage).start()
}

func TestAdoptionIsKilledAtAnyStep(t *testing.T) {
	everyEnding(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage, kill func(*writer)) {
		a := w.authorOf(storage, "one")
		a.types(", journalled")
		a.die()
		b := w.author("b", storage)
		kill(b)
		_ = b.tryOpenFor(time.Minute)
		successor := w.successor(b, storage)
		assert.Equal(t, "one, journalled", successor.shows())
		assert.Equal(t, "one, journalled", w.saved())
		assert.Empty(t, storedDrafts(t, storage))
		assert.Empty(t, successor.disputes())
		assert.LessOrEqual(t, len(w.generations()), 3)
	})
}

func TestMergeIsKilledAtAnyStep(t *testing.T) {
	everyEnding(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage, kill func(*writer)) {
		w.dispute(storage)
		// As any merge of three sides, it makes a change once that both sides have.
		merge := func(_ context.Context, c autosave.Conflict) (autosave.Content, error) {
			added := string(c.Mine[len(c.Base):])
			return autosave.Bytes(strings.TrimSuffix(string(c.Theirs), added) + added), nil
		}
		b := w.author("b", storage)
		b.config.Merge = merge
		kill(b)
		_ = b.tryOpenFor(time.Minute)
		w.sleep(time.Minute)
		b.die()
		successor := w.author("successor", storage)
		successor.config.Merge = merge
		successor.start()
		assert.Equal(t, "one, theirs, mine", successor.shows(), "it is merged once")
		assert.Empty(t, storedDrafts(t, storage))
	})
}

func TestResolutionIsKilledAtAnyStep(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration} {
		t.Run(string(as), func(t *testing.T) {
			everyEnding(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage, kill func(*writer)) {
				w.dispute(storage)
				b := w.author("b", storage).start()
				kill(b)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				err := b.ResolveDraft(ctx, "a-1", as)
				successor := w.successor(b, storage)
				have := append(w.generations(), successor.texts()...)
				assert.Contains(t, have, "one, mine")
				assert.Contains(t, have, "one, theirs")
				if err == nil && as == autosave.AsContent {
					assert.Equal(t, "one, mine", successor.shows())
				}
				if as == autosave.AsGeneration {
					assert.Equal(t, "one, theirs", successor.shows())
				}
				slices.Sort(have)
				assert.Equal(t, slices.Compact(slices.Clone(have)), have, "nothing is there twice")
			})
		})
	}
}

func TestDiscardedDraftOfAReadonlyPageStaysDiscarded(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		a.start()
		w.stealFrom(a, "mine")
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		assert.Zero(t, a.State().PendingBytes)
		require.NoError(t, a.Dispose(t.Context()), "nothing is left behind")
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// A page that cannot save decides about another page's draft. It keeps its own text.
func TestDecisionKeepsTheTextOfThePage(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage)
		c.config.NoStandby = true
		c.start()
		w.stealFrom(c, ", typed")
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		assert.Equal(t, int64(len("one, theirs, typed")), c.State().PendingBytes)
		assert.Equal(t, []string{"one, theirs, typed"}, c.texts())
		require.NoError(t, c.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, "one, theirs, typed", w.saved())
	})
}

func TestOwnDraftIsResolvedBySaving(t *testing.T) {
	for _, as := range []autosave.Resolution{autosave.AsContent, autosave.AsGeneration} {
		drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
			a := w.author("a", storage)
			a.config.NoStandby = true
			a.start()
			w.stealFrom(a, "mine")
			require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
			a.MarkDirty()
			require.NoError(t, a.ResolveDraft(t.Context(), "a-1", as))
			assert.Equal(t, []string{"mine"}, w.generations())
			assert.Equal(t, "mine", a.shows())
			assert.Empty(t, storedDrafts(t, storage))
		})
	}
}

// Dispose saves no text that is typed after the call.
func TestDisposeOfAnEditorThatTypesOn(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.slow()
		a.start()
		a.types("saved")
		go func() { time.Sleep(900 * time.Millisecond); a.MarkDirty() }()
		require.NoError(t, a.Dispose(t.Context()))
		assert.Equal(t, "saved", w.saved())
	})
}

// The page loads the draft that became the content. Until it has, it may not edit, and nothing is saved of the text before.
func TestPageThatLoadsAResolvedDraftMayNotEdit(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage)
		listen := c.config.Listener
		c.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventEditable {
				time.Sleep(time.Second)
			}
			listen(e)
		}
		c.start()
		w.sleep(2 * time.Second)
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsContent))
		w.sleep(100 * time.Millisecond)
		assert.True(t, c.ReadOnly())
		c.MarkDirty()
		w.sleep(800 * time.Millisecond)
		assert.Equal(t, "one, theirs", c.shows())
		assert.Equal(t, "one, mine", w.saved())
		w.sleep(time.Minute)
		assert.Equal(t, "one, mine", c.shows())
		assert.Equal(t, "one, mine", w.saved())
	})
}

// The page is put to sleep while a draft becomes the content. It cannot load that any more, and saves its own text again.
func TestSuspendWhileADraftIsResolved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		c := w.slowMerger(storage)
		result := make(chan error, 1)
		go func() { result <- c.ResolveDraft(context.Background(), "a-1", autosave.AsContent) }()
		w.sleep(500 * time.Millisecond)
		require.NoError(t, c.Suspend(t.Context()))
		require.ErrorIs(t, <-result, autosave.ErrReadOnly)
		assert.Equal(t, "one, theirs", c.shows())
		assert.Equal(t, "one, theirs", w.saved())
		assert.Contains(t, w.generations(), "one, mine")
	})
}

// An editor that has its lock back discards the draft of its own text. It shows that text still, and saves it.
func TestEditorSavesTheTextOfADiscardedDraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.NoError(t, a.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		assert.Equal(t, "one", w.saved(), "a decision to discard saves nothing")
		w.sleep(time.Second)
		assert.Equal(t, a.shows(), w.saved())
	})
}

// A user discards a draft that another page shows, while that page seals what was typed since. Nobody has seen that text here.
func TestDraftThatHasGrownIsNotDiscarded(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		c := w.author("c", storage).start()
		require.Equal(t, []string{"one, mine"}, c.texts())
		all, err := c.Drafts(t.Context())
		require.NoError(t, err)
		grown := all[0]
		grown.Number++
		other := storage.Page()
		other.Journal(grown, []byte("one, mine, more"))
		other.End()
		require.ErrorIs(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard), autosave.ErrNotFound)
		assert.Equal(t, []string{"one, mine, more"}, c.texts())
		require.NoError(t, c.ResolveDraft(t.Context(), "a-1", autosave.AsDiscard))
		assert.Empty(t, c.texts())
	})
}
