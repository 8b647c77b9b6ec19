package dav

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// Requests that keep much in memory come at once: listings whose clients do not read, and copies to a slow disk. Four of one address go on.
// The next one waits, and gets an error in the end. A request of another address does not wait.
func TestFewRequestsOfOneAddressUseMuchMemory(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"PROPFIND", "COPY"} {
		synctest.Test(t, func(t *testing.T) {
			s := newWaited(t)
			for i := range 200 {
				_, err := s.Store.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put(fmt.Sprintf("content/d~.m%d", i), []byte("{}"))}})
				require.NoError(t, err)
			}
			slow := make(chan struct{})
			reached := make(chan int, 10)
			s.Contents.Blobs = slowBlobs{s.Contents.Blobs, func() { reached <- http.StatusCreated; <-slow }}
			send := func(n int, address string) {
				path := map[string]string{"PROPFIND": "/dav/d", "COPY": "/dav/o"}[method]
				r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
				r.RemoteAddr = address
				r.Header.Set("Destination", fmt.Sprint("/dav/copy", n))
				if method == "PROPFIND" {
					r.Header.Set("Depth", "1")
				}
				go s.serveAnn(slowReader{httptest.NewRecorder(), func(status int) {
					if reached <- status; method == "PROPFIND" && status == http.StatusMultiStatus {
						<-slow
					}
				}}, r)
				synctest.Wait()
			}
			for n := range 4 {
				send(n, "192.0.2.1:80")
				<-reached
			}
			send(4, "192.0.2.1:80")
			assert.Empty(t, reached, method)
			send(5, "192.0.2.2:80")
			assert.Len(t, reached, 1, method)
			<-reached
			assert.Equal(t, http.StatusTooManyRequests, <-reached, method)
			close(slow)
			synctest.Wait()
		})
	}
}

// Copies of one address are slow. A listing of the address does not wait for them, because they may take an hour.
func TestAListingDoesNotWaitForCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWaited(t)
		slow := make(chan struct{})
		s.Contents.Blobs = slowBlobs{s.Contents.Blobs, func() { <-slow }}
		for n := range 4 {
			r := httptest.NewRequestWithContext(t.Context(), "COPY", "/dav/o", nil)
			r.Header.Set("Destination", fmt.Sprint("/dav/copy", n))
			go s.serveAnn(httptest.NewRecorder(), r)
		}
		synctest.Wait()
		list, answer := httptest.NewRequestWithContext(t.Context(), "PROPFIND", "/dav/d", nil), httptest.NewRecorder()
		list.Header.Set("Depth", "1")
		s.serveAnn(answer, list)
		assert.Equal(t, http.StatusMultiStatus, answer.Code)
		close(slow)
		synctest.Wait()
	})
}

// slowReader and slowBlobs call wait before they take an answer or a content.
type slowReader struct {
	http.ResponseWriter
	wait func(status int)
}

func (s slowReader) WriteHeader(status int) { s.wait(status) }

type slowBlobs struct {
	blobs.Blobs
	wait func()
}

func (s slowBlobs) Put(ctx context.Context, name string, data []byte) error {
	s.wait()
	return s.Blobs.Put(ctx, name, data)
}
