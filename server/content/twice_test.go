package content

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// A save arrives twice at the same time, since the client repeats it. The one that comes second keeps no blob.
func TestASaveThatArrivesTwiceKeepsOneBlob(t *testing.T) {
	s, f, lock := opened(t, 5)
	token := lock("r")
	write := func() {
		_, err := s.Write(t.Context(), "r", Writer{Holder: "ann", Maker: "ann"}, token, Save{Draft: "x", Number: 1, Order: 1}, nil, []byte("text"))
		require.NoError(t, err)
	}
	first := true
	f.puts = func() error {
		if first {
			first = false
			write()
		}
		return nil
	}
	write()
	assert.Len(t, f.names(t), 1)
}

// pausing pauses after each blob.
type pausing struct {
	blobs.Blobs
	after func()
}

func (p *pausing) Put(ctx context.Context, name string, data []byte) error {
	defer p.after()
	return p.Blobs.Put(ctx, name, data)
}

// A server is suspended between a blob and its transaction, for so long that another server takes the blob for one that a crash has
// left. The lock is kept alive through that server. The content that the first server then acknowledges can be read.
func TestABlobThatIsSweptBeforeItsTransaction(t *testing.T) {
	sweptBeforeItsTransaction(t, OrphanAge, 0, 0)
}

// The suspension goes on until the mark of the sweep is forgotten.
func TestABlobThatIsSweptLongBeforeItsTransaction(t *testing.T) {
	sweptBeforeItsTransaction(t, OrphanAge, 0, 2*OrphanAge)
}

// The clock of the server that sweeps is ahead of the writer's, so it takes a new blob for an old one.
func TestABlobThatIsSweptByAClockThatIsAhead(t *testing.T) {
	sweptBeforeItsTransaction(t, time.Second, 2*OrphanAge, 0)
}

// sweptBeforeItsTransaction suspends a server after it has written a blob: first for pause, then while another server sweeps whose
// clock is ahead, then for rest.
func sweptBeforeItsTransaction(t *testing.T, pause, ahead, rest time.Duration) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		store := m.Client(nil)
		table, err := locks.Open(t.Context(), store, locks.Config{})
		require.NoError(t, err)
		defer func() { table.Close(); assert.NoError(t, store.Close()); m.Close() }()
		files, err := blobs.OpenFiles(dir)
		require.NoError(t, err)
		lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: 24 * time.Hour})
		require.NoError(t, err)
		other := New(Config{KV: store, Locks: table, Blobs: files})
		suspended := New(Config{KV: store, Locks: table, Blobs: &pausing{files, sync.OnceFunc(func() {
			time.Sleep(pause)
			assert.NoError(t, other.Sweep(t.Context(), time.Now().Add(ahead)))
			time.Sleep(rest)
		})}})
		_, err = suspended.Write(t.Context(), "r", Writer{Holder: "ann", Maker: "ann"}, lease.Token, Save{}, nil, []byte("text"))
		require.NoError(t, err)
		data, _, err := other.Read(t.Context(), "r")
		require.NoError(t, err)
		assert.Equal(t, "text", string(data))
	})
}
