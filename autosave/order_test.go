package autosave_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A save is tried again, and succeeds while the page verifies its lease. No failure is left to show.
func TestSaveThatSucceedsDuringResumeEndsTheFailure(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		a.files.Break(0, autosavetest.Refused, false)
		a.typed("text")
		for a.State().RetryCount == 0 || a.State().Phase != autosave.PhaseWriting {
			w.sleep(10 * time.Millisecond)
		}
		time.AfterFunc(5*time.Second, w.records.Open())
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(time.Second)
		require.Equal(t, "text", w.saved())
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
		require.NoError(t, a.State().LastErr)
	})
}

// The browser reports twice that the page wakes, as with pageshow and resume.
func TestResumeTwice(t *testing.T) {
	for name, suspends := range map[string]bool{"verifies": false, "acquires": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.tab("a")
				if suspends {
					require.NoError(t, a.Suspend(t.Context()))
				}
				time.AfterFunc(time.Second, w.records.Open())
				go func() { _ = a.Resume(context.Background()) }()
				synctest.Wait()
				require.NoError(t, a.Resume(t.Context()))
				assert.False(t, a.ReadOnly())
			})
		})
	}
}

// A page wakes, and its user wants to edit before the page has verified its lease.
func TestRequestToEditDuringResume(t *testing.T) {
	for name, c := range map[string]struct {
		suspends, standby bool
		opts              autosave.EditOptions
	}{
		"verifies":         {},
		"verifies, forced": {standby: true, opts: autosave.EditOptions{Force: true, Grace: 100 * time.Millisecond}},
		"acquires":         {suspends: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.config.NoStandby = !c.standby
				a.open()
				if c.suspends {
					require.NoError(t, a.Suspend(t.Context()))
				}
				time.AfterFunc(time.Second, w.records.Open())
				go func() { _ = a.Resume(context.Background()) }()
				synctest.Wait()
				require.NoError(t, a.RequestEdit(t.Context(), c.opts))
				assert.Equal(t, time.Second, time.Since(w.start))
				assert.False(t, a.ReadOnly())
				require.NoError(t, a.Dispose(t.Context()))
				assert.False(t, w.tab("b").ReadOnly(), "the lock is free")
			})
		})
	}
}

// The editor crashes while it is asked by a page without standby.
func TestEditorThatIsAskedCrashes(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.channel.Deafen(true)
		a.open()
		b := w.prepare("b")
		b.config.NoStandby = true
		b.open()
		asked := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		require.NoError(t, a.manager.Close(t.Context()))
		require.NoError(t, <-asked)
		assert.False(t, b.ReadOnly())
	})
}
