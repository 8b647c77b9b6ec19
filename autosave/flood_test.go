package autosave_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// queueing has the storage do one thing at a time, in the order in which it was asked.
func (p *page) queueing(each time.Duration) {
	device := make(chan struct{}, 1)
	p.files.Before = func(string) {
		device <- struct{}{}
		time.Sleep(each)
		<-device
	}
}

// A page asks for its content every millisecond and does not wait for the answers. Text that its user types is saved in
// time nevertheless, and every call ends.
func TestFloodOfReadsLeavesTurnsToSaves(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		a.queueing(5 * time.Millisecond)
		a.start()
		a.types("saved")
		w.sleep(time.Second)
		calls := []func(context.Context) error{
			func(ctx context.Context) error { _, err := a.Read(ctx, autosave.Current); return err },
			func(ctx context.Context) error { _, err := a.History(ctx); return err },
			func(ctx context.Context) error { _, err := a.Drafts(ctx); return err },
		}
		var flood sync.WaitGroup
		var mu sync.Mutex
		read := 0
		for i := range 5000 {
			flood.Go(func() {
				if err := inTime(t, func() error { return calls[i%len(calls)](context.Background()) }); err == nil {
					mu.Lock()
					read++
					mu.Unlock()
				}
			})
			if i == 1000 {
				a.types(", typed")
			}
			time.Sleep(time.Millisecond)
		}
		assert.Equal(t, "saved, typed", w.saved(), "after four seconds")
		flood.Wait()
		assert.Greater(t, read, 200, "reads have their turn too")
		w.sleep(time.Minute)
	})
}

// Two calls wait for a silent store. The page asks once more: that call had no turn, and says so.
func TestReadWithoutATurnSaysSo(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.author("a", storage)
		mute := a.mute(ofStore...)
		a.start()
		mute()
		for range 2 {
			go func() { _, _ = a.History(context.Background()) }()
		}
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := a.History(ctx)
		require.ErrorIs(t, err, autosave.ErrReadFailed)
		assert.ErrorContains(t, err, "wait for an answer")
		ctx, stop = context.WithTimeoutCause(t.Context(), time.Second, errNotNow)
		defer stop()
		_, err = a.History(ctx)
		require.ErrorIs(t, err, errNotNow)
	})
}
