package autosave_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// asks begins to ask for the lock.
func (p *page) asks(ctx context.Context, opts autosave.EditOptions) <-chan error {
	result := make(chan error, 1)
	go func() { result <- p.RequestEdit(ctx, opts) }()
	synctest.Wait()
	return result
}

var errNotNow = errors.New("not now")

func refuses(context.Context, string) error { return errNotNow }

// The editor that was asked leaves. The next one is asked as well, and says no.
func TestNextEditorIsAskedBeforeForce(t *testing.T) {
	for name, forced := range map[string]bool{"force": true, "no force": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.tab("a")
				c := w.prepare("c")
				c.config.OnHandover = refuses
				c.open()
				b := w.tab("b")
				a.channel.Deafen(true)
				asked := b.asks(t.Context(), autosave.EditOptions{Force: forced})
				w.sleep(4 * time.Second)
				require.NoError(t, a.Dispose(t.Context()))
				w.sleep(0)
				require.False(t, c.ReadOnly())
				require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
				assert.False(t, c.ReadOnly())
				assert.Less(t, time.Since(w.start), 5*time.Second)
			})
		})
	}
}

// The next editor still loads when the time of the first one is over, and no page knows of it.
func TestNextEditorThatLoadsKeepsItsLock(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("text")
		w.sleep(time.Second)
		c := w.prepare("c")
		c.config.OnHandover = refuses
		c.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventEditable {
				time.Sleep(3 * time.Second)
			}
			c.hear(e)
		}
		c.open()
		b := w.tab("b")
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), autosave.EditOptions{Force: true})
		w.sleep(4 * time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		require.ErrorIs(t, <-asked, autosave.ErrHandoverBusy)
		w.sleep(10 * time.Second)
		assert.False(t, c.ReadOnly())
		assert.Zero(t, c.count(autosave.EventReadonly)-1, "it was read-only in the beginning alone")
	})
}

// The editor accepts, and dies before it grants. The page asks its successor too.
func TestSuccessorOfEditorThatAcceptedIsAsked(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.OnHandover = undecided
		a.open()
		c := w.tab("c")
		b := w.tab("b")
		asked := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		a.files.Kill()
		a.channel.Deafen(true)
		w.space.Kill("a")
		require.NoError(t, <-asked)
		assert.Less(t, time.Since(w.start), 5*time.Second)
		assert.True(t, c.ReadOnly())
	})
}

// A page that is put to sleep while it asks does not become the editor.
func TestSuspendWhileAsking(t *testing.T) {
	for name, veto := range map[string]time.Duration{"before the grant": 2 * time.Second, "at the grant": time.Second} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.config.OnHandover = func(context.Context, string) error { time.Sleep(veto); return nil }
				a.open()
				b := w.tab("b")
				asked := b.asks(t.Context(), force)
				time.Sleep(time.Second)
				require.NoError(t, b.Suspend(t.Context()))
				err := <-asked
				if veto > time.Second || err != nil { // else the grant came just before the sleep
					require.ErrorIs(t, err, autosave.ErrReadOnly)
				}
				w.sleep(time.Minute)
				assert.True(t, b.ReadOnly())
				assert.False(t, a.ReadOnly())
				require.NoError(t, b.Resume(t.Context()))
				require.NoError(t, b.RequestEdit(t.Context(), force))
				assert.False(t, b.ReadOnly())
			})
		})
	}
}

// slowSteal delays each steal of the lock.
func (p *page) slowSteal(d time.Duration) {
	locker := p.w.space.Client(p.name)
	locker.Refuse = func(r lock.Request) error {
		if r.Steal {
			time.Sleep(d)
		}
		return nil
	}
	p.options.Backends[0].Locker = locker
}

