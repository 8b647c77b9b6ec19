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

// savedUnder saves a text as the editor of a token does.
func (w *world) savedUnder(token int64, text string) {
	w.Helper()
	_, err := w.disk.Page().Commit(w.Context(), autosave.Commit{Content: autosave.Bytes(text), Token: token, SavedAt: time.Now()})
	require.NoError(w, err)
}

// The records were lost and the clock was set back: the store knows a later token than the lock hands out.
func TestLockLearnsTokenOfStore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1_000_000, "before")
		a := w.tab("a")
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "before", a.shows())
		assert.Zero(t, a.count(autosave.EventReadonly))
		a.typed(", after")
		_, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		lease, _ := a.Lease()
		assert.Greater(t, lease.Token, int64(1_000_000))
		require.NoError(t, a.Dispose(t.Context()))
		b := w.tab("b")
		b.typed("!")
		w.sleep(time.Second)
		assert.Equal(t, "before, after!", w.saved())
	})
}

// The page edits when the store refuses its token.
func TestEditorLearnsTokenOfStore(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		w.savedUnder(1_000_000, "theirs")
		a.typed("mine")
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, "theirs", a.shows())
		assert.Contains(t, a.offered(), "mine")
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
	})
}

// forgetful are records that never hand out a token after another one.
type forgetful struct{ lock.Records }

func (f forgetful) Claim(ctx context.Context, r lock.Record, stolen bool) (int64, error) {
	r.Token = 0
	return f.Records.Claim(ctx, r, stolen)
}

// The lock cannot learn the token of the store. The page pauses between its attempts and gets one event.
func TestRefusedTokensCauseNoLoop(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.savedUnder(1_000_000, "before")
		a := w.prepare("a")
		var claims atomic.Int32
		w.records.OnClaim = func(lock.Record) error { claims.Add(1); return nil }
		a.options.Backends[0].Records = forgetful{w.records}
		a.open()
		assert.True(t, a.ReadOnly())
		w.sleep(10 * time.Second)
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Less(t, int(claims.Load()), 10)
		require.ErrorIs(t, a.State().LastErr, autosave.ErrStaleToken)
		w.sleep(10 * time.Minute)
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Less(t, int(claims.Load()), 40)
		require.ErrorIs(t, a.RequestEdit(t.Context(), force), autosave.ErrReadOnly)
		w.disk.Evict()
		w.sleep(time.Minute)
		assert.False(t, a.ReadOnly(), "the store takes the token now")
	})
}

// refusing refuses every commit, as a server does whose lock is another one.
type refusing struct{ autosave.Store }

func (refusing) Commit(context.Context, autosave.Commit) (autosave.Generation, error) {
	return autosave.Generation{}, &autosave.Error{Code: autosave.CodeStaleToken}
}

func TestRefusedCommitsCauseNoLoop(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.store = refusing{a.store}
		var claims atomic.Int32
		w.records.OnClaim = func(lock.Record) error { claims.Add(1); return nil }
		a.open()
		a.typed("x")
		w.sleep(10 * time.Minute)
		assert.Less(t, int(claims.Load()), 40)
		assert.Equal(t, "x", a.shows())
	})
}
