package rooms

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

var errOnce = errors.New("the store failed once")

// unregisters reports whether a transaction does nothing but unregister a socket.
func unregisters(txn kv.Txn) bool {
	return len(txn.If) == 0 && len(txn.Then) == 1 && !txn.Then[0].Puts()
}

// A socket closes while the store fails once. Its participant still leaves after the grace period.
func TestParticipantLeavesWhenUnregisteringFailsOnce(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Grace: 50 * time.Millisecond})
	ann, ben := connect(t, a), connect(t, a)
	id := ann.create("Ann")
	ann.answer("x")
	ben.enter(id, "Ben")
	ann.until("both", func(r roomInfo) bool { return len(r.Room.Participants) == 2 })
	var failed atomic.Bool
	store.fail(func(txn kv.Txn) error {
		if unregisters(txn) && failed.CompareAndSwap(false, true) {
			return errOnce
		}
		return nil
	})
	ben.close()
	info := ann.until("Ben is gone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })
	assert.True(t, failed.Load())
	assert.True(t, info.Room.IsOpen)
	assert.Equal(t, map[string]string{ann.token: a.config.Instance}, keys(t, store, socketPrefix))
}

// The sweeper removes a registration of this instance without a socket, which remains when the store fails at the
// socket's close.
func TestSweeperRemovesOwnRegistrationWithoutSocket(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour, Grace: 50 * time.Millisecond})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	ghost := newToken()
	_, err := a.table.enter(t.Context(), id, participant{Token: ghost, Name: "Ben"}, "", false)
	require.NoError(t, err)
	require.NoError(t, a.table.register(t.Context(), ghost))
	ann.until("the ghost", func(r roomInfo) bool { return len(r.Room.Participants) == 2 })
	ann.until("the ghost is gone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })
	assert.Equal(t, []string{ann.token}, sortedKeys(keys(t, store, socketPrefix)))
}

// A socket that lost its place to another one enters again, as the error allows. It is registered again and stays.
func TestRemovedSocketThatEntersAgainStays(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour, Grace: 40 * time.Millisecond})
	former := connect(t, a)
	id := former.create("Ann")
	former.info()
	next := connect(t, a)
	next.send("enterTheRoom", map[string]any{"roomId": id, "userName": "Ann", "previousToken": former.token})
	next.info()
	former.refused("removed")
	former.enter(id, "Ann again")
	assert.Len(t, former.info().Room.Participants, 2)
	former.quiet("it stays")
	assert.Equal(t, a.config.Instance, keys(t, store, socketPrefix)[former.token])
}

// An instance that others took for dead registers all its sockets before it shows its sign of life, or tries again.
func TestAllSocketsAreRegisteredAgain(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour})
	var tokens []string
	for range 3 {
		tokens = append(tokens, connect(t, a).token)
	}
	slices.Sort(tokens)
	sign := instancePrefix + a.config.Instance
	eventually(t, "its sign of life", func() bool { return len(keys(t, store, sign)) == 1 })
	var failures atomic.Int64
	store.fail(func(txn kv.Txn) error {
		for _, op := range txn.Then {
			if strings.HasPrefix(op.Key(), socketPrefix) && failures.Add(1) <= 2 {
				return errOnce
			}
		}
		return nil
	})
	_, err := store.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder(socketPrefix), kv.Delete(sign)}})
	require.NoError(t, err)
	eventually(t, "all are registered", func() bool { return slices.Equal(tokens, sortedKeys(keys(t, store, socketPrefix))) })
	assert.GreaterOrEqual(t, failures.Load(), int64(3))
}

// More participants leave at once than one transaction holds. Each of them leaves, and other requests of that moment
// succeed.
func TestManyLeaveAtOnce(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Grace: limit})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	var tokens []string
	for i := range 100 {
		tokens = append(tokens, newToken())
		_, err := a.table.enter(t.Context(), id, participant{Token: tokens[i], Name: fmt.Sprint(i)}, "", false)
		require.NoError(t, err)
		require.NoError(t, a.table.unregister(t.Context(), tokens[i]))
	}
	gate := make(chan struct{})
	var held sync.Once
	store.fail(func(kv.Txn) error { held.Do(func() { <-gate }); return nil })
	var all sync.WaitGroup
	errs := make(chan error, len(tokens)+2)
	all.Go(func() { _, err := a.table.answer(t.Context(), id, ann.token, "x"); errs <- err })
	waiting := func(n int) func() bool {
		return func() bool {
			a.table.mu.Lock()
			defer a.table.mu.Unlock()
			jobs, busy := a.table.waiting[id]
			return busy && len(jobs) == n
		}
	}
	eventually(t, "the first is under way", waiting(0))
	for _, token := range tokens {
		all.Go(func() { errs <- a.table.leave(t.Context(), token, noSocket) })
	}
	all.Go(func() { _, err := a.table.answer(t.Context(), id, ann.token, "y"); errs <- err })
	eventually(t, "they wait for it together", waiting(len(tokens)+1))
	close(gate)
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	ann.until("alone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })
}

// An unreadable room does not stop the removal of participants from other rooms, and its own participants may enter
// another room.
func TestUnreadableRoomHarmsNobodyElse(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour, Grace: 40 * time.Millisecond})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	stuck, orphan := "0"+newToken()[1:], "f"+newToken()[1:]
	_, err := a.table.enter(t.Context(), id, participant{Token: orphan, Name: "Ben"}, "", false)
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{
		kv.Put(roomPrefix+"broken", []byte("{")), kv.Put(memberPrefix+stuck, []byte("broken")), kv.Delete(socketPrefix + orphan),
	}})
	require.NoError(t, err)
	ann.until("both", func(r roomInfo) bool { return len(r.Room.Participants) == 2 })
	ann.until("the orphan is gone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })

	_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(memberPrefix+ann.token, []byte("broken"))}})
	require.NoError(t, err)
	ann.create("Ann")
}

// A large room is closed in several transactions. A participant that has entered another room meanwhile stays there.
func TestClosingALargeRoomKeepsThoseWhoLeftIt(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	r := large(t, store)
	last := r.Participants[len(r.Participants)-1].Token
	var once sync.Once
	store.after(func(txn kv.Txn) {
		if slices.ContainsFunc(txn.Then, func(op kv.Op) bool { return op.Key() == roomPrefix+r.ID }) {
			once.Do(func() {
				must(store.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(memberPrefix+last, []byte("another"))}}))(t)
			})
		}
	})
	closeIdle(t, a)
	assert.Equal(t, map[string]string{last: "another"}, keys(t, store, memberPrefix))
}
