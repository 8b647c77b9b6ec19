package remote_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// Each answer of the server to a save has a code of its own. Only an ended lock makes the page step back.
func TestAnswersToASave(t *testing.T) {
	for name, c := range map[string]struct {
		reply remote.Reply
		code  error
		says  string
	}{
		"no room":      {remote.Reply{Status: 507, Error: "storage_full"}, autosave.ErrQuota, "no space"},
		"too large":    {remote.Reply{Status: 413, Error: "content_too_large"}, autosave.ErrQuota, "larger"},
		"a later save": {remote.Reply{Status: 409, Error: "stale_save"}, autosave.ErrWriteFailed, "later text"},
		"lock ended":   {remote.Reply{Status: 409, Error: "stale_token", Message: "It has ended."}, autosave.ErrStaleToken, "It has ended."},
		"wrong":        {remote.Reply{Status: 400, Error: "invalid_request", Message: "It is wrong."}, autosave.ErrWriteFailed, "It is wrong."},
		"busy":         {remote.Reply{Status: 503, Error: "unavailable"}, autosave.ErrWriteFailed, "not confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a, token := lockedMachine(t)
				n.refuseSaving = c.reply
				_, err := a.store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("text"), Token: token})
				require.ErrorIs(t, err, c.code)
				assert.ErrorContains(t, err, c.says)
				assert.Equal(t, errors.Is(c.code, autosave.ErrStaleToken), errors.Is(err, autosave.ErrStaleToken))
			})
		})
	}
}

// A generation that this machine does not keep may be on the server: without an answer, nobody knows that it is not.
func TestReadOfAnUnknownGenerationWhileOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		n.set(true)
		for _, id := range []string{"1-1", autosave.Current} {
			_, err := a.store.Read(context.Background(), id)
			require.ErrorIs(t, err, autosave.ErrReadFailed)
		}
	})
}

// A commit tells its size and its phases.
func TestCommitTellsItsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, token := lockedMachine(t)
		var size int64
		var phases []autosave.Phase
		_, err := a.store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("text"), Token: token,
			Sized: func(bytes int64) { size = bytes }, Progress: func(p autosave.Phase) { phases = append(phases, p) }})
		require.NoError(t, err)
		assert.Equal(t, int64(4), size)
		assert.Equal(t, []autosave.Phase{autosave.PhaseWriting, autosave.PhaseIndex, autosave.PhaseGC}, phases)
	})
}

// A draft that is kept as a generation stays on this machine. The server's content does not change.
func TestGenerationAsideStaysOnThisMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, token := lockedMachine(t)
		a.save(t, token, "content")
		aside := autosave.Commit{Content: autosave.Bytes("draft"), Token: token, SavedAt: time.Now(), Aside: true}
		g, err := a.store.Commit(context.Background(), aside)
		require.NoError(t, err)
		assert.False(t, g.Current)
		assert.Equal(t, "content", a.read(t, autosave.Current))
		assert.Equal(t, "draft", a.read(t, g.ID))
		aside.Limits.MaxGenerations = 1
		_, err = a.store.Commit(context.Background(), aside)
		require.ErrorIs(t, err, autosave.ErrQuota)
		a.store = remote.NewContents(a.document, nil, autosavetest.SHA256)
		_, err = a.store.Commit(context.Background(), aside)
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
	})
}

// A page that lists a content of another machine gets one id for it, whether its copy was just made or not.
func TestListedContentKeepsItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		token, release := a.lock(t)
		a.save(t, token, "text")
		release()
		_, release = b.lock(t)
		defer release()
		first := b.list(t)[0].ID
		assert.Equal(t, first, b.list(t)[0].ID)
	})
}

// The server was wiped: there is no current generation that could be named.
func TestPinOfAWipedContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		token, _ := a.lock(t)
		a.save(t, token, "text")
		n.wipe()
		_, err := a.store.Pin(context.Background(), token, autosave.Current, "x")
		require.ErrorIs(t, err, autosave.ErrNotFound)
	})
}

// Each document of a project has a content of its own on the server.
func TestContentsOfADocumentBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		below, err := a.store.At([]string{"chapter"})
		require.NoError(t, err)
		var paths []string
		n.delay = func(r remote.Request) bool { paths = append(paths, r.Path); return false }
		_, _ = below.List(context.Background())
		assert.Equal(t, []string{"/api/documents/project~.chapter/content"}, paths)
	})
}

// A lock on the server has a record on this machine too, under the local name and a token of its own.
func TestRecordsOnThisMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		records := &locktest.Records{}
		var claimed, renewed, removed []lock.Record
		records.OnClaim = func(r lock.Record) error { claimed = append(claimed, r); return nil }
		records.OnRenew = func(r lock.Record) error { renewed = append(renewed, r); return nil }
		records.OnRemove = func(r lock.Record) error { removed = append(removed, r); return nil }
		a := n.machineWith("A", autosavetest.NewDisk(), func(c *remote.Config) { c.Local.Records = records })
		token, release := a.lock(t)
		defer release()
		backend := a.document.Backend().Records
		for range 2 {
			require.NoError(t, backend.Renew(context.Background(), record(token)))
		}
		require.NoError(t, backend.Remove(context.Background(), record(token)))
		require.Len(t, claimed, 1)
		require.Len(t, renewed, 2)
		require.Len(t, removed, 1)
		assert.NotEqual(t, token, renewed[0].Token)
		assert.NotZero(t, renewed[0].Token)
		for _, r := range []lock.Record{claimed[0], renewed[0], removed[0]} {
			assert.Equal(t, "holdfast:project", r.Resource)
		}

		b := n.machine("B")
		found, ok, err := b.document.Read(context.Background(), "")
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, token, found.Token)
		n.set(true)
		_, _, err = b.document.Read(context.Background(), "")
		require.Error(t, err)
		n.set(false)
		n.expire()
		_, ok, err = b.document.Read(context.Background(), "")
		require.NoError(t, err)
		assert.False(t, ok)
	})
}
