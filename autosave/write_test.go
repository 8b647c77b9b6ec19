package autosave_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// lateFailure is a store whose first commit fails 50 ms after its context has ended.
type lateFailure struct {
	autosave.Store
	first atomic.Bool
	err   error
}

func (b *lateFailure) Commit(ctx context.Context, c autosave.Commit) (autosave.Generation, error) {
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
	a.store = &lateFailure{Store: a.store, err: failure}
	a.open()
	a.typed("mine")
	w.sleep(600 * time.Millisecond)
	require.Equal(t, autosave.PhaseWriting, a.State().Phase)
	lease := w.stealer()
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

// A store ignores its deadline. The save fails, and the next attempt does not wait for the first.
func TestStoreThatIgnoresItsDeadline(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hang := make(chan struct{})
		defer close(hang)
		a.store = uncancellableStore{a.store, new(atomic.Bool), hang}
		a.open()
		a.typed("text")
		w.sleep(31 * time.Second)
		require.ErrorIs(t, a.State().LastErr, autosave.ErrWriteFailed)
		require.ErrorContains(t, a.State().LastErr, "the store did not answer in time")
		w.sleep(time.Second)
		assert.Equal(t, "text", w.saved())
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
	})
}

// A caller waits until its text is durable, and not until old generations are removed.
func TestFlushDoesNotWaitForRemovals(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Limits.MaxGenerations = 1
		a.open()
		a.typed("one")
		_, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		w.sleep(time.Second)
		a.files.Before = func(operation string) {
			if strings.HasPrefix(operation, "remove history") {
				time.Sleep(time.Second)
			}
		}
		a.typed("two")
		before := time.Now()
		_, err = a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Zero(t, time.Since(before))
		w.sleep(2 * time.Second)
		assert.Equal(t, []string{"onetwo"}, w.generations())
	})
}

// The size of a snapshot is known even if it cannot be saved, and even if the page numbers its snapshots.
func TestSizeOfANumberedSnapshot(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Snapshot = func(context.Context) (autosave.Content, error) {
			return autosave.Numbered{Content: autosave.Bytes("text"), Draft: "d", Number: 1}, nil
		}
		a.open()
		a.files.Fail()
		a.typed("text")
		w.sleep(time.Second)
		assert.Equal(t, autosave.PhaseError, a.State().Phase)
		assert.Equal(t, int64(4), a.State().PendingBytes)
	})
}

// The server lost its content while it could not fence the previous editor. The history of this machine is no content of that editor.
func TestWipedServerIsNotAPredecessor(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "before")
		_, _ = w.records.Claim(t.Context(), lock.Record{}, false)
		a := w.prepare("a")
		a.store = wiped{a.store}
		disk := a.unwritable()
		a.open()
		a.typed("new")
		disk.full.Store(false)
		w.sleep(time.Minute)
		assert.Equal(t, 1, a.count(autosave.EventEditable))
		assert.Equal(t, "new", w.saved())
	})
}

// The previous editor saves while it cannot be fenced. The page that fences it cannot list at once what is there, and does not overwrite it.
func TestPredecessorIsNotOverwrittenUnseen(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "before")
		_, _ = w.records.Claim(t.Context(), lock.Record{}, false)
		a := w.prepare("a")
		disk := a.unwritable()
		store := &unlistable{Store: disk}
		a.store = store
		a.open()
		w.sleep(time.Millisecond)
		w.savedUnder(1, "theirs")
		store.broken.Store(true)
		disk.full.Store(false)
		w.sleep(10 * time.Second)
		require.Greater(t, disk.fences.Load(), int32(1))
		store.broken.Store(false)
		w.sleep(time.Minute)
		assert.Equal(t, "theirs", a.shows())
		a.typed("!")
		w.sleep(time.Second)
		assert.Equal(t, []string{"theirs!", "theirs", "before"}, w.generations())
	})
}

// unlistable is a store that sometimes cannot list its generations.
type unlistable struct {
	autosave.Store
	broken atomic.Bool
}

func (u *unlistable) List(ctx context.Context) ([]autosave.Generation, error) {
	if u.broken.Load() {
		return nil, autosave.ErrReadFailed
	}
	return u.Store.List(ctx)
}

// A page could not fence the previous editor. Meanwhile a later editor has saved: this page may not edit any more.
func TestPageThatCannotFenceIsOvertaken(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.NoStandby = true
		disk := a.unwritable()
		a.open()
		require.False(t, a.ReadOnly())
		w.savedUnder(7, "theirs")
		disk.full.Store(false)
		w.sleep(time.Minute)
		assert.True(t, a.ReadOnly())
		require.ErrorIs(t, a.State().LastErr, autosave.ErrStaleToken)
		assert.False(t, w.tab("b").ReadOnly(), "the lock is free")
	})
}

// A page wakes while it tries to fence the previous editor for a caller. The caller gets the error at once.
func TestFlushThatCannotFenceDuringResume(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		disk := a.unwritable()
		a.store = slowFence{disk}
		a.open()
		a.typed("text")
		flushed := make(chan error, 1)
		go func() { _, err := a.FlushNow(context.Background()); flushed <- err }()
		synctest.Wait()
		time.AfterFunc(3*time.Second, w.records.Open())
		go func() { _ = a.Resume(context.Background()) }()
		before := time.Now()
		require.ErrorIs(t, <-flushed, autosave.ErrQuota)
		assert.LessOrEqual(t, time.Since(before), time.Second)
		disk.full.Store(false)
		w.sleep(time.Minute)
		assert.Equal(t, "text", w.saved())
	})
}

// slowFence is a store that fences within a second.
type slowFence struct{ autosave.Store }

func (s slowFence) Fence(ctx context.Context, token int64) error {
	time.Sleep(time.Second)
	return s.Store.Fence(ctx, token)
}
