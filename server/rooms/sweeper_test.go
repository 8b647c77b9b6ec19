package rooms

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// An instance that dies leaves registered sockets and participants behind. The others remove both, and a room that
// waited only for the dead instance's participants opens.
func TestDeadInstanceIsRemoved(t *testing.T) {
	store := kvtest.Open(t)
	b := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour, Grace: 50 * time.Millisecond})
	ben := connect(t, b)
	id := ben.create("Ben")
	ben.answer("x")
	ben.until("open", func(r roomInfo) bool { return r.Room.IsOpen })

	dying := &faulty{Store: store}
	a := start(t, Config{Store: dying, Heartbeat: 20 * time.Millisecond, Dead: time.Hour})
	ann := connect(t, a)
	ann.enter(id, "Ann")
	ann.info()
	ben.info()
	<-dying.silence(instancePrefix + a.config.Instance)

	// A sweeper of b, at times that the test names: by the real time, a busy machine is late with the signs of living instances, too.
	w := newSweeper(b.Rooms)
	for _, k := range w.seen.kinds() {
		must(w.seen.readAll(t.Context(), store, k))(t)
	}
	dead := time.Now()
	require.NoError(t, w.sweep(t.Context(), dead.Add(b.config.Dead-time.Minute)))
	assert.Contains(t, keys(t, store, socketPrefix), ann.token, "the instance is not dead before its time is over")
	require.NoError(t, w.sweep(t.Context(), dead.Add(b.config.Dead)))
	info := ben.until("Ann is gone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })
	assert.True(t, info.Room.IsOpen)
	assert.Equal(t, map[string]string{ben.token: b.config.Instance}, keys(t, store, socketPrefix))
	assert.Equal(t, map[string]string{ben.token: id}, keys(t, store, memberPrefix))
	assert.NotContains(t, keys(t, store, instancePrefix), a.config.Instance)
	ann.refused("removed")

	dying.fail(nil) // it was only frozen: its sockets are alive and count again
	eventually(t, "it registers its sockets again", func() bool { return keys(t, store, socketPrefix)[ann.token] == a.config.Instance })
	ann.enter(id, "Ann")
	assert.Len(t, ann.info().Room.Participants, 2)
	assert.Len(t, ben.info().Room.Participants, 2)
	ben.quiet("Ann stays")
}

// silence makes all commits fail, as for a dead instance. The channel is closed when the instance could not renew its sign of life.
func (f *faulty) silence(sign string) <-chan struct{} {
	silent := make(chan struct{})
	end := sync.OnceFunc(func() { close(silent) })
	f.fail(func(txn kv.Txn) error {
		if slices.ContainsFunc(txn.Then, func(op kv.Op) bool { return op.Key() == sign }) {
			end()
		}
		return context.DeadlineExceeded
	})
	return silent
}

// Participants without a socket, for instance those of a stopped server, leave after the grace period.
func TestParticipantsWithoutASocketLeave(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store})
	ann := connect(t, a)
	ann.create("Ann")
	ann.info()
	require.NoError(t, a.Close(t.Context()))
	assert.Len(t, keys(t, store, memberPrefix), 1)

	started := time.Now()
	start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour, Grace: 100 * time.Millisecond})
	eventually(t, "the room is gone", func() bool { return len(keys(t, store, roomPrefix)) == 0 })
	assert.GreaterOrEqual(t, time.Since(started), 100*time.Millisecond, "it might have come back")
	assert.Empty(t, keys(t, store, memberPrefix))
	assert.Empty(t, keys(t, store, updatePrefix))
}

// With the contract's durations, a dead instance's sockets are gone within 35 s. The test sets the clock to the worst
// case: the last sign of life comes right after a look, and the next look comes as late as possible.
func TestSocketsOfDeadInstanceEndWithin35Seconds(t *testing.T) {
	config, err := Config{Store: kvtest.Open(t)}.withDefaults()
	require.NoError(t, err)
	seen := newPresence("own", noSocket)
	died := time.Now()
	seen.registered("t", kv.Entry{Value: []byte("x"), Modified: 6}, died)
	seen.signed("x", kv.Entry{Modified: 7}, died)
	var gone time.Duration
	for since := config.Heartbeat - time.Millisecond; gone == 0; since += config.Heartbeat { // it died right after a look
		if dead := seen.dead(died.Add(since), config.Dead); len(dead) > 0 {
			gone = since
			assert.Len(t, dead[0].sockets, 1)
		}
		require.Less(t, since, time.Minute)
	}
	assert.Less(t, gone, 25*time.Second)
	assert.GreaterOrEqual(t, gone, config.Dead)

	seen.signed("x", kv.Entry{Modified: 8}, died.Add(time.Hour))
	assert.Empty(t, seen.dead(died.Add(time.Hour), config.Dead), "the instance is alive")
	seen.unsigned("x", died.Add(2*time.Hour))
	assert.Empty(t, seen.dead(died.Add(2*time.Hour), config.Dead), "an instance without a sign of life gets its time, too")
	assert.NotEmpty(t, seen.dead(died.Add(3*time.Hour), config.Dead))
}

