package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// slowToInspect are locks that take a little to find out who holds them.
type slowToInspect struct{ autosave.Locks }

func (l slowToInspect) Inspect(ctx context.Context) ([]lock.Holder, []lock.Waiter, error) {
	time.Sleep(30 * time.Millisecond)
	return l.Locks.Inspect(ctx)
}

// A page without standby asks for the lock while it loses it. It still gets autosave:readonly with its text.
func TestRequestAsTheLockIsLostHidesNothing(t *testing.T) {
	for name, wakes := range map[string]bool{"as its phase says so": false, "as it makes sure of its lease": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.store = reachableStore{unreachableStore{a.store, 0}}
				a.config.NoStandby = true
				a.locks = func(l autosave.Locks) autosave.Locks { return slowToInspect{l} }
				asked := make(chan error, 1)
				ask := func() { asked <- a.RequestEdit(t.Context(), autosave.EditOptions{}) }
				asks := false
				a.config.Listener = func(e autosave.Event) {
					if asks && e.Type == autosave.EventPhase && e.State.ReadOnly {
						asks = false
						go ask()
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
				if wakes {
					end := w.records.Open()
					time.AfterFunc(time.Second, end)
					go func() { _ = a.Resume(context.Background()) }()
					w.sleep(20 * time.Millisecond)
				}
				_, err := w.space.Client("stealer").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Exclusive}}, Steal: true})
				require.NoError(t, err)
				w.sleep(time.Minute)
				require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
				assert.Equal(t, 1, a.count(autosave.EventReadonly))
				assert.Equal(t, []string{"mine"}, a.offered())
				assert.NotNil(t, a.State().Holder)
			})
		})
	}
}
