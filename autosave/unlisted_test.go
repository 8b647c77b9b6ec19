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
)

// unlisted is a store whose list fails while failing is set.
type unlisted struct {
	autosave.Store
	failing *atomic.Bool
}

func (u unlisted) List(ctx context.Context) ([]autosave.Generation, error) {
	if u.failing.Load() {
		return nil, errors.New("the disk is busy")
	}
	return u.Store.List(ctx)
}

// A page that has the lock and cannot list what was saved does not edit before it can.
func TestPageThatCannotListDoesNotEdit(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		before := w.tab("before")
		before.typed("saved")
		require.NoError(t, before.Dispose(t.Context()))
		a := w.prepare("a")
		var failing atomic.Bool
		failing.Store(true)
		a.store = unlisted{a.store, &failing}
		require.NoError(t, a.tryOpen())
		w.sleep(time.Second)
		assert.True(t, a.ReadOnly())
		require.ErrorIs(t, a.State().LastErr, autosave.ErrReadFailed)
		failing.Store(false)
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "saved", a.shows())
	})
}

// The offer of the page that edits the document itself is enough, although a busy page is not listed. The asker only gives another page, which
// may have the lock by then, time to say so.
func TestOfferOfTheEditorIsTakenSoon(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book")
		a.options.Channel = silentChannel{a.options.Channel}
		a.open()
		b := w.document("b", "book").open()
		since := time.Now()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Less(t, time.Since(since), 500*time.Millisecond)
	})
}
