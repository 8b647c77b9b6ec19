package rooms

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The participants of a room of a megabyte stop reading. The server keeps no copy of the room for each of them. When they read again, each has
// the whole state.
func TestSlowReadersOfALargeRoomTakeLittleMemory(t *testing.T) {
	store := kvtest.Open(t)
	a := start(t, Config{Store: store, MessageLimit: time.Minute})
	// Small buffers of the system, so that a write waits for its reader.
	server := httptest.NewUnstartedServer(a.Rooms)
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			_ = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	slow := &instance{a.Rooms, server, server.URL}

	var reading sync.RWMutex
	members := make([]*client, 40)
	for i := range members {
		members[i] = connect(t, slow, pausing(&reading))
	}
	id := members[0].create("0")
	for i, m := range members[1:] {
		m.enter(id, fmt.Sprint(i+1))
	}
	for _, m := range members {
		m.until("all have entered", func(r roomInfo) bool { return len(r.Room.Participants) == len(members) })
	}

	reading.Lock()
	readOn := sync.OnceFunc(reading.Unlock)
	t.Cleanup(readOn)
	before := inUse()
	const others = 650
	grow(t, store, id, others)
	eventually(t, "each state is being written", func() bool { return a.allWrite(others) })
	assert.Less(t, inUse()-before, int64(len(members))<<20/2, "half a megabyte for each member")
	readOn()
	for i, m := range members {
		told := m.until("the large room", func(r roomInfo) bool { return len(r.Room.Participants) == len(members)+others })
		for _, p := range told.Room.Participants {
			assert.Equal(t, p.Name == fmt.Sprint(i), p.IsMe)
		}
		assert.Greater(t, len(told.text), 900_000)
	}
}

// allWrite reports whether each socket has taken a state with more participants than n to write it.
func (r *Rooms) allWrite(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sockets {
		s.feed.mu.Lock()
		large := len(s.feed.current.room.Participants) > n
		s.feed.mu.Unlock()
		s.out.mu.Lock()
		left := len(s.out.waiting)
		s.out.mu.Unlock()
		if !large || left > 0 {
			return false
		}
	}
	return true
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// grow puts participants with long answers into a room.
func grow(t *testing.T, store *kv.Store, id string, n int) {
	e, _, err := store.Get(t.Context(), roomPrefix+id)
	require.NoError(t, err)
	r, err := decodeRoom(e.Value)
	require.NoError(t, err)
	for i := range n {
		r.Participants = append(r.Participants, participant{Token: fmt.Sprint(i), Name: "n", Answer: strings.Repeat("\x01", maxAnswer)})
	}
	r.IsOpen = true
	data, err := r.encode()
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(e.Key, data)}})
	require.NoError(t, err)
}

// pausing makes a socket read nothing while the mutex is locked.
func pausing(reading *sync.RWMutex) dialOption {
	return func(o *websocket.DialOptions) {
		o.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return pausingConn{c, reading}, c.(*net.TCPConn).SetReadBuffer(8 << 10)
		}}}
	}
}

type pausingConn struct {
	net.Conn
	reading *sync.RWMutex
}

func (c pausingConn) Read(p []byte) (int, error) {
	c.reading.RLock()
	c.reading.RUnlock() //nolint:staticcheck // it only waits
	return c.Conn.Read(p)
}
