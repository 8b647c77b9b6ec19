package content

import (
	"context"
	"errors"
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
	assert.True(t, s.NeedsSweep())
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(2*OrphanAge)))
	assert.Empty(t, f.names(t))
	assert.False(t, s.NeedsSweep())
}

// leaving lets the client leave while a blob is written.
type leaving struct {
	blobs.Blobs
	leave func()
}

func (l *leaving) Put(ctx context.Context, name string, data []byte) error {
	l.leave()
	return l.Blobs.Put(context.WithoutCancel(ctx), name, data)
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
	assert.False(t, s.NeedsSweep())
}

// busy is a blob store in which each write waits for its turn. It fails when the client leaves.
type busy struct {
	blobs.Blobs
	leave   func()
	deleted int
}

func (b *busy) Put(ctx context.Context, _ string, _ []byte) error {
	b.leave()
	if ctx.Err() == nil {
		return errors.New("the write waits although nobody waits for it")
	}
	return context.Cause(ctx)
}

func (b *busy) Delete(context.Context, string) error {
	b.deleted++
	return nil
}

// A disk or a bucket hangs, and clients leave whose saves wait for their turn. The waiting ends, so the saves of those who have gone are not in
// memory, and are not written before those of the clients that still wait.
func TestASaveWhoseClientLeavesWaitsForNoTurn(t *testing.T) {
	s, f, lock := opened(t, 2)
	token := lock("r")
	ctx, leave := context.WithCancel(t.Context())
	turn := &busy{Blobs: f, leave: leave}
	s.Blobs = turn
	_, err := s.Write(ctx, "r", Writer{Holder: "ann", Maker: "ann"}, token, Save{}, nil, []byte("text"))
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, turn.deleted, "nothing was written")
	assert.False(t, s.NeedsSweep())
}
