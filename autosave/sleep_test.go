package autosave_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// The page is put to sleep while its veto is asked for. It does not edit again.
func TestVetoDuringSuspend(t *testing.T) {
	for name, answer := range map[string]error{"yes": nil, "no": errNotNow} {
		for _, nostandby := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) {
					a := w.prepare("a")
					a.slow()
					a.config.OnHandover = func(context.Context, string) error { time.Sleep(500 * time.Millisecond); return answer }
					edited := false
					a.config.Listener = func(e autosave.Event) {
						if e.Type == autosave.EventPhase && !e.State.ReadOnly && time.Since(w.start) > 100*time.Millisecond {
							edited = true
						}
						a.hear(e)
					}
					a.open()
					a.typed("text")
					b := w.prepare("b")
					b.config.NoStandby = nostandby
					b.open()
					asked := b.asks(t.Context(), autosave.EditOptions{})
					w.sleep(200 * time.Millisecond)
					require.NoError(t, a.Suspend(t.Context()))
					require.NoError(t, <-asked, "the lock is free then")
					assert.Less(t, time.Since(w.start), 2*time.Second)
					w.sleep(time.Minute)
					assert.False(t, edited)
					assert.True(t, a.ReadOnly())
					assert.False(t, b.ReadOnly())
					assert.Equal(t, "text", b.shows())
				})
			})
		}
	}
}

// The page wakes and makes sure of its lease while its veto is asked for. The asker gets its answer.
func TestResumeDuringVeto(t *testing.T) {
	for name, answer := range map[string]error{"yes": nil, "no": errNotNow} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.config.OnHandover = func(context.Context, string) error { time.Sleep(500 * time.Millisecond); return answer }
				a.open()
				b := w.tab("b")
				a.typed("text")
				asked := b.asks(t.Context(), autosave.EditOptions{})
				time.Sleep(200 * time.Millisecond)
				end := w.records.Open()
				time.AfterFunc(time.Second, end)
				require.NoError(t, a.Resume(t.Context()))
				if answer != nil {
					require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
					assert.False(t, a.ReadOnly())
					return
				}
				require.NoError(t, <-asked)
				assert.Equal(t, "text", b.shows())
				assert.Less(t, time.Since(w.start), 3*time.Second)
			})
		})
	}
}

// A request comes while the page makes sure of its lease.
func TestRequestDuringResume(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.typed("text")
		end := w.records.Open()
		time.AfterFunc(time.Second, end)
		resumed := make(chan error, 1)
		go func() { resumed <- a.Resume(context.Background()) }()
		synctest.Wait()
		asked := b.asks(t.Context(), autosave.EditOptions{})
		require.NoError(t, <-resumed)
		require.NoError(t, <-asked)
		assert.Equal(t, "text", b.shows())
		assert.Less(t, time.Since(w.start), 3*time.Second)
	})
}

// The page is put to sleep or closed while it makes sure of its lease: it saves nevertheless.
func TestSuspendDuringResume(t *testing.T) {
	for name, end := range map[string]func(*page, context.Context) error{
		"suspend": func(p *page, ctx context.Context) error { return p.Suspend(ctx) },
		"dispose": func(p *page, ctx context.Context) error { return p.Dispose(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.tab("a")
				a.typed("text")
				over := w.records.Open()
				time.AfterFunc(time.Second, over)
				go func() { _ = a.Resume(context.Background()) }()
				synctest.Wait()
				require.NoError(t, end(a, t.Context()))
				w.sleep(time.Minute)
				assert.True(t, a.ReadOnly())
				assert.Equal(t, "text", w.saved())
				assert.False(t, w.tab("b").ReadOnly())
			})
		})
	}
}

// The records do not answer at all when the page wakes. It lets go of its lease and gets another one.
func TestResumeWhileTheRecordsHang(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("text")
		time.AfterFunc(8*time.Second, w.records.Open())
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(30 * time.Second)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "text", w.saved())
	})
}

