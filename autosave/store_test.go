package autosave_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

func TestFailingStoreIsRetried(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.forget()
		a.files.Fail()
		a.typed("kept")
		w.sleep(1200 * time.Millisecond)
		state := a.State()
		assert.Equal(t, autosave.PhaseError, state.Phase)
		assert.Equal(t, 1, state.RetryCount)
		assert.Equal(t, int64(4), state.PendingBytes)
		require.ErrorIs(t, state.LastErr, autosave.ErrWriteFailed)
		w.sleep(2 * time.Second)
		a.files.Mend()
		a.typed(", all of it")
		w.sleep(10 * time.Second)
		assert.Equal(t, "kept, all of it", w.saved())
		a.told(`
			0s phase debouncing pending=1
			500ms phase writing-current pending=1
			500ms phase error pending=4 retry=1 write-failed
			1.5s phase writing-current pending=4 retry=1 write-failed
			1.5s phase error pending=4 retry=2 write-failed
			3s phase writing-current pending=4 retry=2 write-failed
			3s phase error pending=4 retry=3 write-failed
			5.25s phase writing-current pending=4 retry=3 write-failed
			5.25s phase updating-index pending=15 retry=3 write-failed
			5.25s phase gc pending=15 retry=3 write-failed
			5.25s phase idle
			5.25s saved #1 15B
		`)
	})
}

func TestFlushDoesNotWaitForTheNextAttempt(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.files.Fail()
		a.typed("x")
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		a.files.Mend()
		_, err = a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Zero(t, time.Since(w.start))
		assert.Zero(t, a.State().RetryCount)
		assert.NoError(t, a.State().LastErr)
	})
}

func TestFullDiskLosesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("good")
		w.sleep(time.Second)
		w.disk.SetCapacity(1000)
		a.typed(strings.Repeat("x", 2000))
		w.sleep(time.Minute)
		require.ErrorIs(t, a.State().LastErr, autosave.ErrQuota)
		assert.Equal(t, autosave.PhaseError, a.State().Phase)
		assert.Equal(t, []string{"good"}, w.generations())
		w.disk.SetCapacity(0)
		w.sleep(time.Minute)
		assert.Len(t, w.saved(), 2004)
	})
}

func TestEvictedStorageIsFilledAgain(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("one")
		w.sleep(time.Second)
		w.disk.Evict()
		a.typed(" two")
		w.sleep(time.Second)
		require.ErrorIs(t, a.State().LastErr, autosave.ErrEvicted)
		w.sleep(10 * time.Second)
		assert.NoError(t, a.State().LastErr)
		assert.Equal(t, []string{"one two"}, w.generations())
	})
}

// An error of a store that has no code is given the code of a failed save.
func TestErrorOfAStoreWithoutACode(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.store = broken{a.store}
		a.open()
		a.typed("x")
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		require.ErrorIs(t, err, errNotNow)
	})
}

// broken is a store that saves nothing.
type broken struct{ autosave.Store }

func (broken) Commit(context.Context, autosave.Commit) (autosave.Generation, error) {
	return autosave.Generation{}, errNotNow
}

func TestSnapshotThatFails(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		broken := a.breakable()
		broken.Store(true)
		a.open()
		a.typed("x")
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrSnapshotFailed)
		require.ErrorIs(t, err, errBroken)
		broken.Store(false)
		w.sleep(time.Minute)
		assert.Equal(t, "x", w.saved())
	})
}

// A store that hangs fails in the end, and the next attempt is made.
func TestStoreThatHangs(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hang := make(chan struct{})
		a.files.Before = func(operation string) {
			if strings.HasPrefix(operation, "write history") {
				<-hang
			}
		}
		a.open()
		a.typed("x")
		before := time.Now()
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		assert.LessOrEqual(t, time.Since(before), 31*time.Second)
		close(hang)
		w.sleep(time.Minute)
		assert.Equal(t, "x", w.saved())
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
	})
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.files.Fail()
		a.open()
		assert.True(t, a.ReadOnly())
		assert.Equal(t, autosave.PhaseError, a.State().Phase)
		a.files.Mend()
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly())
		a.told(`
			0s phase awaiting-lock
			0s phase error retry=1 write-failed
			1s phase awaiting-lock
			1s editable
			1s phase idle
		`)
	})
}

func TestHistoryReadRestore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		for _, s := range []string{"one", " two", " three"} {
			a.typed(s)
			w.sleep(time.Second)
		}
		all, err := a.History(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 3)
		content, err := a.Read(t.Context(), all[2].ID)
		require.NoError(t, err)
		assert.Equal(t, "one", string(content))

		a.typed(" unsaved")
		content, err = a.Restore(t.Context(), all[2].ID)
		require.NoError(t, err)
		assert.Equal(t, "one", string(content))
		assert.Equal(t, []string{"one", "one two three unsaved", "one two three", "one two", "one"}, w.generations())

		for _, id := range []string{"1-1", "the id of a draft, in a page without drafts"} {
			_, err = a.Restore(t.Context(), id)
			require.ErrorIs(t, err, autosave.ErrNotFound)
		}
		w.disk.Corrupt("history/" + all[1].ID)
		_, err = a.Restore(t.Context(), all[1].ID)
		require.ErrorIs(t, err, autosave.ErrCorrupted)
		assert.ErrorContains(t, err, all[1].ID)
		assert.Equal(t, "one", w.saved())
		a.files.Fail()
		_, err = a.Restore(t.Context(), all[0].ID)
		require.Error(t, err)

		b := w.tab("b")
		_, err = b.Restore(t.Context(), all[0].ID)
		require.ErrorIs(t, err, autosave.ErrReadOnly)
		content, err = b.Read(t.Context(), all[0].ID)
		require.NoError(t, err, "a reader may read")
		assert.Equal(t, "one two three", string(content))
	})
}

func TestDamagedGenerationIsReplacedByPrevious(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("good")
		w.sleep(time.Second)
		a.typed(", better")
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		all, err := w.disk.Page().List(t.Context())
		require.NoError(t, err)
		w.disk.Corrupt("history/" + all[0].ID)
		b := w.tab("b")
		assert.Equal(t, "good", b.shows())
		require.ErrorIs(t, b.State().LastErr, autosave.ErrCorrupted)
		b.typed("!")
		w.sleep(time.Second)
		assert.Equal(t, "good!", w.saved())
	})
}

func TestLargeAndForeignTexts(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Limits = autosave.Limits{MaxGenerations: 5, MaxBytes: 45 << 20, Keep: autosave.KeepLatest}
		a.open()
		for _, text := range []string{"日本語 🦀 e\u0301\u202e", "\x00\xff", strings.Repeat("0123456789abcdef", 20<<20/16)} {
			a.typed(text)
			w.sleep(time.Second)
			assert.True(t, w.saved() == a.shows())
		}
		for range 3 {
			a.typed("!")
			w.sleep(time.Second)
		}
		assert.Len(t, w.generations(), 2, "20 MiB each")
	})
}
