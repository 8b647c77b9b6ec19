package autosave_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// belated is a store whose first commit fails 50 ms after its context has ended.
type belated struct {
	autosave.Store
	first atomic.Bool
	err   error
}

func (b *belated) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
	if b.first.CompareAndSwap(false, true) {
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond)
		return autosave.Generation{}, b.err
	}
	return b.Store.Commit(ctx, c)
}

// A save is under way when the page loses the lock. The page acquires the lock again, and then the save fails. The failure says nothing
// about the present lease, and no caller under that lease gets it.
func TestLateFailureOfAFormerLeaseDelaysNothing(t *testing.T) {
	calls := map[string]func(a *page) error{
		"nothing": func(*page) error { return nil },
		"flush": func(a *page) error {
			_, err := a.FlushNow(context.Background())
			return err
		},
		"restore": func(a *page) error {
			_, err := a.Restore(context.Background(), autosave.Current)
			return err
		},
	}
	notAllowed := &lock.Error{Code: lock.CodeNotAllowed, Operation: autosave.OpSave}
	for _, failure := range []*autosave.Error{autosave.ErrWriteFailed, autosave.ErrStaleToken, notAllowed} {
		for name, call := range calls {
			t.Run(string(failure.Code)+"/"+name, func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) { testLateFailure(t, w, failure, call) })
			})
		}
	}
}

func testLateFailure(t *testing.T, w *world, failure error, call func(a *page) error) {
	a := w.prepare("a")
	a.store = &belated{Store: a.store, err: failure}
	a.open()
	a.typed("mine")
	w.sleep(600 * time.Millisecond)
	require.Equal(t, autosave.PhaseWriting, a.State().Phase)
	lease := w.thief()
	w.savedUnder(lease.Token, "theirs")
	require.NoError(t, lease.Release(t.Context()))
	w.sleep(45 * time.Millisecond)
	present, edits := a.Lease()
	require.True(t, edits)
	answer := make(chan error, 1)
	go func() { answer <- call(a) }()
	w.sleep(10 * time.Millisecond)
	require.NoError(t, a.State().LastErr)
	assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
	a.typed("!")
	w.sleep(600 * time.Millisecond)
	require.NoError(t, <-answer)
	assert.Equal(t, "theirs!", w.saved())
	now, _ := a.Lease()
	assert.Equal(t, present.ID, now.ID)
}