// The page wakes before it has saved what it had when it was put to sleep.
func TestResumeDuringSuspend(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		a.typed("text")
		suspended := make(chan error, 1)
		go func() { suspended <- a.Suspend(context.Background()) }()
		w.sleep(500 * time.Millisecond)
		require.NoError(t, a.Resume(t.Context()))
		require.NoError(t, <-suspended)
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "text", w.saved())
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		a.typed("!")
		go func() { suspended <- a.Suspend(context.Background()) }()
		synctest.Wait()
		require.ErrorIs(t, a.Resume(ctx), context.DeadlineExceeded)
		require.NoError(t, <-suspended)
	})
}

// The machine sleeps while the page loads, for longer than its lease lasts. The page edits only under a lease that it
// still has when it wakes.
func TestSleepWhileLoading(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1, "saved")
		a := w.prepare("a")
		asleep := false
		a.files.Before = func(op string) {
			if !asleep && strings.HasPrefix(op, "read history") {
				asleep = true
				w.clock.Sleep(time.Minute)
			}
		}
		a.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventEditable {
				lease, held := a.manager.Lease(e.LeaseID)
				if assert.True(t, held) {
					_, err := lease.Renew(t.Context())
					assert.NoError(t, err)
				}
			}
			a.hear(e)
		}
		a.open()
		w.sleep(time.Minute)
		assert.True(t, asleep)
		assert.Equal(t, 1, a.count(autosave.EventEditable))
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "saved", a.shows())
	})
}

// slowRelease is a Locker that takes a second for each release, as one that asks a server does.
type slowRelease struct{ lock.Locker }

func (l slowRelease) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := l.Locker.Request(ctx, r)
	return slowReleaseGrant{g}, err
}

type slowReleaseGrant struct{ lock.Grant }

func (g slowReleaseGrant) Release(ctx context.Context) error {
	time.Sleep(time.Second)
	return g.Grant.Release(ctx)
}

// The page wakes before the lock that it had is released. It waits for that, and edits again.
func TestResumeDuringTheReleaseOfSuspend(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.NoStandby = true
		a.options.Backends[0].Locker = slowRelease{a.options.Backends[0].Locker}
		a.open()
		suspended := make(chan error, 1)
		go func() { suspended <- a.Suspend(context.Background()) }()
		w.sleep(500 * time.Millisecond)
		require.NoError(t, a.Resume(t.Context()))
		assert.False(t, a.ReadOnly())
		require.NoError(t, <-suspended)
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		assert.Zero(t, a.count(autosave.EventReadonly))
	})
}

// A read-only page wakes while its text becomes a draft because it was put to sleep. It waits for its turn again.
func TestResumeDuringTheSealOfSuspend(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a, b := w.author("a", storage).start(), w.author("b", storage).start()
		b.types("mine")
		stopped, goOn := b.stopsAt("seal")
		suspended := make(chan error, 1)
		go func() { suspended <- b.Suspend(context.Background()) }()
		require.True(t, stopped())
		resumed := make(chan error, 1)
		go func() { resumed <- b.Resume(context.Background()) }()
		synctest.Wait()
		goOn()
		require.NoError(t, <-suspended)
		require.NoError(t, <-resumed)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		assert.False(t, b.ReadOnly())
		assert.Equal(t, "mine", w.saved())
	})
}

// The page is closed before the lock that it had as it was put to sleep is released. Dispose returns once the lock is free.
func TestDisposeDuringTheReleaseOfSuspend(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.options.Backends[0].Locker = slowRelease{a.options.Backends[0].Locker}
		a.open()
		go func() { _ = a.Suspend(context.Background()) }()
		w.sleep(500 * time.Millisecond)
		require.NoError(t, a.Dispose(t.Context()))
		b := w.prepare("b")
		b.config.NoStandby = true
		assert.False(t, b.open().ReadOnly())
	})
}
