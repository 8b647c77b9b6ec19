package rooms

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// crowd is small by default; -crowd=1000 runs the long form.
var crowd = flag.Int("crowd", 200, "how many sockets the tests of a crowd open")

// everyone runs f for all clients concurrently.
func everyone(clients []*client, f func(i int, c *client)) {
	var wait sync.WaitGroup
	for i, c := range clients {
		wait.Go(func() { f(i, c) })
	}
	wait.Wait()
}

// enterAll opens a crowd of sockets, distributed over the instances. All enter one room concurrently, and enterAll
// waits until each of them sees all.
func enterAll(t *testing.T, at ...*instance) []*client {
	clients := make([]*client, *crowd)
	for i := range clients {
		clients[i] = connect(t, at[i%len(at)])
	}
	id := clients[0].create("0")
	everyone(clients[1:], func(i int, c *client) { c.enter(id, fmt.Sprint(i+1)) })
	everyone(clients, func(_ int, c *client) { c.skip(func(text string) bool { return present(text) == *crowd }) })
	return clients
}

// skip takes states until the condition holds for one. It decodes none of them, because decoding would be most of the
// work in a crowd.
func (c *client) skip(condition func(text string) bool) string {
	c.t.Helper()
	for {
		text := c.text()
		require.True(c.t, strings.HasPrefix(text, `{"type":"roomInfo"`), text)
		if condition(text) {
			return text
		}
	}
}

func present(text string) int { return strings.Count(text, `"userNumber":`) }

// No entry and no answer is lost, however many of them reach one room at the same moment.
func TestACrowdLosesNothing(t *testing.T) {
	a, b, store := pair(t, Config{StoreLimit: time.Minute})
	clients := enterAll(t, a, b)
	id := clients[0].room
	everyone(clients, func(i int, c *client) {
		for range 4 { // enough to make the instances conflict
			c.answer("")
		}
		c.answer(fmt.Sprint("answer ", i))
	})
	everyone(clients, func(i int, c *client) {
		var open heard
		text := c.skip(func(text string) bool { return strings.Contains(text, `"isOpen":true`) })
		require.NoError(t, json.Unmarshal([]byte(text), &open))
		require.Len(t, open.Room.Participants, *crowd)
		for _, p := range open.Room.Participants {
			if p.Answer != "answer "+p.Name || p.IsMe != (p.Name == fmt.Sprint(i)) {
				require.Fail(t, "an answer is lost or another's", "%+v", p)
			}
		}
	})

	stored := must(decodeRoom([]byte(keys(t, store, roomPrefix)[id])))(t)
	require.Len(t, stored.Participants, *crowd)
	numbers := map[int]bool{}
	for _, p := range stored.Participants {
		numbers[p.Number] = true
	}
	assert.Len(t, numbers, *crowd, "a number is given once")
	assert.Len(t, keys(t, store, memberPrefix), *crowd)
	t.Logf("conflicts: %d and %d", a.Stats().Conflicts, b.Stats().Conflicts)
	assert.NotZero(t, a.Stats().Conflicts+b.Stats().Conflicts, "without conflicts this shows nothing")
}

// A crowd that loses its server comes back at another one as the same participants. From then on each participant
// receives each state once and in order.
func TestACrowdComesBack(t *testing.T) {
	a, b, store := pair(t, Config{Grace: time.Minute, StoreLimit: time.Minute})
	clients := allBack(t, enterAll(t, a), b, store)

	// The first participants may have received states with some of the later ones. By now all those states have been
	// read.
	const rounds = 25
	_, start, err := store.Get(t.Context(), "none")
	require.NoError(t, err)
	for round := range rounds {
		clients[0].answer(fmt.Sprint("round ", round))
	}
	clients[0].send("clearAnswer", map[string]any{"roomId": clients[0].room})
	var mu sync.Mutex
	told := map[string]int{} // how many participants received each of these revisions
	everyone(clients, func(i int, c *client) {
		last, revisions, rounds := int64(0), "", 0
		c.skip(func(text string) bool {
			var h heard
			require.NoError(t, json.Unmarshal([]byte(text[:strings.Index(text, `,"room"`)]+"}"), &h))
			if h.Revision <= start {
				return false
			}
			require.Greater(t, h.Revision, last)
			last = h.Revision
			revisions += fmt.Sprint(h.Revision, " ")
			if i == 0 && strings.Contains(text, fmt.Sprintf(`"round %d"`, rounds)) {
				rounds++
			}
			return !strings.Contains(text, `"hasAnswered":true`) && !strings.Contains(text, `"answer":"round`)
		})
		if i == 0 {
			require.Equal(t, 25, rounds, "in the order in which they were sent")
		}
		mu.Lock()
		defer mu.Unlock()
		told[revisions]++
	})
	require.Len(t, told, 1, "all participants got the same states")
	for revisions := range told {
		require.Len(t, strings.Fields(revisions), rounds+1, "of each of them")
	}
	everyone(clients[:10], func(_ int, c *client) { c.quiet("each state comes once") })
}

// allBack cuts off a crowd, and returns its new connections to another server once they have the same participants there.
func allBack(t *testing.T, former []*client, to *instance, store *kv.Store) []*client {
	t.Helper()
	id := former[0].room
	before := must(decodeRoom([]byte(keys(t, store, roomPrefix)[id])))(t)
	everyone(former, func(_ int, c *client) { _ = c.conn.CloseNow() })

	clients := make([]*client, *crowd)
	for i := range clients {
		clients[i] = connect(t, to)
	}
	everyone(clients, func(i int, c *client) {
		c.room = id
		c.send("enterTheRoom", map[string]any{"roomId": id, "userName": fmt.Sprint(i), "previousToken": former[i].token})
		c.skip(func(text string) bool { return present(text) == *crowd })
	})
	after := must(decodeRoom([]byte(keys(t, store, roomPrefix)[id])))(t)
	require.True(t, before.looksLike(after), "the same participants")
	return clients
}
