package autosave_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

func TestTypingIsSavedHalfASecondLater(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		assert.False(t, a.ReadOnly())
		lease, ok := a.Lease()
		require.True(t, ok)
		assert.Equal(t, int64(1), lease.Token)
		a.typed("hello")
		assert.Equal(t, autosave.PhaseDebouncing, a.State().Phase)
		w.sleep(time.Second)
		assert.Equal(t, "hello", w.saved())
		a.told(`
			0s phase awaiting-lock
			0s editable
			0s phase idle
			0s phase debouncing pending=1
			500ms phase writing-current pending=1
			500ms phase updating-index pending=5
			500ms phase gc pending=5
			500ms phase idle
			500ms saved #1 5B
		`)
		assert.Equal(t, autosave.State{Phase: autosave.PhaseIdle, LastSuccess: a.State().LastSuccess, Storage: autosave.StorageOPFS}, a.State())
		assert.Equal(t, 500*time.Millisecond, a.State().LastSuccess.Sub(w.start))
	})
}

func TestSecondPageStandsBy(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("from a")
		b := w.tab("b")
		assert.True(t, b.ReadOnly())
		assert.Equal(t, "a", b.State().Holder.OwnerID)
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(0)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "from a", b.shows())
		b.told(`
			0s phase awaiting-lock
			0s phase readonly acquire-denied
			0s readonly acquire-failed acquire-denied holder=a
			1s phase awaiting-lock acquire-denied
			1s editable content="from a"
			1s phase idle
		`)
		b.typed(", then b")
		w.sleep(time.Second)
		assert.Equal(t, []string{"from a, then b", "from a"}, w.generations())
	})
}

func TestTypingWithoutPauseIsSavedEveryTwoSeconds(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.forget()
		for range 45 {
			a.typed("x")
			w.sleep(100 * time.Millisecond)
		}
		w.sleep(time.Second)
		a.told(`
			0s phase debouncing pending=1
			2s phase writing-current pending=1
			2s phase updating-index pending=20
			2s phase gc pending=20
			2s phase idle
			2s saved #1 20B
			2s phase debouncing pending=20
			4s phase writing-current pending=20
			4s phase updating-index pending=40
			4s phase gc pending=40
			4s phase idle
			4s saved #1 40B
			4s phase debouncing pending=40
			4.9s phase writing-current pending=40
			4.9s phase updating-index pending=45
			4.9s phase gc pending=45
			4.9s phase idle
			4.9s saved #1 45B
		`)
	})
}

// slow makes every write of content take a second.
func (p *page) slow() {
	p.files.Before = func(operation string) {
		if strings.HasPrefix(operation, "write history") {
			time.Sleep(time.Second)
		}
	}
}

// slowTab opens a page whose commits take a second.
func (w *world) slowTab(name string) *page {
	w.Helper()
	p := w.prepare(name)
	p.slow()
	return p.open()
}

func TestChangeDuringWriteLeadsToAnother(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		a.forget()
		a.typed("one")
		w.sleep(900 * time.Millisecond)
		a.typed(" two")
		assert.Equal(t, int64(2), a.State().QueuedGeneration)
		w.sleep(5 * time.Second)
		a.told(`
			0s phase debouncing pending=1
			500ms phase writing-current pending=1
			1.5s phase updating-index pending=3 queued=2
			1.5s phase gc pending=3 queued=2
			1.5s phase debouncing pending=3
			1.5s saved #1 3B
			1.5s phase writing-current pending=3
			2.5s phase updating-index pending=7
			2.5s phase gc pending=7
			2.5s phase idle
			2.5s saved #1 7B
		`)
		assert.Equal(t, []string{"one two", "one"}, w.generations())
	})
}

func TestManyMarksCauseFewWrites(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		for n := range 10_000 {
			a.typed("x")
			if n%10 == 0 {
				w.sleep(time.Millisecond)
			}
		}
		w.sleep(time.Second)
		assert.Equal(t, 1, a.count(autosave.EventSaved))
		assert.Equal(t, 1, a.asked)
		assert.Len(t, w.saved(), 10_000)
	})
}

func TestMarkDirtyAllocatesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		assert.Zero(t, testing.AllocsPerRun(1000, a.MarkDirty))
	})
}

