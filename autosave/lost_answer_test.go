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

// answerless is a store whose first commit succeeds without an answer. After that, some lists fail too.
type answerless struct {
	autosave.Store
	lost     bool
	unlisted int // number of lists that fail
}

func (a *answerless) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	g, err := a.Store.Commit(ctx, c)
	if err == nil && !a.lost {
		a.lost = true
		return autosave.Generation{}, autosave.ErrWriteFailed
	}
	return g, err
}

func (a *answerless) List(ctx context.Context) ([]autosave.Generation, error) {
	if a.lost && a.unlisted > 0 {
		a.unlisted--
		return nil, autosave.ErrReadFailed
	}
	return a.Store.List(ctx)
}

// A draft becomes the content, and the answer of the store is lost. The page loads that content, and saves nothing over it that lacks
// the draft.
func TestAdoptionWhoseAnswerIsLost(t *testing.T) {
	for name, unlisted := range map[string]int{"the store answers again": 0, "and so is the next one": 1} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				w.crashed(storage)
				b := w.author("b", storage)
				b.store = &answerless{Store: b.store, unlisted: unlisted}
				b.start()
				w.sleep(time.Minute)
				require.False(t, b.ReadOnly())
				assert.Equal(t, "saved, journalled", b.shows())
				assert.Empty(t, b.disputes())
				assert.NoError(t, b.State().LastErr)
				b.types("!")
				w.sleep(time.Second)
				assert.Equal(t, "saved, journalled!", w.saved())
				assert.Empty(t, storedDrafts(t, storage))
			})
		})
	}
}
