package autosave_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// stealer takes the lock and keeps it.
func (w *world) stealer() lock.Lease {
	w.Helper()
	m := w.manager("stealer")
	lease, err := m.Acquire(w.Context(), lock.AcquireOptions{Steal: true})
	require.NoError(w, err)
	w.sleep(0)
	return lease
}

// manager joins without a page.
func (w *world) manager(name string) *lock.Manager {
	options := w.prepare(name).options
	options.Channel = nil // it answers no question
	m, err := lock.NewManager(options)
	require.NoError(w, err)
	w.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func TestStolenLockKeepsBuffer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("saved")
		w.sleep(time.Second)
		a.typed(", unsaved")
		a.forget()
		lease := w.stealer()
		assert.True(t, a.ReadOnly())
		_, ok := a.Lease()
		assert.False(t, ok)
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrReadOnly)
		require.ErrorIs(t, err, lock.ErrLost)
		assert.Equal(t, int64(len("saved, unsaved")), a.State().PendingBytes)
		w.sleep(time.Minute)
		// The stealer wrote nothing: the page may simply go on.
		require.NoError(t, lease.Release(t.Context()))
		w.sleep(time.Second)
		assert.Equal(t, "saved, unsaved", w.saved())
		a.told(`
			1s phase readonly pending=5 lease-lost
			1.04s readonly lease-lost lease-lost holder=stealer unsaved="saved, unsaved"
			1m1s phase awaiting-lock pending=14 lease-lost
			1m1s editable
			1m1s phase debouncing pending=5
			1m1s phase writing-current pending=5
			1m1s phase updating-index pending=14
			1m1s phase gc pending=14
			1m1s phase idle
			1m1s saved #3 14B
		`)
	})
}

func TestForeignContentIsLoadedAndBufferOffered(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("mine")
		lease := w.stealer()
		a.typed(" and more") // nobody should, but if so it is kept
		_, err := w.disk.Page().Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("theirs"), Token: lease.Token, SavedAt: time.Now()})
		require.NoError(t, err)
		w.sleep(time.Minute)
		require.NoError(t, lease.Release(t.Context()))
		w.sleep(time.Second)
		assert.Equal(t, "theirs", a.shows())
		assert.Equal(t, []string{"mine", "mine and more"}, a.offered())
		assert.Equal(t, []string{"theirs"}, w.generations(), "nothing is overwritten")
	})
}

// Every final error of the lock makes the page read-only, once, with its reason.
func TestFinalErrorsOfTheLock(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		break_ func(w *world, a *page)
		script string
	}{
		"lease-stale: the machine slept": {func(w *world, _ *page) { w.clock.Sleep(time.Minute); w.sleep(10 * time.Second) },
			"readonly renew-failed lease-stale unsaved=\"x\""},
		"renew-failed until the TTL is over": {func(w *world, _ *page) {
			w.renewal.Store(&broken)
			w.sleep(25 * time.Second)
		}, "readonly renew-failed lease-stale"},
		"lease-lost: stolen": {func(w *world, _ *page) { w.stealer() }, "readonly lease-lost lease-lost holder=stealer unsaved=\"x\""},
		"lease-lost: the record is of another one": {func(w *world, _ *page) {
			var lost error = lock.ErrLost
			w.renewal.Store(&lost)
			w.sleep(10 * time.Second)
		}, "readonly lease-lost lease-lost"},
		"released by somebody of this page": {func(w *world, a *page) {
			l, _ := a.Lease()
			_ = l.Release(w.Context())
			w.sleep(0)
		}, "readonly lease-lost lease-lost unsaved=\"x\""},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.config.NoStandby = true
				a.config.Debounce = 20 * time.Second
				if name[0] == 'l' && name[6] == 'l' {
					a.config.Debounce = time.Second
				}
				a.open()
				a.typed("x")
				if name == "renew-failed until the TTL is over" || name == "lease-lost: the record is of another one" {
					_, err := a.FlushNow(t.Context())
					require.NoError(t, err)
				}
				a.forget()
				c.break_(w, a)
				assert.True(t, a.ReadOnly())
				assert.Equal(t, autosave.PhaseReadonly, a.State().Phase)
				w.sleep(time.Minute)
				require.Equal(t, 1, a.count(autosave.EventReadonly))
				assert.Contains(t, a.lines(), c.script)
			})
		})
	}
}

// lines returns the recorded events, without times.
func (p *page) lines() (lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		_, text, _ := strings.Cut(p.line(e), " ")
		lines = append(lines, text)
	}
	return lines
}

func TestPassingRenewalFailureChangesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.forget()
		broken := errors.New("for a moment")
		w.renewal.Store(&broken)
		w.sleep(20 * time.Second)
		w.renewal.Store(nil)
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		a.told("")
	})
}

func TestReleaseThatFails(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("x")
		broken := errors.New("broken")
		w.removal.Store(&broken)
		require.ErrorIs(t, a.Dispose(t.Context()), lock.ErrReleaseFailed)
		assert.Equal(t, "x", w.saved())
	})
}

func TestNoLockerAvailable(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		locker := w.space.Client("a")
		locker.Refuse = func(lock.Request) error { return lock.ErrUnsupported }
		a.options.Backends[0].Locker = locker
		a.open()
		w.sleep(time.Hour)
		a.told(`
			0s phase awaiting-lock
			0s phase readonly unsupported
			0s readonly acquire-failed unsupported
		`)
		require.ErrorIs(t, a.State().LastErr, lock.ErrUnsupported)
	})
}

