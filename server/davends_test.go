package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv"
)

// A copy or move that cannot begin leaves the destination as it is, also where a collection would have to go first.
func TestARefusedTransferKeepsItsDestination(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	long := strings.Repeat("l", 100)
	deep := "/dav/" + strings.Repeat("x", 30)
	ann.status(http.StatusCreated, "PUT /dav/file text", "MKCOL /dav/c", "PUT /dav/c/"+long+" long", "MKCOL "+deep, "PUT "+deep+"/kept text")
	for _, method := range []string{"COPY", "MOVE"} {
		stale := ann.to(deep).with("If-Match", `"other"`).do(method, "/dav/file", nil)
		assert.Equal(t, http.StatusPreconditionFailed, stale.status, method)
		ann.status(http.StatusOK, "GET "+deep+"/kept", "GET /dav/file")
	}
	named := ann.to(deep).do("MOVE", "/dav/c", nil)
	assert.Equal(t, http.StatusMultiStatus, named.status)
	assert.Contains(t, string(named.text), long)
	ann.status(http.StatusOK, "GET "+deep+"/kept", "GET /dav/c/"+long)
}

// A copy counts towards the documents of the user. One that has no room for it leaves the destination as it is, and what it replaces
// makes room.
func TestACopyAtTheLimitOfDocuments(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxDocuments = 3 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ann.status(http.StatusCreated, "PUT /dav/file text", "MKCOL /dav/c", "PUT /dav/c/x text")
	bob.status(http.StatusCreated, "MKCOL /dav/d", "PUT /dav/d/kept text")
	ann.to("/dav/d").status(http.StatusInsufficientStorage, "COPY /dav/file", "COPY /dav/c")
	ann.status(http.StatusOK, "GET /dav/d/kept")
	ann.to("/dav/c").status(http.StatusNoContent, "COPY /dav/file")
	ann.status(http.StatusOK, "GET /dav/c")
	ann.to("/dav/d").status(http.StatusNoContent, "COPY /dav/file")
}

// A move makes nothing new, so it does not count: neither for a user with as many documents as one may have, nor for one that
// moves what others have made.
func TestAMoveAtTheLimitOfDocuments(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxDocuments = 3 })
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "MKCOL /dav/c/d", "PUT /dav/c/x text")
	ann.to("/dav/to").status(http.StatusCreated, "MOVE /dav/c")
	ann.with("Depth", "0").status(http.StatusNotFound, "PROPFIND /dav/c")
	ann.status(http.StatusInsufficientStorage, "PUT /dav/more no", "MKCOL /dav/more")
	bob.to("/dav/c").status(http.StatusCreated, "MOVE /dav/to")
	ann.status(http.StatusInsufficientStorage, "MKCOL /dav/more")
	bob.status(http.StatusCreated, "MKCOL /dav/1", "MKCOL /dav/2", "MKCOL /dav/3")
	bob.status(http.StatusNoContent, "DELETE /dav/c")
	ann.status(http.StatusCreated, "MKCOL /dav/1/1", "MKCOL /dav/1/2", "PUT /dav/1/3 text")
}

// A collection that nobody has made exists by its members alone. One can move and empty it at the limit, too.
func TestAMoveOfACollectionByItsMembersAtTheLimit(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config) { c.MaxDocuments = 1 })
	ann := s.as(t, "ann")
	token := ann.lock("c~.x")
	require.Equal(t, http.StatusOK, ann.save("c~.x", token, "text").status)
	ann.do("DELETE", lockOf("c~.x"), nil)
	ann.to("/dav/to").status(http.StatusCreated, "MOVE /dav/c")
	assert.Equal(t, []string{"text"}, ann.texts("to~.x"))
	ann.with("Depth", "0").status(http.StatusNotFound, "PROPFIND /dav/c")
	ann.status(http.StatusNoContent, "DELETE /dav/to/x")
	ann.with("Depth", "0").status(http.StatusMultiStatus, "PROPFIND /dav/to")
}

// After a move that was cut short, another collection has the name of the destination, or of the source. A move between them
// is a new one, which replaces.
func TestAMoveToAnotherCollectionOfTheSameNameReplaces(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"destination", "source"} {
		s := start(t, nil)
		ann := s.as(t, "ann")
		ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/1 text", "PUT /dav/c/2 text")
		damaged := kv.Put("dav/props/c~.2", []byte("damaged")) // so the move of this file fails
		_, err := s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{damaged}})
		require.NoError(t, err)
		ann.to("/dav/to").status(http.StatusMultiStatus, "MOVE /dav/c")
		_, err = s.Store().Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Delete(damaged.Key())}})
		require.NoError(t, err)
		if again == "destination" {
			ann.to("/dav/kept").status(http.StatusCreated, "MOVE /dav/to")
			ann.status(http.StatusCreated, "MKCOL /dav/to", "PUT /dav/to/other text")
		} else {
			ann.status(http.StatusNoContent, "DELETE /dav/c")
			ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/2 text", "PUT /dav/to/other text")
		}
		ann.to("/dav/to").status(http.StatusNoContent, "MOVE /dav/c")
		ann.status(http.StatusOK, "GET /dav/to/2")
		ann.status(http.StatusNotFound, "GET /dav/to/other")
		moves, err := s.Store().Count(t.Context(), "dav/moves/")
		require.NoError(t, err)
		assert.Zero(t, moves, again)
	}
}

