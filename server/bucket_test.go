package server_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/blobs/blobstest"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// Two servers share a store and a bucket. While the bucket is away, contents are 503 and locks go on; afterwards contents go on, and
// nothing is left over.
func TestContentsInABucket(t *testing.T) {
	var away atomic.Bool
	place := blobstest.S3Behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if away.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	bucket := func(c *server.Config) { c.Blobs, c.Keep, c.Sweep = place, 2, 50*time.Millisecond }
	first := start(t, bucket)
	ann, bob := first.as(t, "ann"), first.another(t, bucket).as(t, "bob")
	token := ann.lock("r")
	for i := range 4 {
		require.Equal(t, http.StatusOK, ann.save("r", token, fmt.Sprint("text ", i)).status)
	}
	read := bob.do("GET", contentOf("r"), nil)
	assert.Equal(t, "text 3", string(read.text))
	assert.Equal(t, "xt 3", string(bob.with("Range", "bytes=2-").do("GET", contentOf("r"), nil).text))
	history := generations(bob.do("GET", "/api/documents/r/history", nil))
	require.Len(t, history, 2)
	assert.Equal(t, "text 2", string(bob.do("GET", contentOf("r")+"?generation="+history[1], nil).text))

	away.Store(true)
	assertError(t, ann.save("r", token, "lost"), http.StatusServiceUnavailable, "unavailable")
	assertError(t, bob.do("GET", contentOf("r"), nil), http.StatusServiceUnavailable, "unavailable")
	unread := bob.with("If-None-Match", read.header.Get("ETag")).do("GET", contentOf("r"), nil)
	assert.Equal(t, http.StatusNotModified, unread.status, "no bytes are read")
	require.Equal(t, http.StatusOK, ann.do("PUT", lockOf("r"), nil).status)
	assert.Positive(t, bob.lock("other"))
	away.Store(false)

	require.Equal(t, http.StatusOK, ann.save("r", token, "text 4").status)
	assert.Equal(t, "text 4", string(bob.do("GET", contentOf("r"), nil).text))
	store, err := blobs.Open(t.Context(), place)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		kept := 0
		require.NoError(t, store.Each(t.Context(), func(name string) error {
			if !strings.HasPrefix(name, "00-home-") {
				kept++
			}
			return nil
		}))
		return kept == 2
	}, 10*time.Second, 20*time.Millisecond)
}

// Each range is a request to the bucket, so a client that names many gets the whole content for one request.
func TestManyRangesAreFewRequestsToTheBucket(t *testing.T) {
	var sent atomic.Int64
	place := blobstest.S3Behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				sent.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	ann := start(t, func(c *server.Config) { c.Blobs = place }).as(t, "ann")
	text := strings.Repeat("0123456789", 100)
	require.Equal(t, http.StatusOK, ann.save("r", ann.lock("r"), text).status)
	read := func(ranges int) answer {
		var list []string
		for i := range ranges {
			list = append(list, fmt.Sprintf("%d-%d", 10*i, 10*i+1))
		}
		sent.Store(0)
		return ann.with("Range", "bytes="+strings.Join(list, ",")).do("GET", contentOf("r"), nil)
	}
	many := read(90)
	assert.Equal(t, http.StatusOK, many.status)
	assert.Len(t, many.text, len(text))
	assert.EqualValues(t, 1, sent.Load())
	assert.Equal(t, http.StatusPartialContent, read(4).status)
}

// A server whose blobs are not those of the store does not start: it would hide contents and save some where nobody finds them.
func TestOtherBlobsThanThoseOfTheStore(t *testing.T) {
	t.Parallel()
	first := start(t, nil)
	elsewhere := server.DefaultConfig()
	elsewhere.Etcd, elsewhere.Blobs = []string{first.Store().Endpoint()}, filepath.Join(kvtest.Dir(t), "blobs")
	_, err := server.Start(t.Context(), elsewhere, nil)
	require.ErrorContains(t, err, "--blobs does not have the contents of this store")
	elsewhere.Blobs = first.blobs
	same, err := server.Start(t.Context(), elsewhere, nil)
	require.NoError(t, err)
	require.NoError(t, same.Close())
}

// Alone, a server may be given other blobs as long as there are no contents.
func TestOtherBlobsWithoutContents(t *testing.T) {
	t.Parallel()
	c := server.DefaultConfig()
	c.DataDir, c.Blobs = kvtest.Dir(t), filepath.Join(kvtest.Dir(t), "blobs")
	startWith(t, c).Stop(t)
	c.Blobs = filepath.Join(kvtest.Dir(t), "blobs")
	second := startWith(t, c)
	ann := second.as(t, "ann")
	require.Equal(t, http.StatusOK, ann.save("r", ann.lock("r"), "text").status)
	second.Stop(t)
	c.Blobs = filepath.Join(kvtest.Dir(t), "blobs")
	_, err := server.Start(t.Context(), c, nil)
	require.ErrorContains(t, err, "restore the blobs")
}

// A server with a new store does not start on the contents of another one: it would delete them as left by a crash.
func TestNewStoreBesideContentsOfAnother(t *testing.T) {
	t.Parallel()
	first := start(t, func(c *server.Config) { c.Blobs = filepath.Join(kvtest.Dir(t), "blobs") })
	ann := first.as(t, "ann")
	require.Equal(t, http.StatusOK, ann.save("r", ann.lock("r"), "text").status)
	fresh := server.DefaultConfig()
	fresh.DataDir, fresh.Blobs = kvtest.Dir(t), first.blobs
	_, err := server.Start(t.Context(), fresh, nil)
	require.ErrorContains(t, err, "--blobs has contents of another store")
	assert.Equal(t, "text", string(ann.do("GET", contentOf("r"), nil).text))
}