// living is an instance with a participant, as it is in the store, and another instance that looks at it.
type living struct {
	*instance
	store        *kv.Store
	ann          *client
	sign, socket kv.Entry
	other        *Rooms
}

func startLiving(t *testing.T) living {
	t.Helper()
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, Heartbeat: time.Hour, Dead: 2 * time.Hour})
	ann := connect(t, a)
	eventually(t, "its sign of life", func() bool { return len(keys(t, store, instancePrefix)) == 1 })
	sign, _, err := store.Get(t.Context(), instancePrefix+a.config.Instance)
	require.NoError(t, err)
	socket, _, err := store.Get(t.Context(), socketPrefix+ann.token)
	require.NoError(t, err)
	other := &Rooms{config: a.config, table: a.table}
	other.config.Instance = "b"
	return living{a, store, ann, sign, socket, other}
}

// A lagging watch shows a living instance as dead. The store is authoritative: nothing is removed.
func TestLivingInstanceIsNotRemoved(t *testing.T) {
	l := startLiving(t)
	w := newSweeper(l.other)
	now := time.Now()
	w.seen.signed(l.config.Instance, kv.Entry{Modified: l.sign.Modified - 1}, now)
	w.seen.registered(l.ann.token, l.socket, now)
	for _, k := range w.seen.kinds() {
		w.seen.read[k.prefix] = true
	}
	require.NoError(t, w.look(t.Context(), now.Add(3*time.Hour)))
	assert.Len(t, keys(t, l.store, socketPrefix), 1)
	assert.Len(t, keys(t, l.store, instancePrefix), 1)
	assert.Empty(t, w.seen.dead(now.Add(3*time.Hour), l.config.Dead), "the time of the instance begins again")
}

// closeIdle closes the only room as an idle one, as soon as the instance has seen it.
func closeIdle(t *testing.T, a *instance) {
	t.Helper()
	eventually(t, "the room is seen", func() bool {
		p := a.sweeper.seen
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.idle) == 1 {
			p.idle[0].at = time.Now().Add(-time.Hour)
		}
		return len(p.idle) == 1
	})
	require.NoError(t, a.sweeper.closeIdle(t.Context()))
}

// large stores a room of maximum size.
func large(t *testing.T, store Store) room {
	t.Helper()
	r := room{ID: "large"}
	for range 300 {
		token := newToken()
		r = must(r.enter(token, "Ann", ""))(t)
		must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(memberPrefix+token, []byte(r.ID))}}))(t)
	}
	must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{
		kv.Put(roomPrefix+r.ID, must(r.encode())(t)), kv.Put(updatePrefix+r.ID, encodeTime(time.Now().Add(-time.Hour)))}}))(t)
	return r
}

// A room of maximum size is closed completely, although one transaction does not hold it.
func TestALargeRoomIsClosedWhole(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store})
	large(t, store)
	closeIdle(t, a)
	for _, prefix := range []string{roomPrefix, updatePrefix, memberPrefix} {
		assert.Empty(t, keys(t, store, prefix), prefix)
	}
}

// A room that has changed since the scan found it idle is not closed.
func TestRoomThatChangesAgainIsNotClosed(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	read, _, err := store.Get(t.Context(), updatePrefix+id)
	require.NoError(t, err)
	ann.answer("x")
	ann.info()
	require.NoError(t, a.table.close(t.Context(), id, read))
	assert.Len(t, keys(t, store, roomPrefix), 1)
	ann.quiet("it is still there")
}

// More registrations than one transaction holds are removed: those of a dead instance, and those of the own instance
// without a socket.
func TestManyRegistrationsAreRemoved(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: 200 * time.Millisecond, Grace: 50 * time.Millisecond})
	for range 4 {
		var registrations []kv.Op
		for range kv.MaxOps / 2 {
			registrations = append(registrations, kv.Put(socketPrefix+newToken(), []byte("dead")),
				kv.Put(socketPrefix+newToken(), []byte(a.config.Instance)))
		}
		must(store.Commit(t.Context(), kv.Txn{Then: registrations}))(t)
	}
	must(store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(instancePrefix+"dead", encodeTime(time.Now()))}}))(t)
	eventually(t, "all registrations are gone", func() bool { return len(keys(t, store, socketPrefix)) == 0 })
	eventually(t, "the sign of life is gone", func() bool { return keys(t, store, instancePrefix)["dead"] == "" })
}
