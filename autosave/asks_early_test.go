package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A page without standby asks for the lock as soon as its phase says that the lock is lost. It still gets autosave:readonly with its text.
func TestRequestAsTheLockIsLostHidesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.store = near{away{a.store, 0}}
		a.config.NoStandby = true
		asked := make(chan error, 1)
		asks := false
		a.config.Listener = func(e autosave.Event) {
			if asks && e.Type == autosave.EventPhase && e.State.ReadOnly {
				asks = false
				go func() { asked <- a.RequestEdit(t.Context(), autosave.EditOptions{}) }()
			}
			a.hear(e)
		}
		take := a.config.Snapshot
		a.config.Snapshot = func(ctx context.Context) (autosave.Content, error) {
			time.Sleep(50 * time.Millisecond) // less than autosave:readonly waits for it
			return take(ctx)
		}
		a.open()
		asks = true
		a.typed("mine")
		w.thief()
		w.sleep(time.Minute)
		require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Equal(t, []string{"mine"}, a.offered())
		assert.NotNil(t, a.State().Holder)
	})
}
