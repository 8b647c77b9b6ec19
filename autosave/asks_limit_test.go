package autosave_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// requests counts how often pages have asked for the lock.
func (w *world) requests() *atomic.Int32 {
	w.Helper()
	n := new(atomic.Int32)
	stop, err := w.network.Join().Listen(func(m autosave.Message) {
		if m.Kind == autosave.EditRequest {
			n.Add(1)
		}
	})
	require.NoError(w, err)
	w.Cleanup(stop)
	return n
}

// One page after the other becomes the editor and answers nothing. The asking page gives up after four requests,
// however it learns of the next editor.
func TestAskingEndsAfterFourEditors(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "found": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				w.tab("a").channel.Deafen(true)
				b := w.tab("b")
				n := w.requests()
				asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Second})
				network := w.network.Join()
				for i := range 6 {
					w.sleep(500 * time.Millisecond)
					m, err := lock.NewManager(w.prepare(fmt.Sprintf("next-%d", i)).options)
					require.NoError(t, err)
					defer func() { _ = m.Close(context.Background()) }()
					lease, err := m.Acquire(t.Context(), lock.AcquireOptions{Steal: true})
					require.NoError(t, err)
					if announced {
						require.NoError(t, network.Post(autosave.Message{Kind: autosave.Edits, Holder: lock.Holder{OwnerID: lease.OwnerID, LeaseID: lease.ID}}))
					} else {
						w.sleep(500 * time.Millisecond)
					}
				}
				require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
				assert.Equal(t, int32(4), n.Load())
			})
		})
	}
}

// The offer has expired when its page reads it. That page asks again at once.
func TestExpiredOfferIsAskedForAgainAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.tab("a")
		b := w.prepare("b")
		let := make(chan struct{})
		b.config.Channel = delaying{b.channel, autosave.EditGranted, let}
		b.open()
		n := w.requests()
		asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
		w.sleep(30 * time.Second)
		require.Equal(t, int32(1), n.Load())
		close(let)
		require.NoError(t, <-asked)
		assert.Equal(t, 30*time.Second, time.Since(w.start))
		assert.Equal(t, int32(2), n.Load())
	})
}

// reachableStore is a store on another machine that answers.
type reachableStore struct{ unreachableStore }

func (reachableStore) Online() bool { return true }

// A page that waits for a document of another machine goes behind a page that asks.
func TestWaitingPageGoesBehindThePageThatAsks(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		var waiting []*page
		for _, name := range []string{"b", "c"} {
			p := w.prepare(name)
			p.store = reachableStore{unreachableStore{p.store, 0}}
			waiting = append(waiting, p.open())
		}
		b, c := waiting[0], waiting[1]
		a.channel.Deafen(true)
		asked := c.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		require.NoError(t, <-asked)
		assert.False(t, c.ReadOnly())
		assert.Zero(t, b.count(autosave.EventEditable))
	})
}

// forbidding is a store that lets the user save nothing.
type forbidding struct{ autosave.Store }

func (forbidding) Commit(context.Context, autosave.Commit) (autosave.Generation, error) {
	return autosave.Generation{}, lock.ErrNotAllowed
}

// A page whose user may not save releases the lock and does not wait for it again.
func TestPageThatMayNotSaveDoesNotWait(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.store = forbidding{a.store}
		var claims atomic.Int32
		w.records.OnClaim = func(lock.Record) error { claims.Add(1); return nil }
		a.open()
		a.typed("x")
		w.sleep(time.Hour)
		assert.True(t, a.ReadOnly())
		assert.Equal(t, int32(1), claims.Load())
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
	})
}

// The store refuses a token, later saves, and refuses another one. The second refusal is as short as the first one.
func TestRefusalAfterASaveIsAFirstOne(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		refusedFor := func(token int64) time.Duration {
			w.savedUnder(token, "theirs")
			before := a.count(autosave.EventReadonly)
			a.typed("mine")
			for a.count(autosave.EventReadonly) == before {
				w.sleep(time.Millisecond)
			}
			began := time.Now()
			for a.ReadOnly() {
				w.sleep(time.Millisecond)
			}
			a.typed("!")
			w.sleep(time.Minute)
			require.Equal(t, "theirs!", w.saved())
			return time.Since(began)
		}
		assert.Equal(t, refusedFor(1_000_000), refusedFor(2_000_000))
	})
}
