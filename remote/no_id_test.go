package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// A page restores the choice of its user, who has chosen nothing yet, after it has loaded its content. An empty id is the id of no generation,
// so nothing replaces the content.
func TestEmptyIDIsNoGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		first := n.writer(t, "A")
		first.type_("kept")
		sleep(time.Second)
		require.NoError(t, first.Dispose(context.Background()))
		w := n.writer(t, "B")
		sleep(time.Second)
		require.Equal(t, "kept", w.now())
		_, err := w.Restore(context.Background(), "")
		require.ErrorIs(t, err, autosave.ErrNotFound)
		assert.Equal(t, "kept", string(n.content))
		require.NoError(t, w.Dispose(context.Background()))
	})
}
