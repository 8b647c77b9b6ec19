package autosave_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// refusedList is a store whose lists contain a commit of the draft a-1 that is about to be refused.
type refusedList struct {
	autosave.Store
	shows atomic.Bool
}

func (r *refusedList) List(ctx context.Context) ([]autosave.Generation, error) {
	all, err := r.Store.List(ctx)
	if r.shows.Load() && len(all) > 0 {
		g := all[0]
		g.ID, g.Draft, g.Number, all[0].Current = "refused", "a-1", 100, false
		all = append([]autosave.Generation{g}, all...)
	}
	return all, err
}

// A page loses its lock during a commit. The next editor's fence refuses that commit, and a list that the page makes meanwhile still contains
// it. The page keeps the draft of its text, and does not report that it is saved.
func TestListDuringARefusedCommitKeepsTheDraft(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		lists := &refusedList{Store: a.store}
		a.store = lists
		a.start()
		a.types("one")
		w.sleep(time.Second)
		a.forget()
		lists.shows.Store(true)
		w.stealFrom(a, ", mine")
		w.sleep(time.Second)
		lists.shows.Store(false)
		assert.Zero(t, a.count(autosave.EventSaved))
		require.NotEmpty(t, storedDrafts(t, storage))
	})
}
