package server_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// saveAs saves as a numbered snapshot of a draft.
func (c client) saveAs(document string, token int64, save, data string) answer {
	c.t.Helper()
	return c.with(remote.HeaderSave, save).save(document, token, data)
}

// A request that the client gave up may reach the server after a later one that the server has acknowledged.
func TestStalledSaveOverwritesNoLaterOne(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	require.Equal(t, http.StatusOK, ann.saveAs("r", token, "draft-1/7", "seven").status)
	stalled := ann.saveAs("r", token, "draft-1/6", "six")
	assertError(t, stalled, http.StatusConflict, "stale_save")
	now := ann.do("GET", contentOf("r"), nil)
	assert.Equal(t, "seven", string(now.text))
	assert.Equal(t, "draft-1/7", now.header.Get(remote.HeaderSave))

	// A draft counts for itself, and a token too.
	require.Equal(t, http.StatusOK, ann.saveAs("r", token, "draft-2/1", "another text").status)
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	token = ann.lock("r")
	require.Equal(t, http.StatusOK, ann.saveAs("r", token, "draft-2/0", "under a new token").status)

	// A client without the header saves as before, and its content names no draft.
	require.Equal(t, http.StatusOK, ann.save("r", token, "plain").status)
	now = ann.do("GET", contentOf("r"), nil)
	assert.Equal(t, "plain", string(now.text))
	assert.Empty(t, now.header.Get(remote.HeaderSave))
}

// A client repeats a save whose answer it has lost.
func TestRepeatedSaveChangesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	saved := ann.saveAs("r", token, "d/7", "seven")
	require.Equal(t, http.StatusOK, saved.status, string(saved.text))
	events := s.events(t, "r", "?after=0")
	again := ann.saveAs("r", token, "d/7", "seven")
	require.Equal(t, http.StatusOK, again.status, string(again.text))
	assert.Equal(t, saved.body, again.body)
	assertError(t, ann.saveAs("r", token, "d/7", "other"), http.StatusConflict, "stale_save")
	require.Equal(t, http.StatusOK, ann.saveAs("r", token, "d/8", "eight").status)
	updates := 0
	for e := events.next(); ; e = events.next() {
		if e["type"] == remote.NoticeUpdated {
			updates++
			if e["etag"] != saved.body["etag"] {
				break
			}
		}
	}
	assert.Equal(t, 2, updates, "the repeated save is no event")
}

// The order holds between drafts too: a page that has replaced its text does not get the old one back from a stalled save.
func TestSavesOfOneTokenKeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	save := func(order int, name, data string) answer {
		return ann.with(remote.HeaderOrder, strconv.Itoa(order)).saveAs("r", token, name, data)
	}
	require.Equal(t, http.StatusOK, save(2, "new/1", "new").status)
	assertError(t, save(1, "old/900", "old"), http.StatusConflict, "stale_save")
	require.Equal(t, http.StatusOK, save(2, "new/1", "new").status, "the same request twice")
	require.Equal(t, http.StatusOK, ann.save("r", token, "by a client that counts nothing").status)
	assertError(t, save(1, "old/900", "old"), http.StatusConflict, "stale_save")
	require.Equal(t, http.StatusOK, save(3, "new/2", "newer").status)

	// A repeated save is the last one sent: a stalled one that was sent before it is refused.
	require.Equal(t, http.StatusOK, save(5, "new/2", "newer").status)
	assertError(t, save(4, "old/900", "old"), http.StatusConflict, "stale_save")
	assert.Equal(t, "newer", string(ann.do("GET", contentOf("r"), nil).text))
}

func TestMalformedSaveHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	for _, bad := range []string{"x", "/1", "d/", "d/-1", "d/x", "a b/1", "d/1/2"} {
		assertError(t, ann.saveAs("r", token, bad, "x"), http.StatusBadRequest, "invalid_request")
	}
	for _, bad := range []string{"0", "-1", "x"} {
		assertError(t, ann.with(remote.HeaderOrder, bad).save("r", token, "x"), http.StatusBadRequest, "invalid_request")
	}
}

// A save that the client gave up arrives after the deletion of the document, under the same token. It does not bring the document
// back. A save that the client makes after the deletion counts.
func TestStalledSaveBringsNoDeletedDocumentBack(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ann := s.as(t, "ann")
	token := ann.lock("r")
	holder := ann.with(remote.HeaderToken, strconv.FormatInt(token, 10))
	ordered := func(order, save, data string) answer {
		return holder.with(remote.HeaderOrder, order).with(remote.HeaderSave, save).do("PUT", contentOf("r"), data)
	}
	remove := func(order string) answer {
		return holder.with(remote.HeaderOrder, order).do("DELETE", "/api/documents/r", nil)
	}
	require.Equal(t, http.StatusOK, ordered("1", "d/1", "one").status)
	require.Equal(t, http.StatusOK, ordered("2", "d/2", "two").status)
	assertError(t, remove("1"), http.StatusConflict, "stale_save") // it was sent before the second save
	require.Equal(t, http.StatusOK, remove("4").status)
	for order, save := range map[string]string{"2": "d/2", "3": "d/3", "4": "e/1"} {
		assertError(t, ordered(order, save, "late"), http.StatusConflict, "stale_save")
	}
	assertError(t, ann.saveAs("r", token, "d/2", "two"), http.StatusConflict, "stale_save")
	require.Equal(t, http.StatusOK, holder.do("DELETE", "/api/documents/r", nil).status, "a repeated deletion forgets no order")
	assertError(t, ordered("3", "d/3", "late"), http.StatusConflict, "stale_save")
	assert.Equal(t, http.StatusNotFound, ann.do("GET", contentOf("r"), nil).status)
	require.Equal(t, http.StatusOK, ordered("5", "f/1", "again").status)
	assertError(t, ordered("3", "d/3", "late"), http.StatusConflict, "stale_save")
	require.Equal(t, http.StatusOK, remove("6").status)
	require.Equal(t, http.StatusOK, ann.do("DELETE", lockOf("r"), nil).status)
	for _, prefix := range []string{"content/r", "deleted/"} {
		left, err := s.Store().Keys(t.Context(), prefix)
		require.NoError(t, err)
		assert.Empty(t, left, "the end of the lock removes what it remembers")
	}
}
