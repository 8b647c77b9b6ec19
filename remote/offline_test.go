package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// The state of a page says whether the server answers, soon after a change.
func TestStateSaysWhetherTheServerAnswers(t *testing.T) {
	for name, cut := range map[string]func(n *internet, off bool){
		"refused": (*internet).set,
		"silent":  (*internet).silence,
		"proxied": func(n *internet, off bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.refuse = remote.Reply{}
			if off {
				n.refuse = remote.Reply{Status: 502}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				a := n.writer(t, "A")
				b := n.writer(t, "B")
				for _, w := range []*writer{a, b} {
					assert.Equal(t, autosave.StorageServer, w.State().Storage)
					assert.True(t, w.State().Online)
				}
				cut(n, true)
				sleep(40 * time.Second) // a viewer waits that long for an answer
				for _, w := range []*writer{a, b} {
					assert.False(t, w.State().Online)
					assert.False(t, w.told().Online, "an event said so")
				}
				cut(n, false)
				sleep(40 * time.Second) // a viewer waits that long for an answer
				for _, w := range []*writer{a, b} {
					assert.True(t, w.State().Online)
					assert.True(t, w.told().Online)
				}
			})
		})
	}
}

// A page that is opened while the server cannot be reached shows the content that this machine knows, read-only,
// whoever saved it.
func TestPageOpenedOfflineShowsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		b := n.writer(t, "B")
		b.type_("by B")
		sleep(time.Second)
		require.NoError(t, b.Dispose(context.Background()))
		disk := autosavetest.NewDisk()
		first := n.machineWith("A", disk).writer(t, "A")
		require.Equal(t, "by B", first.now())
		require.NoError(t, first.Dispose(context.Background()))

		n.set(true)
		second := n.machineWith("A", disk).writer(t, "A")
		assert.Equal(t, "by B", second.now())
		events := second.events()
		require.Equal(t, []autosave.EventType{autosave.EventPreview, autosave.EventReadonly}, events)
		assert.True(t, second.State().ReadOnly)
		assert.False(t, second.State().Online)
		assert.ErrorIs(t, second.State().LastErr, lock.ErrTimeout)
		empty := n.machine("C").writer(t, "C")
		assert.Equal(t, []autosave.EventType{autosave.EventReadonly}, empty.events(), "a machine that knows nothing shows nothing")

		n.set(false)
		sleep(10 * time.Second)
		one := second
		if second.State().ReadOnly {
			one = empty
		}
		assert.False(t, one.State().ReadOnly, "it goes on by itself")
		assert.Equal(t, "by B", one.now())
	})
}

// Another machine has restored a text that this machine saved before its newest one. The preview shows what the page showed last.
func TestPreviewOfATextThatWasRestoredElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		token, release := a.lock(t)
		old := a.save(t, token, "old")
		a.save(t, token, "new")
		a.list(t)
		release()
		token, release = b.lock(t)
		b.save(t, token, "old")
		release()
		assert.Equal(t, old.ID, a.list(t)[0].ID, "a reader keeps no copy")
		_, release = a.lock(t)
		defer release()
		listed := a.list(t)
		assert.Len(t, listed, 3)
		assert.Equal(t, listed, a.list(t))
		g, content, err := a.store.Preview(context.Background())
		require.NoError(t, err)
		assert.Equal(t, "old", string(content))
		assert.Equal(t, listed[0].ID, g.ID)
	})
}

// A page with its own unsaved text keeps it when it wakes offline.
func TestPageThatHasTextGetsNoPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		m := n.journalling("A")
		token, release := m.lock(t)
		m.save(t, token, "old")
		release()
		n.wipe()
		w := m.writer(t, "A")
		require.Empty(t, w.now())
		n.set(true)
		w.type_("mine")
		_ = w.Suspend(context.Background())
		sleep(time.Second)
		require.NoError(t, w.Resume(context.Background()))
		sleep(10 * time.Second)
		assert.True(t, w.State().ReadOnly)
		assert.NotContains(t, w.events(), autosave.EventPreview)
		assert.Equal(t, "mine", w.now())
	})
}

// An editor keeps a copy of the content that it loads: as the base of a conflict, and for times without a server.
func TestEditorKeepsACopyOfWhatItLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		token, release := b.lock(t)
		b.save(t, token, "theirs")
		release()
		assert.Len(t, a.list(t), 1)
		assert.Empty(t, a.disk.Paths(), "one that only looks writes nothing")
		token, release = a.lock(t)
		base := a.list(t)[0]
		assert.Equal(t, token-1, base.Token, "the server's")
		a.save(t, token, "ours")
		release()
		assert.Equal(t, "theirs", a.read(t, base.ID))
	})
}

// Copies of different servers are stored separately.
func TestFoldersOfDifferentServers(t *testing.T) {
	long := "https://a/" + string(make([]byte, 300))
	seen := make(map[string]string)
	for _, url := range []string{"https://a", "http://a", "https://a:444", "https://a/b", "https://a/c", "http://a:443", "https://a-b", "https://a.b", long, long + "x", "https://http//a"} {
		folder := remote.NewDocument(remote.Config{URL: url}).Folder()
		assert.NotContains(t, seen, folder, url)
		seen[folder] = url
	}
	assert.Equal(t, "server-locks.example~3A8443~2Fx", remote.NewDocument(remote.Config{URL: "https://locks.example:8443/x"}).Folder())
}
