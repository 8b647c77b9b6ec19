package autosave_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// again opens a page that already shows a text, as a page does whose program has died.
func again(w *world, name, shown, text string) *page {
	p := w.prepare(name)
	p.config.Shown, p.text = shown, text
	return p.open()
}

func last(p *page, kind autosave.EventType) (found autosave.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Type == kind {
			found = e
		}
	}
	return found
}

// A page that shows the current generation already goes on with what it has, and with what was typed since.
func TestPageGoesOnWithWhatItShows(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		first := w.tab("a")
		first.text = "saved"
		first.MarkDirty()
		g, err := first.FlushNow(t.Context())
		require.NoError(t, err)
		require.NoError(t, first.Dispose(t.Context()))

		p := again(w, "a", g.ID, "saved, and typed")
		assert.False(t, last(p, autosave.EventEditable).Loaded)
		p.MarkDirty()
		_, err = p.FlushNow(t.Context())
		require.NoError(t, err)
		content, err := p.Read(t.Context(), "current")
		require.NoError(t, err)
		assert.Equal(t, "saved, and typed", string(content))
	})
}

// If another page has saved since, the page loads that content.
func TestPageLoadsWhatItDoesNotShow(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		first := w.tab("a")
		first.text = "saved"
		first.MarkDirty()
		g, err := first.FlushNow(t.Context())
		require.NoError(t, err)
		first.text = "later"
		first.MarkDirty()
		_, err = first.FlushNow(t.Context())
		require.NoError(t, err)
		require.NoError(t, first.Dispose(t.Context()))

		p := again(w, "a", g.ID, "saved")
		assert.Equal(t, "later", string(last(p, autosave.EventEditable).Content))
	})
}

// A page that edited before its Saver began is asked for the lock while that Saver still loads. It answers when it edits.
func TestPageThatGoesOnHandsOverOnceItEdits(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		p := w.prepare("a")
		p.config.Lineage = "its draft"
		var failing atomic.Bool
		failing.Store(true)
		p.store = unlisted{p.store, &failing}
		require.NoError(t, p.tryOpen())
		other := w.tab("b")
		asked := make(chan error, 1)
		go func() { asked <- other.RequestEdit(t.Context(), autosave.EditOptions{}) }()
		w.sleep(time.Second)
		require.Empty(t, asked)
		failing.Store(false)
		require.NoError(t, <-asked)
		assert.False(t, other.ReadOnly())
	})
}
