package autosave_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// stopsIn makes the page wait in the n-th of the smallest steps of its storage with that prefix, until goOn is called. stopped reports whether it
// waits.
func (a *writer) stopsIn(prefix string, n int) (stopped func() bool, goOn func()) {
	waits, end := false, make(chan struct{})
	a.store = autosave.NewLayout(a.w.disk.Stepped(func(step string) autosavetest.Fault {
		if strings.HasPrefix(step, prefix) {
			if n--; n == 0 {
				waits = true
				<-end
			}
		}
		return 0
	}), autosavetest.SHA256)
	return func() bool { synctest.Wait(); return waits }, func() { close(end) }
}

// The next editor makes a draft the content, and loses the lock during that commit. The editor after it has begun to take over, and refuses the
// commit. Meanwhile the page of the draft lists the drafts: the highest index contains that commit. The page does not take its text for saved.
func TestDraftOfARefusedAdoptionIsKept(t *testing.T) {
	drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
		a := w.savedOne(storage)
		w.stealFrom(a, ", mine")
		adopts, takesOver := w.author("adopts", storage), w.author("takes over", storage)
		adopts.config.NoStandby, takesOver.config.NoStandby = true, true
		adopting, adopt := adopts.stopsIn("write history/", 1)
		takingOver, takeOver := takesOver.stopsIn("write index/", 2)
		go func() { _ = adopts.tryOpenFor(time.Minute) }()
		require.True(t, adopting())
		require.NoError(t, w.stealer().Release(t.Context()))
		go func() { _ = takesOver.tryOpenFor(time.Minute) }()
		require.True(t, takingOver())
		adopt()
		w.sleep(0)
		listed, err := a.Drafts(t.Context())
		require.NoError(t, err)
		assert.Len(t, listed, 1)
		w.sleep(0)
		assert.NotZero(t, a.State().PendingBytes)
		takeOver()
		w.sleep(time.Second)
		assert.Equal(t, "one, mine", w.saved())
	})
}
