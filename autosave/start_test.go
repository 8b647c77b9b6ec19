package autosave_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// full leaves no room on the disk.
func (w *world) full() {
	size := 0
	for _, path := range w.disk.Paths() {
		folder, name, _ := strings.Cut(path, "/")
		content, _ := w.disk.Client().Read(w.Context(), folder, name)
		size += len(content)
	}
	w.disk.SetCapacity(max(size, 1))
}

// The disk is full when the page opens: the page shows the text, edits, and says why it cannot save.
func TestFullDiskAtStart(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "before")
		w.full()
		b := w.tab("b")
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "before", b.shows())
		assert.Equal(t, autosave.PhaseError, b.State().Phase)
		require.ErrorIs(t, b.State().LastErr, autosave.ErrQuota)
		b.typed(", after")
		_, err := b.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrQuota)
		w.sleep(time.Minute)
		assert.Equal(t, autosave.PhaseError, b.State().Phase)
		assert.Equal(t, "before", w.saved())
		w.disk.SetCapacity(0)
		w.sleep(time.Minute)
		assert.Equal(t, "before, after", w.saved())
		assert.Equal(t, autosave.PhaseIdle, b.State().Phase)
		require.NoError(t, b.State().LastErr)
	})
}

// Nothing is typed on the full disk. The error ends when there is room.
func TestFullDiskAtStartAndNothingTyped(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "before")
		w.full()
		b := w.tab("b")
		w.disk.SetCapacity(0)
		w.sleep(time.Minute)
		assert.Equal(t, autosave.PhaseIdle, b.State().Phase)
		require.NoError(t, b.State().LastErr)
		assert.Zero(t, b.State().PendingBytes)
		g, err := b.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(1), g.Token, "nothing is saved again")
	})
}

// unwritable is a store on a disk on which not even an empty file can be made.
type unwritable struct {
	autosave.Store
	full   atomic.Bool
	fences atomic.Int32
}

func (s *unwritable) Fence(ctx context.Context, token int64) error {
	s.fences.Add(1)
	if s.full.Load() {
		return autosave.ErrQuota
	}
	return s.Store.Fence(ctx, token)
}

// unwritable replaces the page's store with one whose disk is full.
func (p *page) unwritable() *unwritable {
	disk := &unwritable{Store: p.store}
	disk.full.Store(true)
	p.store = disk
	return disk
}

// preparedOnFullDisk prepares a page that can read "before", and cannot write.
func (w *world) preparedOnFullDisk() (*page, *unwritable) {
	w.Helper()
	w.savedUnder(1, "before")
	_, _ = w.records.Claim(w.Context(), lock.Record{}, false)
	b := w.prepare("b")
	return b, b.unwritable()
}

// An editor that nobody could shut out saves before there is room again. Its text is loaded, and the page's is offered.
func TestPredecessorSavesWhileItCannotBeShutOut(t *testing.T) {
	for name, before := range map[string]string{"a text": "before", "an empty document": ""} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				_, _ = w.records.Claim(t.Context(), lock.Record{}, false)
				if before != "" {
					w.savedUnder(1, before)
				}
				b := w.prepare("b")
				disk := b.unwritable()
				b.open()
				require.False(t, b.ReadOnly())
				b.typed(", mine")
				w.sleep(10 * time.Second)
				flushed := make(chan error, 1)
				w.savedUnder(1, before+", theirs")
				disk.full.Store(false)
				go func() { _, err := b.FlushNow(context.Background()); flushed <- err }()
				w.sleep(time.Minute)
				require.ErrorIs(t, <-flushed, autosave.ErrReadOnly)
				assert.False(t, b.ReadOnly())
				assert.Equal(t, before+", theirs", w.generations()[0])
				assert.Equal(t, before+", theirs", b.shows())
				assert.Equal(t, []string{before + ", mine"}, b.offered())
				b.typed(", more")
				_, err := b.FlushNow(t.Context())
				require.NoError(t, err)
				assert.Equal(t, before+", theirs, more", w.saved())
			})
		})
	}
}

// The storage was emptied while the page was away. The page alone has the text: it saves it again.
func TestStorageEmptiedWhileAway(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("text")
		require.NoError(t, a.Suspend(t.Context()))
		w.disk.Evict()
		require.NoError(t, a.Resume(t.Context()))
		assert.False(t, a.ReadOnly())
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		content, err := a.Read(t.Context(), g.ID)
		require.NoError(t, err)
		assert.Equal(t, "text", string(content))
		assert.Equal(t, "text", w.saved())
	})
}

func TestStorageEmptiedWhileAwayIsFilledBySelf(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.typed("text")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.disk.Evict()
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		w.sleep(time.Second)
		assert.Equal(t, "text", w.saved())
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
	})
}

// wiped is a server that lost its content. This machine has the history.
type wiped struct{ autosave.Store }

func (s wiped) List(ctx context.Context) ([]autosave.Generation, error) {
	all, err := s.Store.List(ctx)
	for i := range all {
		all[i].Current = all[i].Current && all[i].Token > 1
	}
	return all, err
}

