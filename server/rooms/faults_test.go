package rooms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// faulty is a store whose watches a test can interrupt and whose commits a test can make fail.
type faulty struct {
	*kv.Store
	mu      sync.Mutex
	cuts    map[int]context.CancelCauseFunc
	begun   int                // watches of any kind
	count   int                // watches of rooms
	gate    chan struct{}      // if set, new watches of rooms wait until it is closed
	commits func(kv.Txn) error // nil lets all commits succeed
	done    func(kv.Txn)       // runs after each commit
}

func (f *faulty) Watch(ctx context.Context, prefix string, after int64, call func([]kv.Change) error) error {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	room := strings.HasPrefix(prefix, roomPrefix)
	f.mu.Lock()
	if f.cuts == nil {
		f.cuts = map[int]context.CancelCauseFunc{}
	}
	f.begun++
	own := f.begun
	f.cuts[own] = cut
	var gate chan struct{}
	if room {
		f.count++
		gate = f.gate
	}
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	err := f.Store.Watch(ctx, prefix, after, call)
	f.mu.Lock()
	delete(f.cuts, own)
	f.mu.Unlock()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// cut ends every watch with an error. Watches may begin again.
func (f *faulty) cut(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cut := range f.cuts {
		cut(err)
	}
}

func (f *faulty) watches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// hold makes new watches of rooms wait until the returned function is called.
func (f *faulty) hold() (goOn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gate := make(chan struct{})
	f.gate = gate
	return func() { close(gate) }
}

func (f *faulty) fail(commits func(kv.Txn) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits = commits
}

// after sets a function that runs after each commit.
func (f *faulty) after(done func(kv.Txn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = done
}

func (f *faulty) Commit(ctx context.Context, txn kv.Txn) (kv.Result, error) {
	f.mu.Lock()
	fails, done := f.commits, f.done
	f.mu.Unlock()
	if done != nil {
		defer done(txn)
	}
	if fails != nil {
		if err := fails(txn); err != nil {
			return kv.Result{}, err
		}
	}
	return f.Store.Commit(ctx, txn)
}

// A watch that ends with an error resumes where it was: each state of the meantime arrives once.
func TestAWatchResumes(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	b := start(t, Config{Store: store.Store})
	ann, ben := connect(t, a), connect(t, b)
	ben.enter(ann.create("Ann"), "Ben")
	ann.info()
	ann.info()
	ben.info()
	for _, said := range []string{"x", "y", "z"} {
		store.cut(errors.New("the connection is lost"))
		ben.answer(said)
		mine, theirs := ben.info(), ann.info()
		assert.Equal(t, mine.Revision, theirs.Revision)
		ann.quiet("each state comes once")
	}
	assert.NotZero(t, a.Stats().Resumes)
	assert.Zero(t, b.Stats().Resumes)
}

// If the history is compacted by then, the present state arrives instead, or the end of the room.
func TestAWatchResumesAfterCompaction(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	b := start(t, Config{Store: store.Store, Grace: time.Millisecond})
	ann, ben := connect(t, a), connect(t, b)
	id := ann.create("Ann")
	ben.enter(id, "Ben")
	ann.info()
	ann.info()
	ben.info()

	goOn := store.hold()
	store.cut(errors.New("the connection is lost"))
	eventually(t, "the watch is about to begin again, from a revision that will be gone", func() bool { return store.watches() == 2 })
	for _, said := range []string{"x", "y", "z"} {
		ben.answer(said)
		ben.info()
	}
	_, now, err := store.Get(t.Context(), roomPrefix+id)
	require.NoError(t, err)
	require.NoError(t, store.Compact(t.Context(), now))
	goOn()
	info := ann.info()
	assert.True(t, info.Room.Participants[1].answered())
	ann.quiet("states that the store has compacted are not sent")
	ben.answer("later")
	assert.Greater(t, ann.info().Revision, info.Revision)
}

// An instance has one watch per room, however many participants it has there.
func TestOneWatchPerRoom(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Grace: time.Millisecond})
	ann, ben, cleo := connect(t, a), connect(t, a), connect(t, a)
	id := ann.create("Ann")
	ben.enter(id, "Ben")
	cleo.enter(id, "Cleo")
	cleo.until("all", func(r roomInfo) bool { return len(r.Room.Participants) == 3 })
	assert.Equal(t, 1, store.watches())
	ann.close()
	ben.close()
	cleo.until("alone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })
	assert.Equal(t, 1, store.watches())
	cleo.close()
	eventually(t, "the last one out stops it", func() bool { return a.Stats().Rooms == 0 })
}

// While the store fails, clients receive an error and nothing else happens to them.
func TestTheStoreFails(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	store.fail(func(kv.Txn) error { return kv.ErrUnavailable })
	ann.answer("x")
	ann.refused("unavailable")
	ann.send("createRoom", map[string]any{"userName": "Ann"})
	ann.refused("unavailable")
	ann.write("ping")
	assert.Equal(t, "pong", ann.next().Type)
	store.fail(nil)
	ann.room = id
	ann.answer("x")
	assert.Equal(t, []string{"Ann=x"}, names(ann.info().roomInfo))
}

// A change that meets conflicts is computed again until it is committed.
func TestConflictsAreRetried(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	b := start(t, Config{Store: store.Store})
	ann, ben := connect(t, a), connect(t, b)
	id := ann.create("Ann")
	ben.enter(id, "Ben")
	ben.info()
	interruptions := 5
	store.fail(func(txn kv.Txn) error {
		if interruptions > 0 && len(txn.If) > 1 { // a change of the room
			interruptions--
			_, err := b.table.answer(t.Context(), id, ben.token, fmt.Sprint(interruptions))
			assert.NoError(t, err)
		}
		return nil
	})
	before := a.Stats().Conflicts
	ann.enter(id, "Anna")
	ann.until("renamed", func(r roomInfo) bool { return r.Room.Participants[0].Name == "Anna" })
	assert.Equal(t, before+5, a.Stats().Conflicts)
	assert.Zero(t, interruptions)
}

// A participant that comes back at the very end of the grace period stays: the change that removes it requires that
// there is no socket.
func TestLeavingYieldsToAReturn(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Grace: limit})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	require.NoError(t, a.table.unregister(t.Context(), ann.token))
	returned := false
	store.fail(func(txn kv.Txn) error {
		if len(txn.If) > 1 && !returned { // the change that removes Ann
			returned = true
			_, err := store.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(socketPrefix+ann.token, []byte("elsewhere"))}})
			assert.NoError(t, err)
		}
		return nil
	})
	require.NoError(t, a.table.leave(t.Context(), ann.token, noSocket))
	assert.True(t, returned)
	assert.Equal(t, map[string]string{ann.token: id}, keys(t, store, memberPrefix))
	ann.quiet("nothing has changed")
}