// A caller that gives up after the grant does not become the editor.
func TestAbortAfterTheGrant(t *testing.T) {
	for name, after := range map[string]time.Duration{"while it takes the lock": 500 * time.Millisecond, "while it loads": 1500 * time.Millisecond,
		"while the page loads": 2500 * time.Millisecond, "as it has the lock": time.Second} {
		for name2, suspend := range map[string]bool{"abort": false, "suspend": true} {
			t.Run(name+", "+name2, func(t *testing.T) {
				virtual(t, func(t *testing.T, w *world) {
					a := w.tab("a")
					a.typed("text")
					w.sleep(time.Second)
					b := w.prepare("b")
					b.slowSteal(time.Second)
					b.files.Before = func(operation string) {
						if operation == "list index" && time.Since(w.start) > 1100*time.Millisecond && time.Since(w.start) < 2100*time.Millisecond {
							time.Sleep(time.Second)
						}
					}
					b.config.Listener = func(e autosave.Event) {
						if e.Type == autosave.EventEditable {
							time.Sleep(time.Second)
						}
						b.hear(e)
					}
					b.open()
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					asked := b.asks(ctx, force)
					time.Sleep(after)
					if suspend {
						require.NoError(t, b.Suspend(t.Context()))
						require.Error(t, <-asked)
					} else {
						stop()
						require.ErrorIs(t, <-asked, autosave.ErrAborted)
					}
					w.sleep(time.Minute)
					assert.True(t, b.ReadOnly())
					assert.False(t, a.ReadOnly(), "the page holds its lock again")
					assert.NotEqual(t, autosave.PhaseAwaitingLock, b.State().Phase)
					a.typed("!")
					w.sleep(time.Second)
					assert.Equal(t, "text!", w.saved())
				})
			})
		}
	}
}

// delaying holds back the messages of a kind for a page until it is released.
type delaying struct {
	autosave.Channel
	kind autosave.MessageKind
	let  chan struct{}
}

func (d delaying) Listen(handle func(autosave.Message)) (func(), error) {
	return d.Channel.Listen(func(m autosave.Message) {
		if m.Kind != d.kind {
			handle(m)
			return
		}
		go func() { <-d.let; handle(m) }()
	})
}

// sleeping is the channel of a page that receives nothing from a message of that kind on, until it wakes. It then receives everything in order.
type sleeping struct {
	autosave.Channel
	at   autosave.MessageKind
	wake chan struct{}
}

func (c sleeping) Listen(handle func(autosave.Message)) (func(), error) {
	heard := make(chan autosave.Message, 100)
	go func() {
		for m := range heard {
			if m.Kind == c.at {
				<-c.wake
			}
			handle(m)
		}
	}()
	stop, err := c.Channel.Listen(func(m autosave.Message) { heard <- m })
	return func() { stop(); close(heard) }, err
}

// The asker sleeps when the editor accepts or offers the lock, and wakes after the offer: the editor goes on, and is asked again.
func TestGrantIsNotTakenLongAfter(t *testing.T) {
	for _, kind := range []autosave.MessageKind{autosave.EditAccepted, autosave.EditGranted} {
		for _, long := range []time.Duration{11 * time.Second, 22 * time.Second, 30 * time.Second} {
			virtual(t, func(t *testing.T, w *world) { wakesAfterTheOffer(t, w, kind, long) })
		}
	}
}

func wakesAfterTheOffer(t *testing.T, w *world, at autosave.MessageKind, long time.Duration) {
	a := w.prepare("a")
	var vetoes atomic.Int32
	a.config.OnHandover = func(context.Context, string) error {
		if vetoes.Add(1) > 1 {
			return errNotNow
		}
		return nil
	}
	a.open()
	b := w.prepare("b")
	wake := make(chan struct{})
	b.config.Channel = sleeping{b.channel, at, wake}
	b.open()
	asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
	w.sleep(long)
	require.False(t, a.ReadOnly(), "the offer is over")
	a.typed("meanwhile")
	close(wake)
	require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused, "%s, %s", at, long)
	assert.False(t, a.ReadOnly())
}

