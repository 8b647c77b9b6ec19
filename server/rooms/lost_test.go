package rooms

import (
	"context"
	"slices"
	"strings"
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

// A socket asks to enter another room. The change is made, its answer is lost, and the former room reports first that the
// participant has left. The client learns that it is in its former room no longer.
func TestALostAnswerToAMoveIsNotSilent(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	ann, ben := connect(t, a), connect(t, a)
	id := ann.create("Ann")
	ann.info()
	ben.enter(id, "Ben")
	ann.info()
	ben.info()
	store.fail(func(txn kv.Txn) error {
		if !slices.ContainsFunc(txn.Then, func(op kv.Op) bool { return op.Puts() && strings.HasPrefix(op.Key(), roomPrefix) }) {
			return nil
		}
		must(store.Store.Commit(t.Context(), txn))(t)
		a.mu.Lock()
		f := a.feeds[id]
		a.mu.Unlock()
		eventually(t, "the former room has told its members", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.members[ann.token] == nil
		})
		return context.DeadlineExceeded
	})
	ann.send("enterTheRoom", map[string]any{"roomId": "other", "userName": "Ann", "create": true})
	ann.refused("removed")
	ann.refused("unavailable")
	store.fail(nil)
	ann.enter("other", "Ann")
	assert.Equal(t, "other", ann.info().Room.ID)
}
