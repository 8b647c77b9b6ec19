package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// collecting deletes some blobs when the first bytes of one have been read, as a server does that looked for garbage before the backup began.
type collecting struct {
	blobs.Blobs
	garbage []string
}

func (c *collecting) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	r, err := c.Blobs.Open(ctx, name)
	if err == nil && slices.Contains(c.garbage, name) {
		return &collected{r, func() error { return c.Delete(ctx, name) }}, nil
	}
	return r, err
}

type collected struct {
	io.ReadSeekCloser
	remove func() error
}

func (c *collected) Read(p []byte) (int, error) {
	n, err := c.ReadSeekCloser.Read(p[:min(1, len(p))])
	return n, errors.Join(err, c.remove())
}

// So many blobs are being read that each further one is open only during a read. A blob that was garbage before the backup began is deleted
// while the backup reads it. The backup leaves it out, and is whole.
func TestABackupWhileGarbageIsDeleted(t *testing.T) {
	store := kvtest.Open(t)
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	defer table.Close()
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	bytesOf := &collecting{Blobs: files}
	contents := content.New(content.Config{KV: store, Locks: table, Blobs: bytesOf})
	lease, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{locks.Document("r")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Minute})
	require.NoError(t, err)
	for _, text := range []string{"garbage", "present"} {
		_, err := contents.Write(t.Context(), "r", content.Writer{Holder: "ann"}, lease.Token, content.Save{}, nil, []byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, contents.EachBlob(t.Context(), func(name string, kept bool) error {
		if !kept {
			bytesOf.garbage = append(bytesOf.garbage, name)
		}
		return nil
	}))
	require.Len(t, bytesOf.garbage, 1)
	for range 64 {
		c, err := contents.Find(t.Context(), "r", "")
		require.NoError(t, err)
		r, err := c.Open(t.Context())
		require.NoError(t, err)
		defer func() { assert.NoError(t, r.Close()) }()
	}

	var archive bytes.Buffer
	require.NoError(t, Write(t.Context(), contents, &archive))
	sum, err := Check(&archive)
	require.NoError(t, err)
	assert.EqualValues(t, 1, sum.Blobs)
	assert.Empty(t, sum.Missing)
	assert.Empty(t, sum.Changed)
}
