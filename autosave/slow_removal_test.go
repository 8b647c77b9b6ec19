package autosave_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// slowRemovals are drafts that cannot be removed while another page is suspended. Each removal waits for that page.
type slowRemovals struct{ autosave.Drafts }

func (slowRemovals) Remove(ctx context.Context, _ string, _ int64) error {
	ctx, stop := context.WithTimeout(ctx, 4*time.Second)
	defer stop()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s slowRemovals) Discard(ctx context.Context, id string, number int64) error {
	return s.Remove(ctx, id, number)
}

// impatient is a store that reads nothing once the time of the call is over, as browsers do.
type impatient struct{ autosave.Store }

func (i impatient) Read(ctx context.Context, id string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return i.Store.Read(ctx, id)
}

// The content contains the drafts of many pages, and a removal waits for a suspended page. The next page edits although it can remove no draft.
func TestPageEditsWhileNoDraftCanBeRemoved(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		require.NoError(t, w.authorOf(storage, "saved").Dispose(t.Context()))
		for i := range 10 {
			other := storage.Page()
			other.Journal(autosave.Draft{ID: fmt.Sprint("other", i), Number: 1, At: time.Now()}, fmt.Append(nil, i))
			other.End()
		}
		b := w.author("b", storage)
		b.config.Drafts, b.config.Merge = unremovableDrafts{b.pageDrafts}, joined
		require.NoError(t, b.start().Dispose(t.Context()))
		require.Len(t, storedDrafts(t, storage), 10)

		c := w.author("c", storage)
		c.config.Drafts, c.store = slowRemovals{c.pageDrafts}, impatient{c.store}
		require.NoError(t, inTime(t, c.tryOpen))
		w.sleep(5 * time.Minute)
		require.False(t, c.ReadOnly())
		assert.Empty(t, c.waits)
		assert.Equal(t, b.shows(), c.shows())
		require.NoError(t, c.Dispose(t.Context()))
		w.author("d", storage).start()
		assert.Empty(t, storedDrafts(t, storage))
	})
}
