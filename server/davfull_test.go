package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// In a full store, desktop programs can set no properties and make no collections. The remaining space is for locks.
func TestDesktopProgramsInAFullStore(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Quota = 64 << 20 })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/a a")
	ann.status(http.StatusMultiStatus, "PROPPATCH /dav/c/a "+setProperty)
	value := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 62 {
		_, err := s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprint("big/", i), value)}})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return s.Store().Space().Full }, 30*time.Second, 10*time.Millisecond)
	ann.status(http.StatusInsufficientStorage, "PUT /dav/c/b b", "MKCOL /dav/d", "PROPPATCH /dav/c/a "+setProperty)
	locksGoOn(ann)
	ann.status(http.StatusNoContent, "DELETE /dav/c/a")
}
