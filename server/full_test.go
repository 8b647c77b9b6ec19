package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// locksGoOn checks that a lock is granted, extended and released.
func locksGoOn(c client) {
	c.t.Helper()
	c.lock("goes-on")
	assert.Equal(c.t, http.StatusOK, c.do("PUT", lockOf("goes-on"), nil).status)
	assert.Equal(c.t, http.StatusOK, c.do("DELETE", lockOf("goes-on"), nil).status)
}

// fill fills a store with a quota of 64 MiB beyond 95 percent, far below the space that only locks may use.
func fill(t *testing.T, s *instance) {
	t.Helper()
	fillBy(t, s, 62)
	require.Eventually(t, func() bool { return s.Store().Space().Full }, 30*time.Second, 10*time.Millisecond)
}

// fillBy stores so many megabytes. The values are small, because the store copies the last two of a page as it adds the next one, which
// could exceed the quota.
func fillBy(t *testing.T, s *instance, megabytes int) {
	t.Helper()
	value := bytes.Repeat([]byte("x"), 64<<10)
	for i := range megabytes {
		var puts []kv.Op
		for j := range 16 {
			puts = append(puts, kv.Put(fmt.Sprint("big/", i, "/", j), value))
		}
		_, err := s.Store().Commit(t.Context(), kv.Txn{Then: puts})
		require.NoError(t, err)
	}
}

// The log, the metrics and /readyz warn before the store is full, while everything still works.
func TestAStoreThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := start(t, func(c *server.Config) { c.Quota, c.Log = 64<<20, slog.New(slog.NewTextHandler(&log, nil)) })
	ann := s.as(t, "ann")
	assert.Equal(t, "ready\n", string(ann.do("GET", "/readyz", nil).text))
	fillBy(t, s, 55)
	require.Eventually(t, func() bool { return s.Store().Space().Warn }, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, http.StatusOK, ann.save("r", ann.lock("r"), "saved").status)
	ready := ann.do("GET", "/readyz", nil)
	assert.Equal(t, http.StatusOK, ready.status)
	assert.Contains(t, string(ready.text), "the store is nearly full")
	metrics := string(ann.do("GET", "/metrics", nil).text)
	assert.Contains(t, metrics, "holdfast_store_nearly_full 1")
	assert.Contains(t, metrics, "holdfast_store_full 0")
	s.Stop(t)
	assert.Contains(t, log.String(), `msg="the store is nearly full"`)
}

// In a full store, nobody makes a room or enters one as a new participant: the remaining space is for locks. Those who are in a room come back
// after a reload, and answer.
func TestRoomsInAFullStore(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Quota, c.Ping = 64<<20, time.Hour }) // nobody answers a ping while the store fills
	people, cleo := meet(t, s), visit(t, s, newJar(t))
	fill(t, s)
	for _, message := range []object{
		{"type": "createRoom", "userName": "Cleo"},
		{"type": "enterTheRoom", "userName": "Cleo", "roomId": people.room},
		{"type": "enterTheRoom", "userName": "Cleo", "roomId": "another", "create": true},
	} {
		cleo.send(message)
		assert.Equal(t, "store_full", cleo.next("error")["error"])
	}
	people.comeBack(t, s, s)
	people.open(t)
	locksGoOn(s.as(t, "ann"))
}

// The store reaches its quota: saves are refused and locks go on, until there is room.
func TestAStoreAtItsQuota(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.Quota = 64 << 20 })
	ann := s.as(t, "ann")
	token := ann.lock("r")
	require.Equal(t, http.StatusOK, ann.save("r", token, "before").status)
	fill(t, s)
	refused := ann.save("r", token, "after")
	assertError(t, refused, http.StatusInsufficientStorage, "store_full")
	assert.Contains(t, string(refused.text), "Nothing was written")
	assert.Equal(t, "before", string(ann.do("GET", contentOf("r"), nil).text))
	locksGoOn(ann)
	assert.Equal(t, http.StatusOK, ann.do("PUT", lockOf("r"), nil).status)
	ready := ann.do("GET", "/readyz", nil)
	assert.Equal(t, http.StatusOK, ready.status)
	assert.Contains(t, string(ready.text), "the store is full")
	assert.Contains(t, string(ann.do("GET", "/metrics", nil).text), "holdfast_store_full 1")

	_, err := s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.DeleteUnder("big/")}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ann.save("r", token, "after").status == http.StatusOK }, 30*time.Second, 100*time.Millisecond)
}

// smallDisk mounts a file system that has room for about 50 MiB of contents.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	return kvtest.Disk(t, "size=360m")
}

// A desktop program copies a collection over another one, and the disk has no space for the copy. The destination stays as it is.
func TestACopyWithoutSpaceKeepsItsDestination(t *testing.T) {
	dir := smallDisk(t)
	s := start(t, func(c *server.Config) { c.DataDir = dir + "/d" })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "MKCOL /dav/old", "PUT /dav/old/kept text")
	for i := range 4 {
		a := ann.do("PUT", fmt.Sprint("/dav/c/", i), strings.Repeat("x", 8<<20))
		require.Equal(t, http.StatusCreated, a.status, "%s", a.text)
	}
	assertError(t, ann.to("/dav/old").do("COPY", "/dav/c", nil), http.StatusInsufficientStorage, "store_full")
	assert.Equal(t, "text", string(ann.do("GET", "/dav/old/kept", nil).text))
	ann.status(http.StatusNoContent, "DELETE /dav/c/1", "DELETE /dav/c/2", "DELETE /dav/c/3")
	ann.to("/dav/old").status(http.StatusNoContent, "COPY /dav/c")
	assert.Equal(t, http.StatusNotFound, ann.do("GET", "/dav/old/kept", nil).status)
}

