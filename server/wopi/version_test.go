package wopi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// editor is a web editor, which saves between two steps of a request.
type editor struct {
	t      *testing.T
	h      *Handler
	behind *behind
}

// behind is a server whose view of the store shows no change from the time that it lags until it has sent 100 transactions.
type behind struct {
	lags atomic.Bool
	txns atomic.Int64
	seen chan struct{}
}

func (b *behind) request(request string) {
	switch {
	case !b.lags.Load():
	case request == "watch":
		<-b.seen
	case request == "txn" && b.txns.Add(1) == 100:
		close(b.seen)
	}
}

// leaving is the key of a context whose request ends when it reads from the store.
type leaving struct{}

func newEditor(t *testing.T) editor {
	m := memory.New()
	t.Cleanup(m.Close)
	b := &behind{seen: make(chan struct{})}
	store := m.Client(func(ctx context.Context, request string) (before, after error) {
		b.request(request)
		if leave, ok := ctx.Value(leaving{}).(context.CancelFunc); ok && request == "range" {
			leave()
		}
		return nil, nil
	})
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	api, err := httpapi.New(httpapi.Config{Locks: table, Contents: content.New(content.Config{KV: store, Locks: table, Blobs: files}),
		WriteLimit: time.Minute, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return editor{t, New(Config{API: api, Locks: table, Contents: api.Contents, LockTTL: time.Minute}), b}
}

// save saves the document under a lock, releases the lock and returns the version of the file.
func (e editor) save(text string) string {
	e.t.Helper()
	by := locks.Holder{ID: "ann", Name: "Ann"}
	lease, err := e.h.Locks.Acquire(e.t.Context(), locks.Request{Paths: []locks.Path{locks.Document("a")}, Holder: by, TTL: time.Minute})
	require.NoError(e.t, err)
	info, err := e.h.Contents.Write(e.t.Context(), "a", content.Writer{Holder: "ann", Maker: "ann"}, lease.Token, content.Save{}, nil, []byte(text))
	require.NoError(e.t, err)
	require.NoError(e.t, e.h.Locks.Release(e.t.Context(), lease.ID, "ann"))
	return info.Generation
}

// found returns a request that has found the document, and has not been carried out yet.
func (e editor) found(method string) (*call, *httptest.ResponseRecorder) {
	e.t.Helper()
	w := httptest.NewRecorder()
	c := &call{w: w, r: httptest.NewRequestWithContext(e.t.Context(), method, "/wopi/files/a", nil), session: sessions.Session{HolderID: "suite"}, id: "a"}
	require.NoError(e.t, e.h.find(c))
	return c, w
}

// A web editor saves and releases its lock just before the suite gets it. The suite sees by the version that the file which it has loaded is no
// longer the present one; otherwise its next save would replace that of the editor.
func TestALockTellsTheVersionThatItProtects(t *testing.T) {
	e := newEditor(t)
	e.save("first")
	c, w := e.found(http.MethodPost)
	second := e.save("second")
	require.NoError(t, e.h.lock(c, "id"))
	assert.Equal(t, second, w.Header().Get(versionHeader))
}

// A save between the two reads of a GetFile: the version is that of the bytes.
func TestTheVersionOfAFileIsThatOfItsBytes(t *testing.T) {
	e := newEditor(t)
	e.save("first")
	c, w := e.found(http.MethodGet)
	second := e.save("second, which is longer")
	require.NoError(t, e.h.getFile(c))
	text, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	assert.Equal(t, "second, which is longer", string(text))
	assert.Equal(t, second, w.Header().Get(versionHeader))

	c, w = e.found(http.MethodGet)
	c.r.Header.Set("X-WOPI-MaxExpectedSize", "100")
	e.save(strings.Repeat("x", 101))
	require.ErrorIs(t, e.h.getFile(c), errTooLarge)
	assert.Empty(t, w.Body.String())
}

// The file is deleted just before the suite locks it. The suite gets no lock that nobody knows.
func TestNoLockOnAFileThatHasGone(t *testing.T) {
	e := newEditor(t)
	e.save("text")
	c, _ := e.found(http.MethodPost)
	require.NoError(t, e.h.Contents.Erase(t.Context(), "a", nil))
	require.ErrorIs(t, e.h.lock(c, "id"), errNoFile)
	lease, _, err := e.h.Locks.At(t.Context(), locks.Document("a"))
	require.NoError(t, err)
	assert.Zero(t, lease.Token)
}

// The suite replaces its lock, and its connection breaks before the answer. Its users edit the file, so the new lock stays: otherwise somebody else
// could get the file, and the suite could not save any more.
func TestALockThatReplacedOneStaysWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, replaceWithoutAnAnswer)
}

func replaceWithoutAnAnswer(t *testing.T) {
	e := newEditor(t)
	e.save("text")
	c, _ := e.found(http.MethodPost)
	require.NoError(t, e.h.lock(c, "old"))
	c, _ = e.found(http.MethodPost)
	c.r.Header.Set("X-WOPI-OldLock", "old")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	c.r = c.r.WithContext(context.WithValue(ctx, leaving{}, leave))
	require.ErrorIs(t, e.h.lock(c, "new"), context.Canceled)
	c, w := e.found(http.MethodPost)
	require.NoError(t, e.h.getLock(c))
	assert.Equal(t, "new", w.Header().Get(lockName))
}

// This server does not see yet that a web editor has released its lock, and another one waits for it. The suite gets an answer at once. The server does
// not ask the store again and again.
func TestALockOnAServerThatLagsIsAnswered(t *testing.T) {
	synctest.Test(t, lockBehind)
}

func lockBehind(t *testing.T) {
	e := newEditor(t)
	e.save("text")
	r := locks.Request{Paths: []locks.Path{locks.Document("a")}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour}
	held, err := e.h.Locks.Acquire(t.Context(), r)
	require.NoError(t, err)
	waiter := make(chan error, 1)
	r.Holder.ID, r.Wait = "bob", time.Hour
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, err := e.h.Locks.Acquire(ctx, r)
		waiter <- err
	}()
	synctest.Wait()
	e.behind.lags.Store(true)
	require.NoError(t, e.h.Locks.Release(t.Context(), held.ID, "ann"))
	c, _ := e.found(http.MethodPost)
	err = e.h.lock(c, "id")
	assert.Less(t, e.behind.txns.Load(), int64(20))
	require.ErrorContains(t, err, "not locked with this id")
	e.behind.lags.Store(false)
	if e.behind.txns.Load() < 100 {
		close(e.behind.seen)
	}
	leave()
	if err := <-waiter; err != nil { // otherwise it got the lock before
		require.ErrorIs(t, err, context.Canceled)
	}
}
