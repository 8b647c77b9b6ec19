package rooms

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The answer of the store to the registration of a new socket is lost. The registration does not stay.
func TestALostRegistrationDoesNotStay(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour})
	eventually(t, "it has registered the sockets of its start", func() bool { return len(keys(t, store, instancePrefix)) == 1 })
	token := newToken()
	store.fail(func(txn kv.Txn) error {
		for _, op := range txn.Then {
			if op.Key() == socketPrefix+token {
				must(store.Store.Commit(t.Context(), txn))(t)
				eventually(t, "the registration is seen", func() bool {
					a.sweeper.seen.mu.Lock()
					defer a.sweeper.seen.mu.Unlock()
					return a.sweeper.seen.sockets[token] != nil
				})
				return context.DeadlineExceeded
			}
		}
		return nil
	})
	assert.Error(t, a.open(&socket{token: token}))
	store.fail(nil)
	eventually(t, "the registration is gone", func() bool { return len(keys(t, store, socketPrefix)) == 0 })
}