func BenchmarkMarkDirty(b *testing.B) {
	s, err := autosave.New(b.Context(), memory())
	require.NoError(b, err)
	defer func() { _ = s.Dispose(b.Context()) }()
	b.ReportAllocs()
	for b.Loop() {
		s.MarkDirty()
	}
}

func TestFlushNow(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err, "the first generation is written even if nothing was marked")
		assert.Zero(t, g.Bytes)
		again, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, g, again, "nothing is dirty")
		a.typed("one")
		before := time.Now()
		g, err = a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(3), g.Bytes)
		assert.Equal(t, time.Second, time.Since(before), "it does not wait for the debounce")

		a.typed(" two")
		w.sleep(700 * time.Millisecond) // that is being written
		before = time.Now()
		g, err = a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(7), g.Bytes)
		assert.Equal(t, 800*time.Millisecond, time.Since(before), "it waits for the write under way")

		a.typed(" three")
		w.sleep(700 * time.Millisecond)
		a.typed(" four") // not in the write under way
		g, err = a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "one two three four", w.saved())
		assert.Equal(t, int64(len("one two three four")), g.Bytes)

		a.typed("!")
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		_, err = a.FlushNow(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.sleep(2 * time.Second)
		assert.Equal(t, "one two three four!", w.saved(), "saving went on")
	})
}

func TestManyFlushesShareAWrite(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		a.typed("one")
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := a.FlushNow(t.Context())
				assert.NoError(t, err)
			})
		}
		all.Wait()
		assert.Equal(t, 1, a.count(autosave.EventSaved))
	})
}

func TestDisabledWritesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Disabled = true
		a.open()
		a.typed("lost, as was wished")
		w.sleep(time.Hour)
		assert.Equal(t, autosave.State{Phase: autosave.PhaseDisabled, ReadOnly: true, Storage: autosave.StorageOPFS}, a.State())
		assert.True(t, a.ReadOnly())
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrDisabled)
		_, err = a.History(t.Context())
		require.ErrorIs(t, err, autosave.ErrDisabled)
		_, err = a.Restore(t.Context(), autosave.Current)
		require.ErrorIs(t, err, autosave.ErrDisabled)
		require.ErrorIs(t, a.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrDisabled)
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, a.Dispose(t.Context()))
		assert.Empty(t, a.files.Log())
		assert.Empty(t, w.disk.Paths())
		a.told("0s phase disabled")
	})
}

func TestDispose(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("last words")
		require.NoError(t, a.Dispose(t.Context()))
		assert.Equal(t, "last words", w.saved())
		require.NoError(t, a.Dispose(t.Context()), "again")
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrDisposed)
		_, err = a.Restore(t.Context(), autosave.Current)
		require.ErrorIs(t, err, autosave.ErrDisposed)
		require.ErrorIs(t, a.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrDisposed)
		require.ErrorIs(t, a.Resume(t.Context()), autosave.ErrDisposed)
		a.MarkDirty()
		assert.True(t, a.ReadOnly())
		assert.Equal(t, autosave.PhaseReadonly, a.State().Phase)
		assert.False(t, w.tab("b").ReadOnly(), "the lock is free")
	})
}

func TestWrongOptions(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		for name, change := range map[string]func(*autosave.Config){
			"debounceMs":          func(c *autosave.Config) { c.Debounce = -1 },
			"idleMs":              func(c *autosave.Config) { c.Idle = 1 },
			"maxGenerations":      func(c *autosave.Config) { c.Limits.MaxGenerations = -1 },
			"maxBytes":            func(c *autosave.Config) { c.Limits.MaxBytes = -1 },
			"snapshot":            func(c *autosave.Config) { c.Snapshot = nil },
			"lock.mode":           func(c *autosave.Config) { c.Lock.Mode = lock.Shared },
			"heartbeatIntervalMs": func(c *autosave.Config) { c.Lock.HeartbeatInterval = time.Hour },
		} {
			p := w.prepare(name)
			change(&p.config)
			err := p.tryOpen()
			require.Error(t, err, name)
			assert.ErrorContains(t, err, name)
			assert.Equal(t, "invalid-argument", code(err))
		}
	})
}

func TestMarksOfManyGoroutines(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 100 {
					a.typed("x")
					time.Sleep(7 * time.Millisecond)
				}
			})
		}
		all.Wait()
		w.sleep(time.Second)
		assert.Len(t, w.saved(), 2000)
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
	})
}
