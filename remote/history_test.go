package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/remote"
)

// silent is a store that does not answer a Fence while silent is open.
type silent struct {
	autosave.Store
	silent chan struct{}
}

func (s silent) Fence(ctx context.Context, token int64) error {
	select {
	case <-s.silent:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Store.Fence(ctx, token)
}

// While this machine's storage does not answer about a new editor's token, the page can still list the server's
// content: it does not wait for a mutex. (In virtual time, a goroutine that waits for a mutex stops the clock, and the
// test hangs.)
func TestListWorksWhileHistoryIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		theirs := n.machine("B")
		token, release := theirs.lock(t)
		theirs.save(t, token, "one")
		release()
		mine := n.machine("A")
		quiet := make(chan struct{})
		mine.store = remote.NewContents(mine.document, silent{autosave.NewLayout(mine.disk.Client(), autosavetest.SHA256), quiet}, autosavetest.SHA256)

		fenced := make(chan error, 2)
		begun := time.Now()
		for range 2 {
			go func() { fenced <- mine.store.Fence(context.Background(), token+1) }()
		}
		synctest.Wait()
		assert.Len(t, mine.list(t), 1)
		assert.Less(t, time.Since(begun), time.Second, "the network alone takes time")
		assert.Empty(t, fenced)
		close(quiet)
		assert.NoError(t, <-fenced)
		assert.NoError(t, <-fenced)
	})
}

// A page asks for the history while the answer to its first save is on its way. The history has that save once.
func TestListDuringFirstSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *browser
		m := newInternet().machineWith("A", autosavetest.NewDisk(), func(c *remote.Config) { b = c.Server.(*browser) })
		token, release := m.lock(t)
		defer release()
		assert.Empty(t, m.list(t), "the editor loads nothing")
		b.onReply = func(remote.Reply) {
			b.onReply = nil
			assert.Len(t, m.list(t), 1)
		}
		m.save(t, token, "one")
		assert.Len(t, m.list(t), 1)
	})
}