// nestedLocks are taken within a lease.
type nestedLocks struct {
	*lock.Manager
	within lock.Lease
}

func (n nestedLocks) Acquire(ctx context.Context, opts lock.AcquireOptions) (lock.Lease, error) {
	return n.Manager.Acquire(lock.Within(ctx, n.within), opts)
}

// withinLease prepares a page whose lock is within a lease. It returns the manager of both, that lease, and how often the page has asked for its lock.
func (w *world) withinLease(t *testing.T, mode lock.Mode) (a *page, m *lock.Manager, around lock.Lease, acquired *atomic.Int32) {
	a, acquired = w.prepare("a"), new(atomic.Int32)
	m, err := lock.NewManager(a.options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	around, err = m.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"chapter"}, Mode: mode})
	require.NoError(t, err)
	a.config.Store, a.config.Lock.Path = a.store, []string{"chapter", "text"}
	a.config.Locks = counted{nestedLocks{m, around}, acquired}
	return a, m, around, acquired
}

// The page comes back from the back/forward cache, and the lease around its own one is over. It says so once, and does
// not wait for what cannot come.
func TestAcquireWithinEndedLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, _, around, acquired := w.withinLease(t, lock.Exclusive)
		var err error
		a.Saver, err = autosave.New(t.Context(), a.config)
		require.NoError(t, err)
		defer func() { _ = a.Dispose(context.Background()) }()
		require.False(t, a.ReadOnly())
		a.typed("text")
		require.NoError(t, a.Suspend(t.Context()))
		require.NoError(t, around.Release(t.Context()))
		a.forget()
		acquired.Store(0)
		require.NoError(t, a.Resume(t.Context()))
		w.sleep(time.Hour)
		assert.True(t, a.ReadOnly())
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Equal(t, int32(1), acquired.Load())
		assert.Equal(t, "invalid-argument", code(a.State().LastErr))
		require.ErrorIs(t, a.RequestEdit(t.Context(), force), autosave.ErrReadOnly)
	})
}

// The program of the page begins again after the back/forward cache, and the lease around the page's own one is gone: the page is
// read-only, and learns of it once. Nobody else would tell it that it may not type.
func TestBeginAgainWithinEndedLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, _, around, _ := w.withinLease(t, lock.Exclusive)
		require.NoError(t, around.Release(t.Context()))
		_, err := autosave.New(t.Context(), a.config)
		require.ErrorIs(t, err, lock.ErrInvalidArgument)
		a.forget()
		a.config.Again = true
		a.Saver, err = autosave.New(t.Context(), a.config)
		require.NoError(t, err)
		defer func() { _ = a.Dispose(context.Background()) }()
		w.sleep(time.Hour)
		assert.True(t, a.ReadOnly())
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Equal(t, "invalid-argument", code(a.State().LastErr))
	})
}

// A page waits in the queue, and the lease around its own one ends. The page says so, and leaves the queue for good.
func TestWaitWithinEndedLease(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, m, around, acquired := w.withinLease(t, lock.Shared)
		_, err := m.Acquire(t.Context(), lock.AcquireOptions{Path: []string{"chapter", "text"}})
		require.NoError(t, err, "another page edits")
		a.Saver, err = autosave.New(t.Context(), a.config)
		require.NoError(t, err)
		defer func() { _ = a.Dispose(context.Background()) }()
		w.sleep(time.Minute)
		a.forget()
		acquired.Store(0)
		require.NoError(t, around.Release(t.Context()))
		w.sleep(time.Hour)
		assert.True(t, a.ReadOnly())
		assert.LessOrEqual(t, acquired.Load(), int32(1))
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Equal(t, "invalid-argument", code(a.State().LastErr))
	})
}

type counted struct {
	nestedLocks
	n *atomic.Int32
}

func (c counted) Acquire(ctx context.Context, opts lock.AcquireOptions) (lock.Lease, error) {
	c.n.Add(1)
	return c.nestedLocks.Acquire(ctx, opts)
}
