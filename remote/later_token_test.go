package remote_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// The clock was set back, so that an earlier page of this machine has a later token. The next editor still excludes that page from the
// history: the page writes nothing more when it wakes.
func TestHistoryExcludesAPageWithALaterToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newInternet().machine("A")
		earlier := autosave.NewLayout(m.disk.Client(), autosavetest.SHA256)
		commit := autosave.Commit{Content: autosave.Bytes("earlier"), Token: math.MaxInt64 / 16, SavedAt: time.Now()}
		_, err := earlier.Commit(context.Background(), commit)
		require.NoError(t, err)
		token, release := m.lock(t)
		defer release()
		m.save(t, token, "later")
		_, err = earlier.Commit(context.Background(), commit)
		require.ErrorIs(t, err, autosave.ErrStaleToken)
		require.Equal(t, []string{"later", "earlier"}, []string{m.read(t, m.list(t)[0].ID), m.read(t, m.list(t)[1].ID)})
	})
}
