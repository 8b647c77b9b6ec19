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

// reopening is the drafts of a page whose Seal has the file of the draft open for a second. Meanwhile no list contains the draft.
type reopening struct {
	autosave.Drafts
	page *writer
}

func (r reopening) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
	r.page.pageDrafts.Journal(r.page.now(), []byte(r.page.shows()))
	time.Sleep(time.Second)
	return r.Drafts.Seal(ctx, cause)
}

// A user discards one of two drafts, so the page of the other one is asked whether its text is still unsaved, and stores it again. A list
// that is made at that moment contains the draft.
func TestDraftIsListedWhileItIsStoredAgain(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby, a.config.Drafts = true, reopening{a.pageDrafts, a}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		w.stealFrom(a, ", mine")
		left := storage.Page()
		left.Journal(autosave.Draft{ID: "left", Number: 1, At: time.Now(), Base: a.base}, []byte("left"))
		left.End()
		w.sleep(2 * time.Second)
		listed, err := a.Drafts(t.Context())
		require.NoError(t, err)
		require.Len(t, listed, 2)
		require.NoError(t, a.ResolveDraft(t.Context(), "left", autosave.AsDiscard))
		for range 15 { // before, while and after it is stored
			w.sleep(100 * time.Millisecond)
			listed, err = a.Drafts(t.Context())
			require.NoError(t, err)
			if assert.Len(t, listed, 1) {
				assert.Equal(t, "a-1", listed[0].ID)
			}
			assert.Equal(t, 1, a.State().Drafts)
		}
	})
}
