package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A page waits behind the asker for another document below the same one. It is not granted that document in the moment in which the asker stops
// waiting and takes the lock: it would lose it at once.
func TestPageBehindTheAskerIsNotGrantedAndRobbed(t *testing.T) {
	for name, opts := range map[string]autosave.EditOptions{"offered": {}, "force": force} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.document("a", "book/1").open()
				b := w.document("b", "book")
				b.slowSteal(50 * time.Millisecond)
				b.open()
				w.sleep(time.Second)
				c := w.document("c", "book/2").open()
				w.sleep(time.Second)
				require.True(t, c.ReadOnly())
				c.forget()
				a.channel.Deafen(opts.Force)
				require.NoError(t, b.RequestEdit(t.Context(), opts))
				w.sleep(time.Second)
				assert.False(t, b.ReadOnly())
				assert.Zero(t, c.count(autosave.EventEditable))
				assert.Zero(t, c.count(autosave.EventReadonly))
				require.NoError(t, b.Dispose(t.Context()))
				w.sleep(time.Second)
				assert.False(t, c.ReadOnly())
			})
		})
	}
}
