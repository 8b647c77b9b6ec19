package remote_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/remote"
)

func numbered(token int64, draft string, number int64, text string) autosave.Commit {
	return autosave.Commit{Token: token, SavedAt: time.Now(),
		Content: autosave.Numbered{Content: autosave.Bytes(text), Draft: draft, Number: number}}
}

// A save that stalls on its way is given up, and a later one is acknowledged. The first one arrives after it.
func TestStalledSaveIsRefused(t *testing.T) {
	for name, second := range map[string]autosave.Commit{
		"of the same draft": numbered(0, "d", 8, "later"),
		"of another draft":  numbered(0, "e", 1, "later"),
		"of no draft":       {Content: autosave.Bytes("later")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a, token := lockedMachine(t)
				var stalls atomic.Bool
				stalls.Store(true)
				n.delay = func(r remote.Request) bool {
					late := r.Method == "PUT" && stalls.Load()
					if late {
						time.Sleep(time.Minute)
					}
					return late
				}
				ctx, stop := context.WithTimeout(context.Background(), time.Second)
				defer stop()
				_, err := a.store.Commit(ctx, numbered(token, "d", 7, "earlier"))
				require.ErrorIs(t, err, autosave.ErrWriteFailed)
				stalls.Store(false)
				second.Token = token
				_, err = a.store.Commit(context.Background(), second)
				require.NoError(t, err)
				sleep(25 * time.Second)
				require.NoError(t, a.document.Backend().Records.Renew(context.Background(), record(token)))
				sleep(25 * time.Second)
				require.NoError(t, a.document.Backend().Records.Renew(context.Background(), record(token)))
				sleep(25 * time.Second)
				assert.Equal(t, "later", a.read(t, autosave.Current))
			})
		})
	}
}

// The page repeats a save whose answer was lost. The server has stored it once.
func TestSaveIsRepeatedWithoutHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, token := lockedMachine(t)
		n.answer = func(r remote.Request) error {
			if r.Method == "PUT" {
				return errOffline
			}
			return nil
		}
		_, err := a.store.Commit(context.Background(), numbered(token, "d", 7, "text"))
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		at := n.saved
		n.answer = nil
		sleep(time.Second)
		g, err := a.store.Commit(context.Background(), numbered(token, "d", 7, "text"))
		require.NoError(t, err)
		assert.Equal(t, at, n.saved)
		assert.Equal(t, []any{"d", int64(7), token, at.UnixMilli()}, []any{g.Draft, g.Number, g.Token, g.SavedAt.UnixMilli()})
		all := a.list(t)
		require.Len(t, all, 1)
		assert.Equal(t, g.ID, all[0].ID)
		theirs := n.machine("B").list(t)
		require.Len(t, theirs, 1)
		assert.Equal(t, []any{"d", int64(7)}, []any{theirs[0].Draft, theirs[0].Number}, "every machine learns whose text it is")
	})
}

// A draft of a Go program may have any name. The server is not given one that it refuses.
func TestDraftNameThatServerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, token := lockedMachine(t)
		for i, name := range []string{"a b", "é", "x.y", strings.Repeat("x", 65), ""} {
			g, err := a.store.Commit(context.Background(), numbered(token, name, int64(i), name))
			require.NoError(t, err)
			assert.Equal(t, name, g.Draft, "the history keeps the draft")
			assert.Empty(t, n.save.Draft)
		}
	})
}

