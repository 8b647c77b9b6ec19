package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// Another page makes the draft of this page the content, and announces itself only when it has loaded that content. Meanwhile this page lists
// the drafts, and lists them again after every event of a draft, as the element does. The saved text does not become a draft again.
func TestDraftThatAnotherPageIsAboutToEditIsNotReportedAgain(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.config.NoStandby = true
		events, listen := 0, a.config.Listener
		a.config.Listener = func(e autosave.Event) {
			if listen(e); e.Type == autosave.EventDraft && events < 50 {
				events++
				go func() {
					time.Sleep(time.Millisecond)
					_, err := a.Drafts(t.Context())
					assert.NoError(t, err)
				}()
			}
		}
		a.start()
		a.types("one")
		w.sleep(time.Second)
		w.stealFrom(a, ", mine")
		b := w.author("b", storage)
		load := b.config.Listener
		b.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventEditable {
				time.Sleep(2 * time.Second)
			}
			load(e)
		}
		go func() {
			time.Sleep(time.Second) // the draft is the content, and the other page loads it
			_, err := a.Drafts(t.Context())
			assert.NoError(t, err)
		}()
		b.start()
		w.sleep(5 * time.Second)
		require.Equal(t, "one, mine", b.shows())
		assert.Equal(t, 1, events)
		assert.Empty(t, storage.Texts())
		assert.Zero(t, a.State().Drafts)
		assert.Zero(t, a.State().PendingBytes)
	})
}
