package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A save is tried again, and succeeds while the page verifies its lease. No failure is left to show.
func TestSaveThatSucceedsDuringResumeEndsTheFailure(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.slow()
		a.open()
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
