package autosave_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// Text that was offered and then saved is not offered a second time.
func TestBufferIsOfferedUntilSomethingIsSaved(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		a.typed("mine")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true, Grace: time.Millisecond}))
		a.channel.Deafen(false)
		w.sleep(100 * time.Millisecond)
		b.typed("theirs")
		for range 2 {
			require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
			require.NoError(t, a.FlushEvents(t.Context()))
			a.typed("+")
			require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
			require.NoError(t, b.FlushEvents(t.Context()))
			b.typed("-")
		}
		w.sleep(time.Second)
		assert.Equal(t, "theirs+-+-", w.saved())
		assert.Equal(t, []string{"mine", "mine"}, a.offered(), "when it lost the lock and when it had it again")
		assert.Empty(t, b.offered())
	})
}

// The store knows a successor that the lock has not reported.
func TestStaleTokenEndsEditing(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.NoStandby = true
		a.open()
		require.NoError(t, w.disk.Page().Fence(t.Context(), 99))
		a.typed("x")
		_, err := a.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrStaleToken)
		w.sleep(time.Second)
		assert.Equal(t, autosave.PhaseReadonly, a.State().Phase)
		assert.Equal(t, []string{"x"}, a.offered())
		assert.Equal(t, 1, a.count(autosave.EventReadonly))
		assert.Empty(t, a.manager.Leases(), "nobody waits for one who may not write")
	})
}

func TestTextTypedDuringARestoreIsBackedUp(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		a.typed("one")
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		a.typed(" two")
		go func() { time.Sleep(900 * time.Millisecond); a.typed(" three") }()
		content, err := a.Restore(t.Context(), g.ID)
		require.NoError(t, err)
		assert.Equal(t, "one", string(content))
		assert.Equal(t, []string{"one", "one two three", "one two", "one"}, w.generations())
	})
}

// Even what is typed while the page becomes the editor is kept.
func TestTextTypedWhileLoadingIsKept(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		b := w.prepare("b")
		first := true
		b.config.Snapshot = func(ctx context.Context) (autosave.Content, error) {
			text, err := b.snapshot(ctx)
			if first {
				first = false
				go func() { time.Sleep(time.Millisecond); b.typed(" late") }()
				time.Sleep(10 * time.Millisecond)
			}
			return text, err
		}
		a.open()
		b.open()
		a.typed("theirs")
		b.typed("mine")
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		assert.Equal(t, "theirs", b.shows())
		assert.Equal(t, []string{"mine late"}, b.offered())
	})
}

// Something is typed during each snapshot, and there is no place for drafts: the page edits nevertheless.
func TestTypingWithoutEndDuringLoading(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.config.Snapshot = func(ctx context.Context) (autosave.Content, error) {
			b.typed("+")
			text, err := b.snapshot(ctx)
			if b.ReadOnly() {
				b.typed("-")
			}
			time.Sleep(10 * time.Millisecond)
			return text, err
		}
		b.open()
		a.typed("theirs")
		b.typed("mine")
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		require.False(t, b.ReadOnly())
		require.NotEmpty(t, b.offered())
		assert.Contains(t, b.offered()[0], "mine+-")
	})
}

func TestCancelledRequestIsForgotten(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.OnHandover = undecided
		a.open()
		ghost := w.network.Join()
		require.NoError(t, ghost.Post(autosave.Message{Kind: autosave.EditRequest, Round: "1", From: "ghost"}))
		synctest.Wait()
		require.NoError(t, ghost.Post(autosave.Message{Kind: autosave.EditCancelled, Round: "1", From: "ghost"}))
		for range 10 {
			w.sleep(time.Second)
			require.False(t, a.ReadOnly())
		}
	})
}

func TestListenerThatPanics(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("standard error is a callback there, which virtual time does not allow")
	}
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Listener = func(autosave.Event) { panic("in the page") }
		a.open()
		a.typed("x")
		w.sleep(time.Second)
		assert.Equal(t, "x", w.saved())
		require.NoError(t, a.FlushEvents(t.Context()))
	})
}

func TestListenerThatBlocks(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hang := make(chan struct{})
		a.config.Listener = func(autosave.Event) { <-hang }
		a.open()
		a.typed("x")
		w.sleep(time.Second)
		assert.Equal(t, "x", w.saved())
		close(hang)
	})
}

// Nobody may type, and nothing is saved, before the page has loaded what it was given.
func TestEditingBeginsWhenThePageHasLoaded(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.prepare("b")
		a.typed("theirs")
		b.config.Listener = func(e autosave.Event) {
			if e.Type == autosave.EventEditable {
				time.Sleep(time.Second)
			}
			b.hear(e)
		}
		b.open()
		asked := make(chan error, 1)
		go func() { asked <- b.RequestEdit(context.Background(), autosave.EditOptions{}) }()
		w.sleep(900 * time.Millisecond)
		assert.True(t, b.ReadOnly())
		_, err := b.FlushNow(t.Context())
		require.ErrorIs(t, err, autosave.ErrReadOnly)
		require.NoError(t, <-asked)
		assert.Equal(t, time.Second, time.Since(w.start))
		assert.Equal(t, "theirs", b.shows())
		assert.False(t, b.ReadOnly())
	})
}

// A page that reads along shows the content that others save. It offers its own text, not the text that it shows.
func TestBufferSurvivesReadingAlong(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		a.channel.Deafen(true)
		a.typed("mine")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true, Grace: time.Millisecond}))
		a.channel.Deafen(false)
		b.typed("theirs")
		w.sleep(time.Second)
		a.mu.Lock()
		a.text = "theirs"
		a.mu.Unlock()
		require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
		require.NoError(t, a.FlushEvents(t.Context()))
		assert.Equal(t, []string{"mine", "mine"}, a.offered(), "when it lost the lock and when it had it again")
	})
}
