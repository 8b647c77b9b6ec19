package remote_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/remote"
)

// A pin belongs to this machine.
func TestPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a, b := n.machine("A"), n.machine("B")
		token, release := a.lock(t)
		one := a.save(t, token, "one")
		two := a.save(t, token, "two")
		pinned, err := a.store.Pin(context.Background(), token, one.ID, "first")
		require.NoError(t, err)
		assert.Equal(t, "first", pinned.Name)
		assert.False(t, pinned.Current)
		now, err := a.store.Pin(context.Background(), token, autosave.Current, "now")
		require.NoError(t, err)
		assert.Equal(t, two.ID, now.ID)
		assert.True(t, now.Current)
		assert.Equal(t, token, now.Token, "the server's, not that of the history")
		for range 5 {
			_, err := a.store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("more"), Token: token, Limits: autosave.Limits{MaxGenerations: 1}})
			require.NoError(t, err)
		}
		all := a.list(t)
		require.Len(t, all, 3)
		assert.Equal(t, []string{"", "now", "first"}, []string{all[0].Name, all[1].Name, all[2].Name})
		assert.Equal(t, "one", a.read(t, one.ID))
		_, err = a.store.Pin(context.Background(), token, "1-1", "x")
		require.ErrorIs(t, err, autosave.ErrNotFound)
		release()

		token, release = b.lock(t)
		defer release()
		assert.Empty(t, b.list(t)[0].Name, "pins do not travel")
		mine, err := b.store.Pin(context.Background(), token, autosave.Current, "of the other machine")
		require.NoError(t, err, "the editor keeps what it has loaded")
		assert.True(t, mine.Current)
		assert.Equal(t, "of the other machine", b.list(t)[0].Name)
	})
}

func TestPinWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		m := n.machine("A")
		m.store = remote.NewContents(m.document, nil, autosavetest.SHA256)
		token, release := m.lock(t)
		defer release()
		m.save(t, token, "one")
		_, err := m.store.Pin(context.Background(), token, autosave.Current, "x")
		require.ErrorIs(t, err, lock.ErrUnsupported)
	})
}

// The storage of this machine refuses everything. The error names the generation that was to be pinned.
func TestPinThatTheStorageRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		disk := autosavetest.NewDisk()
		files := disk.Client()
		files.Fail()
		m := n.machineWith("A", disk)
		m.store = remote.NewContents(m.document, autosave.NewLayout(files, autosavetest.SHA256), autosavetest.SHA256)
		token, release := m.lock(t)
		defer release()
		saved := m.save(t, token, "one")
		_, err := m.store.Pin(context.Background(), token, autosave.Current, "x")
		var e *autosave.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, autosave.CodeWriteFailed, e.Code)
		assert.Equal(t, saved.ID, e.Resource)
	})
}

// A former editor of this browser was frozen as it began. It wakes after its successor has saved, and fences the history of this machine. The
// successor still holds the lock on the server: its history begins again, and no error says that another page edits.
func TestPinAfterAFormerEditorWoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m, token := lockedMachine(t)
		saved := m.save(t, token, "one")
		former := remote.NewContents(m.document, autosave.NewLayout(m.disk.Client(), autosavetest.SHA256), autosavetest.SHA256)
		require.NoError(t, former.Fence(context.Background(), token-1))
		_, err := m.store.Pin(context.Background(), token, saved.ID, "x")
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		pinned, err := m.store.Pin(context.Background(), token, saved.ID, "x")
		require.NoError(t, err)
		assert.Equal(t, "x", pinned.Name)
	})
}

// The history cannot keep a save, and has an older generation with the same bytes. The ID that the save returned names the server's
// content, also once a later editor has kept a copy of it.
func TestIDOfASaveThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		token, release := a.lock(t)
		a.save(t, token, "one")
		a.save(t, token, "two")
		a.disk.SetCapacity(1)
		saved := a.save(t, token, "one")
		a.disk.SetCapacity(1 << 20)
		assert.Equal(t, "one", a.read(t, saved.ID))
		pinned, err := a.store.Pin(context.Background(), token, saved.ID, "named")
		require.NoError(t, err)
		assert.True(t, pinned.Current)
		release()

		token, release = a.lock(t)
		defer release()
		assert.NotEqual(t, saved.ID, a.list(t)[0].ID)
		a.read(t, a.list(t)[0].ID)
		assert.Equal(t, "one", a.read(t, saved.ID))
		_, err = a.store.Pin(context.Background(), token, saved.ID, "again")
		require.NoError(t, err)
		a.save(t, token, "three")
		_, err = a.store.Read(context.Background(), saved.ID)
		require.ErrorIs(t, err, autosave.ErrNotFound)
	})
}
