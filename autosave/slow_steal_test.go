package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// The editor has offered the lock, and the asker waits for a busy page that waits around it. Meanwhile the editor is closed. The next one for the
// document edits: it is asked, and keeps the lock if it refuses.
func TestSlowStealTakesNothingFromTheNextEditor(t *testing.T) {
	for name, opts := range map[string]autosave.EditOptions{"offered": {}, "force": force} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.document("a", "book/1").open()
				next := w.document("next", "book/1")
				asked := next.vetoes(0, errNotNow)
				next.open()
				x := w.document("x", "book")
				x.config.Channel = busyChannel{x.channel, 7 * time.Second}
				x.open()
				b := w.document("b", "book/1").open()
				a.channel.Deafen(opts.Force)
				result := b.asks(t.Context(), opts)
				w.sleep(autosave.DefaultGrace + time.Second)
				require.NoError(t, a.Dispose(t.Context()))
				w.sleep(time.Millisecond)
				require.False(t, next.ReadOnly())
				next.typed("typed since")
				require.ErrorIs(t, <-result, autosave.ErrHandoverRefused)
				assert.Len(t, *asked, 1)
				w.sleep(time.Minute)
				assert.False(t, next.ReadOnly())
			})
		})
	}
}

// The editor has offered the lock, and the asker waits for a busy page that waits around it. The editor is closed, and that page edits. It is
// asked.
func TestPageAroundThatEditsMeanwhileIsAsked(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		x := w.document("x", "book")
		x.config.Channel = busyChannel{x.channel, 2 * time.Second}
		x.open()
		b := w.document("b", "book/1").open()
		result := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Millisecond)
		require.False(t, x.ReadOnly())
		require.NoError(t, <-result)
		assert.False(t, b.ReadOnly())
		w.sleep(time.Second)
		assert.True(t, x.ReadOnly())
	})
}

// A page opens a document around the wanted one while the editor saves for the handover, and waits. It lets the handover pass, as those do
// that waited before the request.
func TestPageThatComesDuringTheHandoverLetsItPass(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1")
		asked := a.vetoes(2*time.Second, nil)
		a.open()
		b := w.document("b", "book/1").open()
		result := b.asks(t.Context(), autosave.EditOptions{})
		w.sleep(time.Second)
		x := w.document("x", "book").open()
		require.NoError(t, <-result)
		assert.False(t, b.ReadOnly())
		assert.True(t, x.ReadOnly())
		assert.Len(t, *asked, 1)
		require.NoError(t, b.Dispose(t.Context()))
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(3 * time.Second)
		assert.False(t, x.ReadOnly())
	})
}