// A content that is whole on the server is loaded, even if the copy on this machine is damaged.
func TestDamagedCopyOnThisMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		token, release := a.lock(t)
		older, newer := a.save(t, token, "older"), a.save(t, token, "newer")
		release()
		for _, path := range a.disk.Paths() {
			if strings.HasPrefix(path, autosave.FolderHistory) {
				a.disk.Corrupt(path)
			}
		}
		for range 2 { // from the list, and after it
			require.Equal(t, newer.ID, a.list(t)[0].ID)
			assert.Equal(t, "newer", a.read(t, newer.ID))
		}
		assert.Equal(t, "newer", a.read(t, newer.ID))
		_, err := a.store.Read(context.Background(), older.ID)
		require.ErrorIs(t, err, autosave.ErrCorrupted, "the server no longer keeps it")
		n.set(true)
		_, err = a.store.Read(context.Background(), newer.ID)
		require.ErrorIs(t, err, autosave.ErrCorrupted)
		n.set(false)

		w := n.machineWith("A", a.disk).writer(t, "A")
		sleep(time.Second)
		assert.Equal(t, "newer", w.now())
		assert.NoError(t, w.State().LastErr)
	})
}

// A page edits and saves on the server, whatever the storage of this machine does.
func TestStorageOfThisMachineFails(t *testing.T) {
	for name, fail := range map[string]func(*autosavetest.Disk) autosave.Files{
		"full":    func(d *autosavetest.Disk) autosave.Files { d.SetCapacity(1); return d.Client() },
		"refuses": func(d *autosavetest.Disk) autosave.Files { c := d.Client(); c.Fail(); return c },
		"silent":  func(d *autosavetest.Disk) autosave.Files { return silentFiles{d.Client()} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet()
				n.writer(t, "B").type_("theirs, ")
				sleep(time.Second)
				disk := autosavetest.NewDisk()
				a := n.machineWith("A", disk)
				a.store = remote.NewContents(a.document, autosave.NewLayout(fail(disk), autosavetest.SHA256), autosavetest.SHA256)
				n.expire()
				w := a.writer(t, "A")
				sleep(time.Minute)
				require.False(t, w.State().ReadOnly)
				assert.Equal(t, "theirs, ", w.now())
				w.type_("ours")
				sleep(20 * time.Second)
				assert.Equal(t, "theirs, ours", string(n.content))
				assert.Zero(t, w.State().RetryCount)
			})
		})
	}
}

// silentFiles answer nothing until they are given up.
type silentFiles struct{ autosave.Files }

func (silentFiles) List(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// The server was wiped or restored from a backup: its tokens begin below those that this machine has seen.
func TestServerWhoseTokensBeginAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		disk := autosavetest.NewDisk()
		first := n.machineWith("A", disk).saved(t, "A", "one")
		require.NoError(t, first.Dispose(context.Background()))
		before, err := n.machineWith("A", disk).store.List(context.Background())
		require.NoError(t, err)

		n.wipe()
		second := n.machineWith("A", disk).writer(t, "A")
		requests := len(n.requests())
		sleep(10 * time.Second)
		assert.Less(t, len(n.requests()), requests+10, "the page does not repeat its requests without a pause")
		require.False(t, second.State().ReadOnly)
		assert.Empty(t, second.readonly)
		second.type_("two")
		sleep(time.Second)
		assert.Contains(t, string(n.content), "two")
		second.type_(", three")
		sleep(time.Second)
		require.NoError(t, second.Dispose(context.Background()))
		all, err := n.machineWith("A", disk).store.List(context.Background())
		require.NoError(t, err)
		assert.Len(t, all, 3, "a save after the wipe is kept as well")
		assert.True(t, slices.ContainsFunc(all, func(g autosave.Generation) bool { return g.ID == before[0].ID }))
	})
}

// A clock that was set back leaves a history whose tokens are ahead of it. An editor may have used the highest token without
// saving.
func TestHistoryIsAheadOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet()
		a := n.machine("A")
		ahead := autosave.NewLayout(a.disk.Client(), autosavetest.SHA256)
		later := time.Now().Add(time.Hour).UnixMilli()
		_, err := ahead.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("old"), SavedAt: time.Now(), Token: later})
		require.NoError(t, err)
		require.NoError(t, ahead.Fence(context.Background(), later+1000))
		token, release := a.lock(t)
		defer release()
		kept := a.save(t, token, "new")
		a.save(t, token, "newer")
		assert.Len(t, a.list(t), 3)
		assert.Equal(t, "new", a.read(t, kept.ID))
	})
}
