package content

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
)

// lateBlobs gives up each write while it is on its way. arrive carries out the last one.
type lateBlobs struct {
	blobs.Blobs
	arrive func() error
}

func (l *lateBlobs) Put(_ context.Context, name string, data []byte) error {
	l.arrive = func() error { return l.Blobs.Put(context.Background(), name, data) }
	return blobs.ErrUnavailable
}

// A bucket does not answer to a write in time, and carries it out after the save has failed and deleted the blob. The server looks for such
// blobs again without a restart.
func TestABlobThatArrivesAfterItsDeletionIsSwept(t *testing.T) {
	s, f, lock := opened(t, 2)
	token, late := lock("r"), &lateBlobs{Blobs: f}
	s.Blobs = late
	_, err := s.save(t, "r", token, "text")
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	require.NoError(t, late.arrive())
	require.Len(t, f.names(t), 1)
	assert.True(t, s.Left())
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(2*OrphanAge)))
	assert.Empty(t, f.names(t))
	assert.False(t, s.Left())
}

// leaving lets the client leave while a blob is written.
type leaving struct {
	blobs.Blobs
	leave func()
}

func (l *leaving) Put(ctx context.Context, name string, data []byte) error {
	l.leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.Blobs.Put(ctx, name, data)
}

// A client leaves in the middle of a save, as pages do every day. The write of the blob goes on, so its outcome is known: the blob is deleted,
// and no look at all blobs is needed.
func TestASaveWhoseClientLeavesNeedsNoSweep(t *testing.T) {
	s, f, lock := opened(t, 2)
	token := lock("r")
	ctx, leave := context.WithCancel(t.Context())
	s.Blobs = &leaving{f, leave}
	_, err := s.Write(ctx, "r", Writer{Holder: "ann", Maker: "ann"}, token, Save{}, nil, []byte("text"))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, f.names(t))
	assert.False(t, s.Left())
}
