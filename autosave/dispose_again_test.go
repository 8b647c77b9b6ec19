package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// The owner of a page disposes of it twice, and the second call comes while the first one saves. The text cannot be saved. Neither call may
// report that all is stored.
func TestSecondDisposeReportsLossToo(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.files.Before = func(string) { time.Sleep(time.Second) }
		a.open()
		a.typed("words")
		a.files.Fail()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- a.Dispose(t.Context()) }()
		w.sleep(100 * time.Millisecond)
		go func() { second <- a.Dispose(t.Context()) }()
		require.ErrorIs(t, <-first, autosave.ErrWriteFailed)
		require.ErrorIs(t, <-second, autosave.ErrWriteFailed)
		require.ErrorIs(t, a.Dispose(t.Context()), autosave.ErrWriteFailed, "it has ended")
	})
}

// The second call comes while the first one releases the lock, which fails.
func TestSecondDisposeWaitsForTheRelease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		w.records.OnRemove = func(lock.Record) error { time.Sleep(time.Second); return errNotNow }
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- a.Dispose(t.Context()) }()
		w.sleep(100 * time.Millisecond)
		go func() { second <- a.Dispose(t.Context()) }()
		require.ErrorIs(t, <-second, lock.ErrReleaseFailed)
		require.ErrorIs(t, <-first, lock.ErrReleaseFailed)
	})
}
