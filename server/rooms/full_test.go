package rooms

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The store has no space: etcd refuses every transaction that puts something. Changes are refused, and a participant that
// leaves stays in the room until there is space. A room whose last participant leaves is deleted nevertheless.
func TestAFullStore(t *testing.T) {
	store := &faulty{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store, Heartbeat: 20 * time.Millisecond, Dead: time.Hour, Grace: 50 * time.Millisecond})
	ann, ben, cleo := connect(t, a), connect(t, a), connect(t, a)
	id := ann.create("Ann")
	ann.answer("x")
	ann.until("open", func(r roomInfo) bool { return r.Room.IsOpen })
	ben.enter(id, "Ben")
	ann.until("both", func(r roomInfo) bool { return len(r.Room.Participants) == 2 })
	alone := cleo.create("Cleo")
	cleo.info()
	store.fail(func(txn kv.Txn) error {
		if slices.ContainsFunc(txn.Then, kv.Op.Puts) {
			return kv.ErrFull
		}
		return nil
	})
	ann.answer("y")
	ann.refused("unavailable")
	ann.send("createRoom", map[string]any{"userName": "Ann"})
	ann.refused("unavailable")
	require.ErrorIs(t, a.open(&socket{token: newToken()}), kv.ErrFull)
	ben.close()
	cleo.close()
	eventually(t, "the empty room is gone", func() bool { return keys(t, store, roomPrefix)[alone] == "" })
	ann.quiet("the room cannot change")
	store.fail(nil)
	info := ann.until("Ben is gone", func(r roomInfo) bool { return len(r.Room.Participants) == 1 })
	assert.Equal(t, []string{"Ann=x"}, names(info.roomInfo))
	assert.Equal(t, map[string]string{ann.token: a.config.Instance}, keys(t, store, socketPrefix))
	assert.Equal(t, map[string]string{ann.token: id}, keys(t, store, memberPrefix))
}
