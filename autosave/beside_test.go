package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A page edits a document, and asks for the one around it.
func TestPageAsksItselfForADocumentAround(t *testing.T) {
	for name, force := range map[string]bool{"without force": false, "with force": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.document("a", "book/1")
				asked := a.vetoes(2*time.Second, nil)
				a.open()
				around := w.document("a", "book").beside(a).open()
				require.True(t, around.ReadOnly())
				assert.Equal(t, "a", around.State().Holder.OwnerID)
				require.NoError(t, around.RequestEdit(t.Context(), autosave.EditOptions{Force: force}))
				assert.Len(t, *asked, 1)
				assert.True(t, a.ReadOnly())
			})
		})
	}
}

// A page edits a document and asks for the one around it, below which another page edits, too. The other page offers its lock at once; the page
// itself refuses later.
func TestPageKeepsADocumentThatItRefuses(t *testing.T) {
	for name, force := range map[string]bool{"without force": false, "with force": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a := w.document("a", "book/1")
				a.vetoes(2*time.Second, errNotNow)
				a.open()
				other := w.document("other", "book/2").open()
				around := w.document("a", "book").beside(a).open()
				require.ErrorIs(t, around.RequestEdit(t.Context(), autosave.EditOptions{Force: force}), autosave.ErrHandoverRefused)
				w.sleep(time.Minute)
				assert.False(t, a.ReadOnly())
				assert.False(t, other.ReadOnly())
			})
		})
	}
}
