package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// longLocks acquires locks on places below a document whose paths are as long as possible.
func (c client) longLocks(document string, n int) {
	c.t.Helper()
	for i := range n {
		path := []string{"documents", document, strconv.Itoa(i)}
		for len(path) < 16 {
			path = append(path, strings.Repeat("<", 128))
		}
		got := c.do("POST", "/api/locks", map[string]any{"paths": [][]string{path}})
		require.Equal(c.t, http.StatusOK, got.status, string(got.text))
	}
}

// Somebody else holds many locks on long paths below a document. A client that is refused because of them gets a short answer that names some.
func TestARefusalIsShort(t *testing.T) {
	t.Parallel()
	s := start(t, servertest.Unlimit)
	bob := s.as(t, "bob")
	bob.status(http.StatusCreated, "MKCOL /dav/d")
	s.as(t, "eve").longLocks("d", 45)
	for request, status := range map[string]int{
		`POST /api/locks {"paths": [["documents", "d"]]}`: http.StatusConflict,
		"GET /api/documents/d/lock ":                      http.StatusOK,
		"DELETE /dav/d ":                                  http.StatusLocked,
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		got := bob.do(method, path, body)
		assert.Equal(t, status, got.status, request)
		assert.Contains(t, string(got.text), "d", request)
		assert.Less(t, len(got.text), 128<<10, request)
		assert.Greater(t, len(got.text), 4<<10, request)
	}
}

// Clients of one address ask for large pages of locks and do not read them. Four such pages are in memory. Other requests of the address go on.
func TestFewLargePagesOfLocksAreInMemory(t *testing.T) {
	t.Parallel()
	s := start(t, servertest.Unlimit)
	s.as(t, "eve").longLocks("d", 10)
	get := func(w http.ResponseWriter, limit int) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("/api/locks?path=documents&limit=%d", limit), nil)
		r.Host = "localhost"
		s.Handler().ServeHTTP(w, r)
	}
	read, begun := make(chan struct{}), make(chan int, 10)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() { get(slowWriter{httptest.NewRecorder(), read, begun}, 100) })
		require.Equal(t, http.StatusOK, <-begun)
	}
	small, large := httptest.NewRecorder(), httptest.NewRecorder()
	get(small, 1)
	assert.Equal(t, http.StatusOK, small.Code)
	get(large, 100)
	assert.Equal(t, http.StatusTooManyRequests, large.Code)
	close(read)
	asking.Wait()
	large = httptest.NewRecorder()
	get(large, 100)
	assert.Equal(t, http.StatusOK, large.Code)
}

// slowWriter reports the status of an answer, which its client reads when read is closed.
type slowWriter struct {
	http.ResponseWriter
	read  <-chan struct{}
	begun chan<- int
}

func (s slowWriter) WriteHeader(status int) { s.begun <- status; <-s.read }

// The header If names many files. Each of them costs as much as a request, and counts as one.
func TestEachFileOfAnIfHeaderCounts(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Rate, c.Burst = 0.001, 20 })
	header := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("</dav/f%d> (<urn:x>) ", i)
		}
		return text
	}
	eve := s.as(t, "").with("Authorization", "Bearer eve")
	eve.with("If", header(10)).status(http.StatusPreconditionFailed, "GET /dav/r")
	eve.with("If", header(15)).status(http.StatusTooManyRequests, "GET /dav/r")
}

// A request for one of many slots of many places counts as several requests, because the store may have to read the holders of all of them.
func TestManySlotsCountAsManyRequests(t *testing.T) {
	t.Parallel()
	paths := make([][]string, 16)
	for i := range paths {
		paths[i] = []string{"p", strconv.Itoa(i)}
	}
	for slots, passes := range map[int]int{2: 20, 100: 5} {
		s := start(t, func(c *server.Config) { c.Rate, c.Burst = 0.001, 100 })
		passed := 0
		for range 20 {
			if s.as(t, "eve").do("POST", "/api/locks", map[string]any{"paths": paths, "slots": slots}).status != http.StatusTooManyRequests {
				passed++
			}
		}
		assert.Equal(t, passes, passed, slots)
	}
}
