package autosave_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// Another page is about to rob a silent editor. An asker without force learns that the editor does not answer.
func TestRequesterWithoutForceHasNoRival(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), autosave.EditOptions{})
		require.NoError(t, w.air.Join().Post(autosave.Message{Kind: autosave.EditRival, Round: "0", From: "ghost", Force: true}))
		require.ErrorIs(t, <-asked, autosave.ErrHandoverNoAnswer)
	})
}

// Two pages ask a silent editor. The page that takes the lock by force keeps it: the other one gives up.
func TestRivalOfATakeoverByForceGetsBusy(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b, c := w.tab("a"), w.tab("b"), w.tab("c")
		a.channel.Deafen(true)
		forced := b.asks(t.Context(), force)
		asked := c.asks(t.Context(), autosave.EditOptions{})
		require.NoError(t, <-forced)
		require.ErrorIs(t, <-asked, autosave.ErrHandoverBusy)
		w.sleep(time.Minute)
		assert.False(t, b.ReadOnly())
	})
}

// A page that takes the lock by force is waiting for it.
func TestTakeoverShowsThatThePageWaits(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.slowSteal(time.Second)
		b.open()
		a.channel.Deafen(true)
		asked := b.asks(t.Context(), force)
		w.sleep(1500 * time.Millisecond)
		assert.Equal(t, autosave.PhaseAwaitingLock, b.State().Phase)
		require.NoError(t, <-asked)
	})
}

// The options of the lock say nothing about how a page waits: it never robs an editor without a request.
func TestLockOptionsDoNotSteal(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.config.Lock.Steal = true
		b.open()
		w.sleep(time.Minute)
		assert.True(t, b.ReadOnly())
		assert.False(t, a.ReadOnly())
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		assert.False(t, b.ReadOnly())
	})
}

// A page asks while it wakes, and wakes as a viewer: it goes on waiting for the answer.
func TestRequestWhileThePageWakes(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		require.NoError(t, b.Suspend(t.Context()))
		a.channel.Deafen(true)
		go func() { _ = b.Resume(context.Background()) }()
		synctest.Wait()
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{}), autosave.ErrHandoverNoAnswer)
	})
}

// The editor is put to sleep or closed while it saves for a handover. The asker gets the lock.
func TestEditorLeavesWhileItSavesForAHandover(t *testing.T) {
	for name, leave := range map[string]func(*page, context.Context) error{
		"suspend": func(p *page, ctx context.Context) error { return p.Suspend(ctx) },
		"dispose": func(p *page, ctx context.Context) error { return p.Dispose(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.prepare("a")
				a.slow()
				a.open()
				b := w.tab("b")
				a.typed("text")
				asked := b.asks(t.Context(), autosave.EditOptions{})
				w.sleep(500 * time.Millisecond)
				require.NoError(t, leave(a, t.Context()))
				require.NoError(t, <-asked)
				assert.Equal(t, "text", b.shows())
			})
		})
	}
}

// A page that took the lock from an editor around its document kept others out of all of that. After it has lost the
// lock, it speaks for its own document alone.
func TestFormerEditorSpeaksForItsDocument(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book").open()
		b := w.document("b", "book/1").open()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.True(t, b.ReadOnly())
		var documents []string
		stop, err := w.air.Join().Listen(func(m autosave.Message) {
			if m.From == "b" && m.Kind == autosave.EditRequest {
				documents = append(documents, m.Document)
			}
		})
		require.NoError(t, err)
		defer stop()
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.Equal(t, []string{lock.Name("", []string{"book", "1"})}, documents)
	})
}
