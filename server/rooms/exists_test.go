package rooms

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// measured counts the bytes of the values that are read.
type measured struct {
	*kv.Store
	read atomic.Int64
}

func (m *measured) Get(ctx context.Context, key string) (kv.Entry, int64, error) {
	e, revision, err := m.Store.Get(ctx, key)
	m.read.Add(int64(len(e.Value)))
	return e, revision, err
}

// Anybody may ask whether a room exists. Thousands of sockets that asked about a room of a megabyte at once would take much memory, and
// others would wait for seconds.
func TestQuestionForALargeRoomReadsNothingOfIt(t *testing.T) {
	store := &measured{Store: kvtest.Open(t)}
	a := start(t, Config{Store: store})
	id := connect(t, a).create("Ann")
	grow(t, store.Store, id, 600)
	ben := connect(t, a)
	store.read.Store(0)
	for room, there := range map[string]bool{id: true, "another": false} {
		ben.send("isExistTheRoom", map[string]any{"roomId": room})
		told := ben.next()
		require.NotNil(t, told.IsExistTheRoom, told.text)
		assert.Equal(t, there, *told.IsExistTheRoom)
	}
	assert.Less(t, store.read.Load(), int64(1<<10), "bytes")
}