// A server may have been wiped on purpose: the history does not come back by itself.
func TestWipedServerLeavesHistoryAlone(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "before")
		_, _ = w.records.Claim(t.Context(), lock.Record{}, false)
		a := w.prepare("a")
		a.store = wiped{a.store}
		a.open()
		assert.False(t, a.ReadOnly())
		assert.Empty(t, a.shows())
		all, err := a.History(t.Context())
		require.NoError(t, err)
		content, err := a.Restore(t.Context(), all[0].ID)
		require.NoError(t, err)
		assert.Equal(t, "before", string(content))
		assert.Equal(t, []string{"before", "", "before"}, w.generations())
	})
}

// The server was wiped while a page with a text was away. The open text is saved again.
func TestWipedServerGetsTheOpenText(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.store = wiped{a.store}
		a.open()
		a.typed("text")
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(5 * time.Second)
		assert.Equal(t, []string{"text", "text"}, w.generations())
		assert.Equal(t, autosave.PhaseIdle, a.State().Phase)
	})
}

// Nothing that was saved can be read. The page keeps its text and saves it.
func TestNothingIsReadable(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("mine")
		lease := w.stealer()
		w.savedUnder(lease.Token, "theirs")
		for _, path := range w.disk.Paths() {
			if strings.HasPrefix(path, autosave.FolderHistory) {
				w.disk.Corrupt(path)
			}
		}
		require.NoError(t, lease.Release(t.Context()))
		w.sleep(5 * time.Second)
		assert.Equal(t, "mine", a.shows())
		assert.Equal(t, "mine", w.saved())
	})
}

// The caller of New gives up while the storage hangs. New returns, and others get the lock.
func TestNewThatIsAbortedGivesBackTheLock(t *testing.T) {
	for _, hangs := range []string{"list index", "write index", "read history"} {
		t.Run(hangs, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				w.savedUnder(1, "before")
				_, _ = w.records.Claim(t.Context(), lock.Record{}, false)
				hang := make(chan struct{})
				defer close(hang)
				a := w.prepare("a")
				a.files.Before = func(operation string) {
					if strings.HasPrefix(operation, hangs) {
						<-hang
					}
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				require.ErrorIs(t, a.openIn(ctx), context.DeadlineExceeded)
				assert.Less(t, time.Since(w.start), 15*time.Second)
				b := w.tab("b")
				assert.False(t, b.ReadOnly())
				assert.Equal(t, "before", b.shows())
			})
		})
	}
}

// The lock answers only after the caller of New has given up.
func TestNewThatIsAbortedGivesBackALateLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.records.OnClaim = func(r lock.Record) error {
			if r.OwnerID == "a" {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		a := w.prepare("a")
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, a.openIn(ctx), context.DeadlineExceeded)
		w.sleep(5 * time.Second)
		assert.False(t, w.tab("b").ReadOnly())
	})
}

// The disk is full when a page opens a document of which nothing is saved. It saves as soon as there is room.
func TestFullDiskAtTheStartOfADocument(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		disk := a.unwritable()
		a.open()
		require.False(t, a.ReadOnly())
		a.typed("first")
		disk.full.Store(false)
		began := time.Now()
		_, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Zero(t, time.Since(began), "it waits for no pause in typing")
		assert.Equal(t, "first", w.saved())
	})
}

// uncancellableFence is a store that excludes the previous editor a second after the first attempt, whatever becomes of its context.
type uncancellableFence struct {
	autosave.Store
	fences *atomic.Int32
}

func (h uncancellableFence) Fence(context.Context, int64) error {
	if h.fences.Add(1) == 1 {
		return autosave.ErrQuota
	}
	time.Sleep(time.Second)
	return nil
}

func (h uncancellableFence) List(ctx context.Context) ([]autosave.Generation, error) {
	return h.Store.List(context.WithoutCancel(ctx))
}

// The previous editor is excluded just after the lock was lost: the page says nevertheless why it is read-only.
func TestLockLostAsTheEditorBeforeIsShutOut(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		b := w.prepare("b")
		b.store = uncancellableFence{b.store, new(atomic.Int32)}
		b.open()
		w.sleep(1950 * time.Millisecond)
		w.stealer()
		w.sleep(time.Second)
		assert.True(t, b.ReadOnly())
		require.ErrorIs(t, b.State().LastErr, lock.ErrLost)
	})
}

// Nothing can be read for a long time. The attempts leave no files behind.
func TestAttemptsToLoadDoNotPileUp(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "saved")
		_, _ = w.records.Claim(t.Context(), lock.Record{}, false)
		before := w.disk.Paths()
		a := w.prepare("a")
		a.failing("read index", autosavetest.Refused)
		a.open()
		w.sleep(time.Hour)
		assert.Positive(t, a.State().RetryCount)
		assert.Equal(t, before, w.disk.Paths())
	})
}
