package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// lateSeal is a storage of drafts whose answer to Seal takes three seconds, after which the draft was stored long before.
type lateSeal struct{ autosave.Drafts }

func (l lateSeal) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
	d, err := l.Drafts.Seal(ctx, cause)
	time.Sleep(3 * time.Second)
	return d, err
}

// A page loses the lock, gets it back and saves its text before it learns that the text is a draft. The draft is saved by then.
func TestDraftThatWasSavedBeforeItWasReported(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby, a.config.Drafts = true, lateSeal{a.pageDrafts}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		w.stealFrom(a, ", mine")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		require.Equal(t, "one, mine", w.saved())
		w.sleep(time.Minute)
		assert.Empty(t, a.reportedDrafts(), "a draft is offered that is saved")
		assert.Zero(t, a.State().Drafts)
		assert.Empty(t, storedDrafts(t, storage))
	})
}

// Text that a read-only page has typed is merged before the page edits again. The page does not learn of the draft that
// existed meanwhile.
func TestDraftThatWasMergedBeforeItWasReported(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		a.config.Merge = func(_ context.Context, sides autosave.Conflict) (autosave.Content, error) {
			return autosave.Bytes(string(sides.Theirs) + "+" + string(sides.Mine)), nil
		}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		w.stealFrom(a, ", mine")
		require.Len(t, a.reportedDrafts(), 1)
		a.types(", more")
		w.overwritten("theirs")
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.Equal(t, "theirs+one, mine, more", a.shows())
		assert.Len(t, a.reportedDrafts(), 1, "a draft is offered that is merged")
		assert.Zero(t, a.State().Drafts)
	})
}
