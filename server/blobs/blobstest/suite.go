// Package blobstest is the suite that every blob store passes.
package blobstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
)

// Run checks a store that open returns. Each call of open comes to the same blobs, as after a restart.
func Run(t *testing.T, open func(t *testing.T) blobs.Blobs) {
	t.Run("blobs are read as they were put", func(t *testing.T) { readsBack(t, open) })
	t.Run("deleted blobs are gone", func(t *testing.T) { deletes(t, open) })
	t.Run("names", func(t *testing.T) { refusesNames(t, open) })
	t.Run("all are listed", func(t *testing.T) { listsAll(t, open) })
}

// name returns the name of a blob of these tests.
func name(i int) string { return fmt.Sprintf("%02x-blob-%d", i%256, i) }

// readsBack checks that every blob is read as it was put, also by a store opened again.
func readsBack(t *testing.T, open func(t *testing.T) blobs.Blobs) {
	ctx, store := t.Context(), open(t)
	for i, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("0123456789"), 100_000)} {
		require.NoError(t, store.Put(ctx, name(i), data))
		for _, again := range []blobs.Blobs{store, open(t)} {
			r, err := again.Open(ctx, name(i))
			require.NoError(t, err)
			read, err := io.ReadAll(r)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(data, read))
			if len(data) > 10 {
				_, err = r.Seek(-5, io.SeekEnd)
				require.NoError(t, err)
				read, err = io.ReadAll(r)
				require.NoError(t, err)
				assert.Equal(t, "56789", string(read))
			}
			require.NoError(t, r.Close())
		}
	}
}

// deletes checks that a deleted blob is gone, and that deleting it again is no error.
func deletes(t *testing.T, open func(t *testing.T) blobs.Blobs) {
	ctx, store := t.Context(), open(t)
	require.NoError(t, store.Put(ctx, name(7), []byte("x")))
	for range 2 {
		require.NoError(t, store.Delete(ctx, name(7)))
		_, err := store.Open(ctx, name(7))
		require.ErrorIs(t, err, blobs.ErrNotFound)
	}
}

// refusesNames checks that every operation refuses a text that is no name of a blob.
func refusesNames(t *testing.T, open func(t *testing.T) blobs.Blobs) {
	ctx, store := t.Context(), open(t)
	for _, bad := range []string{"", "ab", "../../etc", "ab/c", "xy-1", "ab-\x00", "ab-."} {
		require.Error(t, store.Put(ctx, bad, nil), "%q", bad)
		_, err := store.Open(ctx, bad)
		require.Error(t, err, "%q", bad)
		require.Error(t, store.Delete(ctx, bad), "%q", bad)
	}
}

// listsAll checks that blobs put at the same time are all listed, in order.
func listsAll(t *testing.T, open func(t *testing.T) blobs.Blobs) {
	ctx, store := t.Context(), open(t)
	var all sync.WaitGroup
	var want []string
	for i := 1000; i < 1040; i++ {
		want = append(want, name(i))
		all.Go(func() { assert.NoError(t, store.Put(context.WithoutCancel(ctx), name(i), []byte("x"))) })
	}
	all.Wait()
	var got []string
	require.NoError(t, store.Each(ctx, func(n string) error { got = append(got, n); return nil }))
	for _, n := range want {
		assert.True(t, slices.Contains(got, n), n)
	}
	assert.True(t, slices.IsSorted(got))
	stop := errors.New("stop")
	require.ErrorIs(t, store.Each(ctx, func(string) error { return stop }), stop)
}
