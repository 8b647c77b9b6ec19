package remote_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/remote"
)

// journalling is a machine that keeps drafts.
func (n *internet) journalling(session string) machine {
	m := n.machine(session)
	m.storage = autosavetest.NewDraftStorage()
	return m
}

// A save succeeds and its answer is lost; then the lease expires and is regained. The page recognises its own text.
func TestOwnTextIsKnownAfterALostAnswer(t *testing.T) {
	for name, more := range map[string]string{"nothing typed since": "", "typed on": " and more"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				w := n.journalling("A").saved(t, "A", "one")
				n.answer = func(r remote.Request) error { n.set(true); return errOffline }
				w.type_(", two")
				sleep(time.Second)
				require.Equal(t, "one, two", string(n.content), "the save has reached the server")
				n.answer = nil
				w.type_(more)
				sleep(time.Minute)
				require.True(t, w.State().ReadOnly)
				n.set(false)
				sleep(time.Minute)
				require.False(t, w.State().ReadOnly)
				assert.Equal(t, "one, two"+more, w.now())
				assert.Equal(t, "one, two"+more, string(n.content))
				assert.Empty(t, w.conflicts)
				assert.Zero(t, w.State().PendingBytes)
				left, err := w.Drafts(context.Background())
				require.NoError(t, err)
				assert.Empty(t, left)
			})
		})
	}
}

// A page that was disconnected continues if nobody else has saved.
func TestPageThatWasCutOffGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		w := n.journalling("A").saved(t, "A", "saved, ")
		n.set(true)
		w.type_("typed while cut off")
		sleep(40 * time.Second)
		require.True(t, w.State().ReadOnly)
		left, err := w.Drafts(context.Background())
		require.NoError(t, err)
		require.Len(t, left, 1)
		assert.Equal(t, autosave.CauseOffline, left[0].Cause)
		n.set(false)
		sleep(time.Minute)
		assert.False(t, w.State().ReadOnly)
		assert.Equal(t, "saved, typed while cut off", string(n.content))
		assert.Equal(t, "saved, typed while cut off", w.now())
		assert.Empty(t, w.conflicts)
	})
}

// If another page has saved meanwhile, there is a conflict, with the common base.
func TestPageThatWasCutOffHasAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		w := n.journalling("A").saved(t, "A", "base")
		n.set(true)
		w.type_(", mine")
		sleep(40 * time.Second)
		n.set(false)
		n.expire()
		other := n.writer(t, "B")
		sleep(time.Second)
		other.type_(", theirs")
		sleep(time.Second)
		require.NoError(t, other.Dispose(context.Background()))
		sleep(time.Minute)
		require.False(t, w.State().ReadOnly)
		if assert.Len(t, w.conflicts, 1) {
			c := w.conflicts[0]
			assert.Equal(t, []string{"base", "base, mine", "base, theirs"}, []string{string(c.Base), string(c.Mine), string(c.Theirs)})
		}
		assert.Equal(t, "base, theirs", string(n.content))
		assert.Equal(t, "base, theirs", w.now())
	})
}

// The server was wiped. An open page saves what it shows; a new one begins with an empty document and has the history of its machine.
func TestServerThatWasWiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		m := n.journalling("A")
		w := m.saved(t, "A", "kept")
		n.wipe()
		sleep(time.Minute)
		assert.False(t, w.State().ReadOnly)
		assert.Equal(t, "kept", w.now())
		assert.Equal(t, "kept", string(n.content), "the open page saves its text again")
		require.NoError(t, w.Dispose(context.Background()))

		n.wipe()
		next := n.machineWith("A", m.disk).writer(t, "A")
		sleep(time.Second)
		assert.Empty(t, next.now(), "perhaps it was deleted on purpose")
		assert.Zero(t, n.written)
		all, err := next.History(context.Background())
		require.NoError(t, err)
		require.NotEmpty(t, all)
		restored, err := next.Restore(context.Background(), all[0].ID)
		require.NoError(t, err)
		assert.Equal(t, "kept", string(restored))
		assert.Equal(t, "kept", string(n.content))
	})
}

// typesOnUnkept makes a page on a machine that cannot keep the content that it loads. The page types, and is cut off until it is read-only.
// Then the machine has room.
func (n *internet) typesOnUnkept(t *testing.T) (machine, *writer) {
	other := n.writer(t, "B")
	other.type_("theirs")
	sleep(time.Second)
	require.NoError(t, other.Dispose(context.Background()))
	m := n.journalling("A")
	m.disk.SetCapacity(1)
	w := m.writer(t, "A")
	sleep(time.Second)
	require.Equal(t, "theirs", w.now())
	n.set(true)
	w.type_(", mine")
	sleep(40 * time.Second)
	require.True(t, w.State().ReadOnly)
	m.disk.SetCapacity(1 << 20)
	return m, w
}

// A machine cannot keep the content that it loads. When the page comes back after it was cut off, the machine keeps a copy, under another
// ID. Nobody has saved, so the page goes on; a new page adopts the draft.
func TestDraftIsAdoptedThoughItsBaseWasCopiedLater(t *testing.T) {
	for name, dies := range map[string]bool{"the page comes back": false, "a new page comes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				m, w := n.typesOnUnkept(t)
				if dies {
					_ = w.Dispose(context.Background())
				}
				n.set(false)
				if dies {
					next := n.machineWith("A", m.disk)
					next.storage = m.storage
					w = next.writer(t, "next")
				}
				sleep(time.Minute)
				require.False(t, w.State().ReadOnly)
				assert.Empty(t, w.conflicts)
				assert.Equal(t, "theirs, mine", w.now())
				assert.Equal(t, "theirs, mine", string(n.content))
			})
		})
	}
}

// A machine cannot keep the content that it loads, on which a page types. The next page keeps a copy, under another ID, and saves. The
// conflict of the draft has that copy as its base.
func TestConflictHasTheBaseThatALaterPageCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		m, w := n.typesOnUnkept(t)
		_ = w.Dispose(context.Background())
		n.set(false)
		second := n.machineWith("A", m.disk).writer(t, "second") // it knows no drafts
		sleep(time.Second)
		second.type_(", two")
		sleep(time.Second)
		require.NoError(t, second.Dispose(context.Background()))
		next := n.machineWith("A", m.disk)
		next.storage = m.storage
		third := next.writer(t, "third")
		sleep(time.Minute)
		require.Len(t, third.conflicts, 1)
		c := third.conflicts[0]
		assert.Equal(t, []string{"theirs", "theirs, mine", "theirs, two"}, []string{string(c.Base), string(c.Mine), string(c.Theirs)})
	})
}

// A draft of a page that is gone becomes the content of the server, and the answer is lost. The page loads that content before it edits.
func TestAdoptionWhoseAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		m := n.journalling("A")
		gone := m.storage.Page()
		gone.Journal(autosave.Draft{ID: "gone", Number: 1, At: time.Now()}, []byte("typed"))
		gone.End()
		n.answer = func(r remote.Request) error {
			if !strings.HasSuffix(r.Path, "/content") || r.Method != "PUT" {
				return nil
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.answer = nil
			return errOffline
		}
		w := m.writer(t, "A")
		sleep(time.Minute)
		require.False(t, w.State().ReadOnly)
		assert.Equal(t, "typed", w.now())
		w.type_("!")
		sleep(time.Second)
		assert.Equal(t, "typed!", string(n.content))
		assert.Empty(t, m.storage.Texts())
	})
}
