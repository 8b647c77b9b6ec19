package autosave_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// countedList is a store that counts its lists, and fails from the list with the number failsFrom on, unless that is 0.
type countedList struct {
	autosave.Store
	count, failsFrom atomic.Int64
}

func (c *countedList) List(ctx context.Context) ([]autosave.Generation, error) {
	n := c.count.Add(1)
	if from := c.failsFrom.Load(); from > 0 && n >= from {
		return nil, errors.New("the disk is busy")
	}
	return c.Store.List(ctx)
}

// counted counts the lists of the history that a prepared page makes.
func (p *page) counted() *countedList {
	c := &countedList{Store: p.store}
	p.store = c
	return c
}

// savedWithoutRemoval lets another page save the draft of a page without a lock. Nobody can remove the file of the draft, so it is still listed.
// prepare is called just before the other page reports that it edits.
func savedWithoutRemoval(t *testing.T, w *world, storage *autosavetest.DraftStorage, prepare func(*writer, *countedList)) *writer {
	t.Helper()
	a := w.author("a", storage)
	a.config.NoStandby = true
	lists := a.counted()
	a.start()
	a.types("one")
	w.sleep(time.Second)
	w.stealFrom(a, ", mine")
	require.Equal(t, 1, a.State().Drafts)
	a.failing("remove draft", autosavetest.Refused)
	b := w.author("b", storage)
	b.failing("remove draft", autosavetest.Refused)
	listen := b.config.Listener
	b.config.Listener = func(e autosave.Event) {
		if e.Type == autosave.EventEditable {
			a.forget()
			lists.count.Store(0)
			prepare(a, lists)
		}
		listen(e)
	}
	b.start()
	require.Equal(t, "one, mine", b.shows())
	w.sleep(time.Minute)
	return a
}

// Another page begins to edit. A page with drafts lists the history once, although it looks for drafts that are saved and for those that wait.
func TestRefreshListsTheHistoryOnce(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		w.dispute(storage)
		editor := w.author("editor", storage).start()
		c := w.author("c", storage)
		c.config.NoStandby = true
		lists := c.counted()
		c.start()
		c.texts()
		require.Equal(t, 1, c.State().Drafts)
		lists.count.Store(0)
		require.NoError(t, editor.Dispose(t.Context()))
		w.author("next", storage).start()
		w.sleep(time.Second)
		assert.Equal(t, 1, c.State().Drafts)
		assert.Equal(t, int64(1), lists.count.Load())
	})
}

// A page has learned from the history that its draft is saved. It does not report the draft again because a second list of the history fails.
func TestSavedDraftIsNotReportedAgain(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := savedWithoutRemoval(t, w, storage, func(_ *writer, l *countedList) { l.failsFrom.Store(2) })
		require.NotEmpty(t, storedDrafts(t, storage))
		assert.Zero(t, a.State().Drafts)
		assert.Zero(t, a.State().PendingBytes)
		assert.Zero(t, a.count(autosave.EventDraft))
	})
}

// A page cannot list the history. It keeps what it knows of the drafts.
func TestRefreshWithoutHistoryChangesNothing(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := savedWithoutRemoval(t, w, storage, func(_ *writer, l *countedList) { l.failsFrom.Store(1) })
		assert.Equal(t, 1, a.State().Drafts)
		assert.Zero(t, a.count(autosave.EventDraft))
	})
}

// A page cannot list the drafts, or the list does not return. It learns from the history nevertheless that its draft is saved.
func TestRefreshWithoutDraftsFindsTheSavedDraft(t *testing.T) {
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := savedWithoutRemoval(t, w, storage, func(a *writer, _ *countedList) {
					if a.failing("list drafts", autosavetest.Refused); hangs {
						a.files.Fails = nil
						a.mute("list drafts")()
					}
				})
				assert.Zero(t, a.State().Drafts)
				assert.Zero(t, a.State().PendingBytes)
			})
		})
	}
}
