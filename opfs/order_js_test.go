//go:build js && wasm

package opfs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// A client that wants a name exclusively waits for a shared holder. Clients that ask for the name shared later do not
// overtake it, however long the holder keeps the name: otherwise they could keep it out for ever.
func TestSharedRequestWaitsBehindExclusiveOne(t *testing.T) {
	root := newRoot()
	holder, writer, reader := newClient(t, root), newClient(t, root), newClient(t, root)
	shared := want("x")
	shared.Wants[0].Mode = lock.Shared
	held, err := holder.Request(t.Context(), shared)
	require.NoError(t, err)
	written := make(chan lock.Grant, 1)
	go func() { written <- must(writer.Request(context.Background(), want("x"))) }()
	inLine(t, holder, 1)

	ctx, stop := context.WithTimeout(t.Context(), patience+4*slowest)
	defer stop()
	_, err = reader.Request(ctx, shared)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, written)
	free(t, held)
	free(t, <-written)
}