// The contents are on another disk, which has space. Their copy does not need it on the disk of the store.
func TestACopyOnAnotherDiskNeedsNoSpaceInTheStore(t *testing.T) {
	dir := smallDisk(t)
	s := start(t, func(c *server.Config) { c.DataDir, c.Blobs = dir+"/d", t.TempDir() })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "MKCOL /dav/old")
	for i := range 8 {
		ann.status(http.StatusCreated, fmt.Sprintf("PUT /dav/c/%d %s", i, strings.Repeat("x", 8<<20)))
	}
	ann.to("/dav/old").status(http.StatusNoContent, "COPY /dav/c")
	ann.status(http.StatusOK, "GET /dav/old/7")
}

// The disk gets full: saves are refused before the process is in danger, locks go on, and nothing acknowledged is lost.
func TestAFullDisk(t *testing.T) {
	dir := smallDisk(t)
	c := server.DefaultConfig()
	c.DataDir, c.Keep, c.Sweep = dir+"/d", 1, 100*time.Millisecond
	c.LockTTL = 10 * time.Minute // no heartbeats are sent here, however long this disk takes to get full
	s := startWith(t, c)
	require.Never(t, func() bool { return s.Store().Space().Full }, 1500*time.Millisecond, 100*time.Millisecond,
		"the space that the server reserves does not count as missing")
	ann := s.as(t, "ann")
	tokens, full := saveUntilFull(t, s, ann)
	require.NotEmpty(t, tokens)
	locksGoOn(ann)

	// Somebody else takes the rest.
	rest, err := os.Create(dir + "/rest")
	require.NoError(t, err)
	for err == nil {
		_, err = rest.Write(make([]byte, 1<<20))
	}
	require.NoError(t, rest.Close())
	locksGoOn(ann)
	for document := range tokens {
		if document != full {
			assert.Len(t, ann.do("GET", contentOf(document), nil).text, 8<<20)
		}
	}
	require.NoError(t, os.Remove(dir+"/rest"))
	for document, token := range tokens {
		if document != full {
			require.Equal(t, http.StatusOK,
				ann.with(remote.HeaderToken, strconv.FormatInt(token, 10)).do("DELETE", "/api/documents/"+document, nil).status)
		}
	}
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		a := ann.save(full, tokens[full], "room")
		assert.Equal(t, http.StatusOK, a.status, "%s", a.text)
	}, 30*time.Second, 100*time.Millisecond)
}

// saveUntilFull saves documents until one is refused. It returns the tokens of all, and the refused document. The server measures the
// disk once a second, so after some documents the next one waits until the server has measured them.
func saveUntilFull(t *testing.T, s *instance, ann client) (tokens map[string]int64, full string) {
	t.Helper()
	const size, unmeasured = 8 << 20, 4
	tokens = map[string]int64{}
	free := s.Store().Space().Free
	for i := 0; full == ""; i++ {
		require.Less(t, i, 60)
		document := fmt.Sprint("r", i)
		token := ann.lock(document)
		a := ann.save(document, token, strings.Repeat(strconv.Itoa(i%10), size))
		if a.status != http.StatusOK {
			assertError(t, a, http.StatusInsufficientStorage, "store_full")
			full = document
		}
		tokens[document] = token
		if free -= size; i%unmeasured == 0 {
			require.Eventually(t, func() bool { now := s.Store().Space(); return now.Full || now.Free <= free }, 30*time.Second, 10*time.Millisecond)
		}
	}
	return tokens, full
}

// Locks alone fill the store. Then nobody gets a new one or asks for one, because a question takes space, too. Those that exist go on: they are renewed, released and saved under, also by a
// server that starts again.
func TestAStoreFullOfLocks(t *testing.T) {
	t.Parallel()
	c := servertest.Unlimited(t)
	c.Quota, c.MaxLocks = 16<<20, 0
	s := startWith(t, c)
	ann := s.as(t, "ann")
	ann.lock("r")
	full := func() bool {
		var paths []string
		for i := range 16 {
			paths = append(paths, fmt.Sprintf(`["%032d", "%0128d"]`, time.Now().UnixNano(), i))
		}
		a := ann.do("POST", "/api/locks", fmt.Sprintf(`{"paths": [%s]}`, strings.Join(paths, ",")))
		if a.status == http.StatusOK {
			return false
		}
		assertError(t, a, http.StatusInsufficientStorage, "store_full")
		return true
	}
	for !full() {
	}
	assert.Equal(t, http.StatusOK, ann.do("PUT", lockOf("r"), nil).status)
	assert.Equal(t, http.StatusOK, ann.do("POST", lockOf("r"), nil).status, "the holder's own request extends its lock")
	assertError(t, s.as(t, "bob").do("POST", lockOf("r")+"/ask", nil), http.StatusInsufficientStorage, "store_full")
	assertNothingAsked(t, s)
	s.Stop(t)
	again := startWith(t, c).as(t, "ann")
	assert.Equal(t, http.StatusOK, again.do("PUT", lockOf("r"), nil).status)
	assert.Equal(t, http.StatusOK, again.do("DELETE", lockOf("r"), nil).status)
}
