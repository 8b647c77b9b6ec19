package kv

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A page costs the same however many keys follow: etcd does not count them. While it counts, all writes wait.
func TestAPageDoesNotCountTheRest(t *testing.T) {
	dir, err := os.MkdirTemp("", "kv") // a short path, for the socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	s, err := Open(t.Context(), Config{DataDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	const keys, limit = 20, 3
	for i := range keys {
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Put(fmt.Sprintf("k/%02d", i), []byte("x"))}})
		require.NoError(t, err)
	}
	response, err := s.client.Get(t.Context(), "k/", clientv3.WithPrefix(), clientv3.WithLimit(limit))
	require.NoError(t, err)
	assert.Len(t, response.Kvs, limit)
	assert.LessOrEqual(t, response.Count, int64(limit+1))

	var read []string
	revision, err := s.Each(t.Context(), "k/", limit, func(page []Entry) error {
		for _, e := range page {
			read = append(read, e.Key)
		}
		_, err := s.Commit(t.Context(), Txn{Then: []Op{Put("k/later", nil)}}) // is not of the revision that is read
		return err
	})
	require.NoError(t, err)
	assert.Len(t, read, keys)
	assert.Less(t, revision, response.Header.Revision+2)
	now, _, err := s.Get(t.Context(), "k/later")
	require.NoError(t, err)
	require.NoError(t, s.Compact(t.Context(), now.Modified))
	_, _, err = s.get(t.Context(), "k/", clientv3.WithPrefix(), clientv3.WithLimit(limit), clientv3.WithRev(revision))
	require.ErrorIs(t, err, ErrCompacted)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Page(ended, "k/", "", limit)
	require.ErrorIs(t, err, context.Canceled)
}
