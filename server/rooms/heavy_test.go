package rooms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// Participants of two large rooms enter a third one at the moment of an answer there. The three changes together are too large for the
// store, and each one alone is not.
func TestEntriesFromLargeRooms(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	r := &table{instance: "i", queue: queue{store: store, now: time.Now, limit: 10 * time.Second, waiting: map[string][]*job{}, conflict: func() {}}}
	for _, id := range []string{"a", "b"} {
		large := room{ID: id, Participants: []participant{{Token: "of-" + id, Name: "Ann"}}}
		for i := range 1000 {
			large.Participants = append(large.Participants, participant{Token: fmt.Sprint(i), Name: "Ben", Answer: strings.Repeat("猫", 256)})
		}
		data, err := large.encode()
		require.NoError(t, err)
		_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(roomPrefix+id, data), kv.Put(memberPrefix+"of-"+id, []byte(id))}})
		require.NoError(t, err)
	}
	_, err := r.create(t.Context(), "c", participant{Token: "cleo", Name: "Cleo"})
	require.NoError(t, err)
	_, err = r.enter(t.Context(), "b", participant{Token: "of-a", Name: "Ann"}, "", false)
	require.ErrorIs(t, err, errFull, "both rooms change in one transaction")

	held, goOn := make(chan struct{}), make(chan struct{})
	store.fail(func(kv.Txn) error { store.fail(nil); close(held); <-goOn; return nil })
	outcomes := make(chan error, 4)
	go func() { _, err := r.answer(t.Context(), "c", "cleo", "first"); outcomes <- err }()
	<-held
	go func() { _, err := r.answer(t.Context(), "c", "cleo", "second"); outcomes <- err }()
	for _, id := range []string{"a", "b"} {
		go func() {
			_, err := r.enter(t.Context(), "c", participant{Token: "of-" + id, Name: "Ann"}, "", false)
			outcomes <- err
		}()
	}
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.waiting["c"]) == 3 }, 10*time.Second, time.Millisecond)
	close(goOn)
	for range 4 {
		require.NoError(t, <-outcomes)
	}
}

// A socket that is not in a room answers there, again and again. The room may be large, so it is not decoded for that: here it could not be.
func TestAnAnswerOfAnOutsiderDoesNotDecodeTheRoom(t *testing.T) {
	r := tableOf(t, nil, nil)
	_, err := r.store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(roomPrefix+"a", []byte("a large room"))}})
	require.NoError(t, err)
	_, err = r.answer(t.Context(), "a", newToken(), "x")
	require.ErrorIs(t, err, errNotInRoom)
	_, err = r.clearAll(t.Context(), "a", newToken())
	require.ErrorIs(t, err, errNotInRoom)
}
