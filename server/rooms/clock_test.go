package rooms

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// fakeClock stands still until the test advances it.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func noSocket(string) bool { return false }

// sees waits until the server has seen the last change of a room.
func (s *instance) sees(t *testing.T, room string) {
	t.Helper()
	updated, _, err := s.config.Store.Get(t.Context(), updatePrefix+room)
	require.NoError(t, err)
	eventually(t, "the room is seen", func() bool {
		p := s.sweeper.seen
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.updates[room] != nil && p.updates[room].revision == updated.Modified
	})
}

// The clock of one server is an hour ahead, or jumps. The server closes no room that has just been used.
func TestAWrongClockClosesNoRoom(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store})
	wrong := start(t, Config{Store: store, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	ann.answer("x")
	ann.info()
	wrong.sees(t, id)
	require.NoError(t, wrong.sweeper.closeIdle(t.Context()))
	assert.NotEmpty(t, keys(t, store, roomPrefix)[id])
}

// The clock of the server that changed a room was a day ahead. A server that reads the room at its start closes it when it has been
// idle for long enough.
func TestATimeAheadKeepsNoRoom(t *testing.T) {
	store := kvtest.Open(t)
	ahead := start(t, Config{Store: store, Now: func() time.Time { return time.Now().Add(24 * time.Hour) }})
	ann := connect(t, ahead)
	id := ann.create("Ann")
	ann.info()
	clock := &fakeClock{at: time.Now()}
	right := start(t, Config{Store: store, Now: clock.now})
	right.sees(t, id)
	require.NoError(t, right.sweeper.closeIdle(t.Context()))
	assert.NotEmpty(t, keys(t, store, roomPrefix)[id])
	clock.advance(31 * time.Minute)
	require.NoError(t, right.sweeper.closeIdle(t.Context()))
	assert.Empty(t, keys(t, store, roomPrefix)[id])
}

// The clock of the server that changed a room was an hour behind. A server that starts does not close the room, which has just been used.
func TestATimeBehindClosesNoRoom(t *testing.T) {
	store := kvtest.Open(t)
	behind := start(t, Config{Store: store, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	ann := connect(t, behind)
	id := ann.create("Ann")
	ann.info()
	right := start(t, Config{Store: store})
	right.sees(t, id)
	require.NoError(t, right.sweeper.closeIdle(t.Context()))
	assert.NotEmpty(t, keys(t, store, roomPrefix)[id])
}
