package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/lock"
)

// Suspend begins a release that fails, and the page is closed meanwhile. The caller of Suspend may be gone, so Dispose reports the error too.
func TestDisposeDuringSuspendReportsTheRelease(t *testing.T) {
	for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
		virtual(t, func(t *testing.T, w *world) {
			a := w.tab("a")
			w.records.OnRemove = func(lock.Record) error { time.Sleep(time.Second); return errNotNow }
			suspended, disposed := make(chan error, 1), make(chan error, 1)
			go func() { suspended <- a.Suspend(t.Context()) }()
			w.sleep(delay)
			go func() { disposed <- a.Dispose(t.Context()) }()
			assert.ErrorIs(t, <-suspended, lock.ErrReleaseFailed)
			assert.ErrorIs(t, <-disposed, lock.ErrReleaseFailed)
		})
	}
}
