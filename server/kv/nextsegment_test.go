package kv

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The fields of this version of etcd are those that nextSegment changes, also where no small file system can be mounted.
func TestFieldsOfNextSegment(t *testing.T) {
	dir := shortDir(t)
	s, err := Open(t.Context(), Config{DataDir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	n, err := nextSegmentOf(s.embedded.etcd, dir)
	require.NoError(t, err)
	assert.NoError(t, n.retry(-1), "nothing has failed")
}