func TestLockThatNeverAnswers(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hung := make(chan struct{})
		locker := w.space.Client("a")
		locker.Refuse = func(lock.Request) error { <-hung; return lock.ErrDenied }
		a.options.Backends[0].Locker = locker
		a.open()
		t.Cleanup(func() { close(hung) })
		assert.Equal(t, 5*time.Second, time.Since(w.start))
		a.told(`
			0s phase awaiting-lock
			5s phase readonly acquire-timeout
			5s readonly acquire-failed acquire-timeout
		`)
	})
}

// The page gets the event within 100 ms even if no page answers who edits, and the snapshot is slow.
func TestReadonlyEventComesAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		take := a.config.Snapshot
		a.config.Snapshot = func(ctx context.Context) (autosave.Content, error) { time.Sleep(time.Second); return take(ctx) }
		a.open()
		a.typed("slow")
		a.forget()
		w.network.Join()
		locker := w.space.Client("silent") // holds, and answers no question
		_, err := locker.Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "project", Mode: lock.Exclusive}}, Steal: true})
		require.NoError(t, err)
		w.sleep(100 * time.Millisecond)
		a.told(`
			0s phase readonly pending=1 lease-lost
			60ms readonly lease-lost lease-lost holder=silent
		`)
		w.sleep(time.Second)
		assert.Equal(t, int64(4), a.State().PendingBytes, "the snapshot is kept when it comes")
	})
}

func TestOldestWaiterIsNext(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		pages := []*page{w.tab("a"), w.tab("b"), w.tab("c"), w.tab("d")}
		for i, p := range pages {
			assert.False(t, p.ReadOnly(), p.name)
			p.typed(p.name)
			for _, other := range pages[i+1:] {
				assert.True(t, other.ReadOnly())
				assert.Equal(t, p.name, other.State().Holder.OwnerID, "%s knows who edits", other.name)
			}
			w.sleep(time.Second)
			assert.Equal(t, "abcd"[:i+1], w.saved())
			require.NoError(t, p.Dispose(t.Context()))
			w.sleep(0)
		}
	})
}

func TestCrashedTabIsSucceeded(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.typed("half a second is what a crash may cost")
		w.sleep(600 * time.Millisecond)
		a.typed(", not more")
		a.files.Kill()
		w.space.Kill("a")
		w.sleep(0)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "half a second is what a crash may cost", b.shows())
	})
}

func TestPageWithoutStandbyStaysReadonly(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.config.NoStandby = true
		b.open()
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Hour)
		assert.True(t, b.ReadOnly())
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.False(t, b.ReadOnly())
	})
}

// late posts what it is given a little later.
type late struct{ lock.Channel }

func (c late) Post(m lock.Message) error {
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = c.Channel.Post(m)
	}()
	return nil
}

// On a machine with much to do the holder's name comes after autosave:readonly.
func TestLateHolderIsReported(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.options.Channel = late{a.options.Channel}
		a.open()
		b := w.tab("b")
		require.NotNil(t, b.State().Holder)
		assert.Empty(t, b.State().Holder.LeaseID, "another owner holds the lock, with an unknown lease")
		b.forget()
		w.sleep(time.Second)
		assert.Equal(t, "tab a", b.State().Holder.OwnerName)
		b.told("140ms phase readonly acquire-denied")
	})
}

// slowLocks answers later than it was wanted to, and heeds no context.
type slowLocks struct {
	autosave.Locks
	delay time.Duration
}

func (l slowLocks) Acquire(ctx context.Context, opts lock.AcquireOptions) (lock.Lease, error) {
	lease, err := l.Locks.Acquire(context.WithoutCancel(ctx), opts)
	time.Sleep(l.delay)
	return lease, err
}

// A lease that comes when nobody wants it any more is given back, whether it was asked for
// at the beginning or in the queue.
func TestLateLeaseIsReleased(t *testing.T) {
	for name, held := range map[string]bool{"at the beginning": false, "in the queue": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				var holder *page
				if held {
					holder = w.tab("holder")
				}
				p := w.prepare("late")
				var err error
				p.manager, err = lock.NewManager(p.options)
				require.NoError(t, err)
				defer func() { _ = p.manager.Close(context.Background()) }()
				p.config.Store, p.config.Locks = p.store, slowLocks{p.manager, 2 * time.Second}
				ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
				if !held {
					ctx, stop = context.WithTimeout(t.Context(), time.Second)
				}
				defer stop()
				s, err := autosave.New(ctx, p.config)
				if held {
					require.NoError(t, err)
					require.NoError(t, holder.Dispose(t.Context()))
					w.sleep(time.Second)
					require.NotEmpty(t, p.manager.Leases(), "it is on its way")
					ctx, stop := context.WithTimeout(t.Context(), time.Second/2)
					defer stop()
					require.ErrorIs(t, s.Dispose(ctx), context.DeadlineExceeded)
				} else {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				w.sleep(10 * time.Second)
				assert.Empty(t, p.manager.Leases())
				assert.False(t, w.tab("next").ReadOnly())
			})
		})
	}
}
