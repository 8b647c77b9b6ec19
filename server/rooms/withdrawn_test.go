package rooms

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The permission of a participant is withdrawn, or its token expires. It receives no further state, and its socket ends.
func TestAParticipantWithoutPermissionGetsNoMoreStates(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	ben, withdraw := enterRevocably(t, a, id)
	withdraw()
	ann.answer("secret")
	ben.ended()
}

// The sign-in of a participant ends in a room in which nothing happens. Its socket ends soon.
func TestAQuietParticipantWithoutPermissionLeaves(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t), Ping: time.Second}) // a busy client answers within two seconds
	ann := connect(t, a)
	id := ann.create("Ann")
	ben, withdraw := enterRevocably(t, a, id)
	withdraw()
	ben.ended()
}

// The permission for a room is withdrawn, and its last state is still to be sent to a participant that moves to another room. The
// participant stays there.
func TestTheStateOfAFormerRoomEndsNoSocket(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	ann, cleo := connect(t, a), connect(t, a)
	former, later := ann.create("Ann"), cleo.create("Cleo")
	ann.info()
	var withdrawn atomic.Bool
	asked, moved := make(chan struct{}, 10), make(chan struct{})
	a.config.Identify = func(http.ResponseWriter, *http.Request) (Client, bool) {
		return Client{May: func(room string, _ bool) bool {
			if room != former || !withdrawn.Load() {
				return true
			}
			asked <- struct{}{}
			<-moved
			return false
		}}, true
	}
	ben := connect(t, a)
	ben.enter(former, "Ben")
	ben.info()
	withdrawn.Store(true)
	ann.answer("secret")
	<-asked
	ben.enter(later, "Ben")
	eventually(t, "Ben is in the other room", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.feeds[later] != nil && a.sockets[ben.token].feed == a.feeds[later]
	})
	close(moved)
	assert.Len(t, ben.info().Room.Participants, 2)
	cleo.answer("x")
	ben.info()
}

// enterRevocably lets Ben enter a room; withdraw takes his permission away.
func enterRevocably(t *testing.T, a *instance, room string) (ben *client, withdraw func()) {
	t.Helper()
	var withdrawn atomic.Bool
	a.config.Identify = func(http.ResponseWriter, *http.Request) (Client, bool) {
		return Client{May: func(string, bool) bool { return !withdrawn.Load() }}, true
	}
	ben = connect(t, a)
	ben.enter(room, "Ben")
	ben.info()
	return ben, func() { withdrawn.Store(true) }
}

// ended checks that the socket ends, and that nothing arrives before.
func (c *client) ended() {
	c.t.Helper()
	select {
	case text, open := <-c.inbox:
		assert.False(c.t, open, text)
	case <-time.After(limit):
		c.t.Error("the socket stays open")
	}
}