// A program sets a property of a collection that exists by its members alone. The collection stays when the last of them goes
// without the program, and the property goes with the collection.
func TestTheCollectionOfAPropertyStays(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann, bob := s.as(t, "ann"), s.as(t, "bob")
	token := ann.lock("c~.x")
	require.Equal(t, http.StatusOK, ann.save("c~.x", token, "text").status)
	bob.status(http.StatusMultiStatus, "PROPPATCH /dav/c/ "+setProperty)
	require.Equal(t, http.StatusOK, ann.with(remote.HeaderToken, strconv.FormatInt(token, 10)).do("DELETE", "/api/documents/c~.x", nil).status)
	assert.Contains(t, string(bob.with("Depth", "0").do("PROPFIND", "/dav/c/", nil).text), "blue")
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("c~.x"), nil).status)
	bob.status(http.StatusNoContent, "DELETE /dav/c/")
	left, err := s.Store().Keys(t.Context(), "dav/")
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Some programs send the body of MKCOL in chunks even if there is none.
func TestMKCOLWithAnEmptyBodyInChunks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	for body, status := range map[string]int{"": http.StatusCreated, "text": http.StatusUnsupportedMediaType} {
		request, err := http.NewRequestWithContext(t.Context(), "MKCOL", ann.base+"/dav/c"+body, strings.NewReader(body))
		require.NoError(t, err)
		request.ContentLength, request.TransferEncoding = -1, []string{"chunked"}
		request.Header.Set("Authorization", "Bearer "+ann.secret)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, status, response.StatusCode, "body %q", body)
	}
}

// A program that states the content that it has seen does not change a collection that has this name now: not one member goes.
func TestAnEntityTagDoesNotHoldForACollection(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "MKCOL /dav/c", "PUT /dav/c/a text")
	stale := ann.with("If-Match", `"seen"`)
	stale.status(http.StatusPreconditionFailed, "DELETE /dav/c", "PROPPATCH /dav/c "+setProperty)
	stale.to("/dav/to").status(http.StatusPreconditionFailed, "MOVE /dav/c", "COPY /dav/c")
	ann.with("If-None-Match", "*").status(http.StatusPreconditionFailed, "DELETE /dav/c")
	ann.status(http.StatusOK, "GET /dav/c/a")
	ann.with("Depth", "0").status(http.StatusNotFound, "PROPFIND /dav/to")

	ann.with("If", `(Not ["seen"])`).status(http.StatusMultiStatus, "PROPPATCH /dav/c "+setProperty)
	ann.with("If-Match", "*").to("/dav/to").status(http.StatusCreated, "MOVE /dav/c")
	ann.with("If-Match", "*").status(http.StatusNoContent, "DELETE /dav/to")
}

// The conditions of a request hold for PROPPATCH and LOCK too. A LOCK that they refuse leaves no lock and no file.
func TestPropertiesAndLocksUnderConditions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/f text")
	exclusive := fmt.Sprintf(lockInfo, "exclusive")
	stale := ann.with("If-Match", `"seen"`)
	stale.status(http.StatusPreconditionFailed, "PROPPATCH /dav/f "+setProperty, "LOCK /dav/f "+exclusive, "LOCK /dav/new "+exclusive)
	ann.with("If-None-Match", "*").status(http.StatusPreconditionFailed, "LOCK /dav/f "+exclusive)
	ann.status(http.StatusNotFound, "GET /dav/new")
	assert.NotContains(t, string(ann.with("Depth", "0").do("PROPFIND", "/dav/f", nil).text), "color")
	ann.status(http.StatusNoContent, "PUT /dav/f free")
	ann.with("If-Match", ann.do("GET", "/dav/f", nil).header.Get("ETag")).status(http.StatusOK, "LOCK /dav/f "+exclusive)
}

// Programs add a condition that always holds, which names no lock (RFC 4918, section 10.4.8).
func TestALockIsExtendedUnderAConditionThatNamesNone(t *testing.T) {
	t.Parallel()
	ann := start(t, nil).as(t, "ann")
	token := ann.davLock("/dav/r", "exclusive", "0")
	ann.with("If", "(<"+token+">) (Not <DAV:no-lock>)").status(http.StatusOK, "LOCK /dav/r")
	ann.with("If", "(Not <DAV:no-lock>)").status(http.StatusBadRequest, "LOCK /dav/r")
}

// Requests for what this server does not do are mistakes of clients. They are no errors in the operator's log.
func TestMistakesOfClientsAreNotLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := start(t, func(c *server.Config) { c.Log, c.MaxDocuments = slog.New(slog.NewTextHandler(&log, nil)), 1 })
	ann := s.as(t, "ann")
	ann.status(http.StatusCreated, "PUT /dav/a text")
	ann.status(http.StatusInsufficientStorage, "PUT /dav/b text", "MKCOL /dav/c")
	ann.with("Destination", "http://elsewhere.example.com/dav/b").status(http.StatusBadGateway, "COPY /dav/a")
	ann.with("X-WOPI-Override", "PUT_RELATIVE").status(http.StatusNotImplemented, "POST /wopi/files/a")
	s.Stop(t)
	assert.NotContains(t, log.String(), "level=ERROR")
}
