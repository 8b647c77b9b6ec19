package server_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-dev/holdfast/server"
)

// In a full store, desktop programs can set no properties and make no collections. The remaining space is for locks.
func TestDesktopProgramsInAFullStore(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Quota = 64 << 20 })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/a a")
	ann.status(http.StatusMultiStatus, "PROPPATCH /dav/c/a "+setProperty)
	fill(t, s)
	ann.status(http.StatusInsufficientStorage, "PUT /dav/c/b b", "MKCOL /dav/d", "PROPPATCH /dav/c/a "+setProperty)
	locksGoOn(ann)
	ann.status(http.StatusNoContent, "DELETE /dav/c/a")
}
