package autosave_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

func TestPin(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Limits.MaxGenerations = 2
		a.open()
		a.typed("one")
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "tab a", g.OwnerName)
		pinned, err := a.Pin(t.Context(), g.ID, "first")
		require.NoError(t, err)
		assert.Equal(t, "first", pinned.Name)
		newest, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "first", newest.Name, "nothing is dirty, so it is the newest")
		for range 5 {
			a.typed("+")
			w.sleep(time.Second)
		}
		assert.Equal(t, []string{"one+++++", "one++++", "one"}, w.generations())
		content, err := a.Restore(t.Context(), g.ID)
		require.NoError(t, err)
		assert.Equal(t, "one", string(content))
		assert.Equal(t, []string{"one", "one+++++", "one"}, w.generations(), "a restored one is another generation")
		_, err = a.Pin(t.Context(), g.ID, "")
		require.NoError(t, err)
		a.typed("!")
		w.sleep(time.Second)
		assert.Len(t, w.generations(), 2)
	})
}

func TestPinRefused(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		hang := make(chan struct{})
		var hangs atomic.Bool
		a.files.Before = func(string) {
			if hangs.Load() {
				<-hang
			}
		}
		a.open()
		b := w.tab("b")
		a.typed("one")
		w.sleep(time.Second)
		_, err := b.Pin(t.Context(), autosave.Current, "mine")
		require.ErrorIs(t, err, autosave.ErrReadOnly)
		_, err = a.Pin(t.Context(), "1-1", "x")
		require.ErrorIs(t, err, autosave.ErrNotFound)
		_, err = a.Pin(t.Context(), autosave.Current, strings.Repeat("é", 257))
		require.ErrorIs(t, err, autosave.ErrInvalidArgument)
		g, err := a.Pin(t.Context(), autosave.Current, strings.Repeat("é", 256))
		require.NoError(t, err)
		assert.Len(t, g.Name, 512)
		a.files.Fail()
		_, err = a.Pin(t.Context(), autosave.Current, "y")
		require.ErrorIs(t, err, autosave.ErrWriteFailed)
		assert.False(t, a.ReadOnly())
		a.files.Mend()
		a.typed("two")
		w.sleep(time.Second)
		all, err := a.History(t.Context())
		require.NoError(t, err)
		assert.Equal(t, g.Name, all[1].Name, "a pin that failed is not saved later")

		hangs.Store(true)
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = a.Pin(short, autosave.Current, "z")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		hangs.Store(false)
		close(hang)
		w.sleep(time.Second)

		require.NoError(t, w.disk.Page().Fence(t.Context(), 99))
		_, err = a.Pin(t.Context(), autosave.Current, "late")
		require.ErrorIs(t, err, autosave.ErrStaleToken)
		assert.True(t, a.ReadOnly())
		require.NoError(t, a.Dispose(t.Context()))
		_, err = a.Pin(t.Context(), autosave.Current, "")
		require.ErrorIs(t, err, autosave.ErrDisposed)
	})
}

// The storage was emptied while the page had nothing to save. A pin is the first to notice.
func TestEmptiedStorageGetsTheTextWhenAGenerationIsPinned(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		a.typed("one")
		w.sleep(time.Second)
		w.disk.Evict()
		_, err := a.Pin(t.Context(), autosave.Current, "name")
		require.ErrorIs(t, err, autosave.ErrEvicted)
		w.sleep(time.Second)
		assert.Equal(t, "one", w.saved())
	})
}

// A pin and a save at once both happen.
func TestPinDuringASave(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.slowTab("a")
		a.typed("one")
		g, err := a.FlushNow(t.Context())
		require.NoError(t, err)
		for n := range 20 {
			a.typed("+")
			go func() { _, _ = a.FlushNow(context.Background()) }()
			time.Sleep(time.Duration(n) * 7 * time.Millisecond)
			name := strings.Repeat("x", n+1)
			_, err := a.Pin(t.Context(), g.ID, name)
			require.NoError(t, err)
			w.sleep(3 * time.Second)
			all, err := a.History(t.Context())
			require.NoError(t, err)
			require.Len(t, all, min(n+2, 21))
			assert.Equal(t, name, all[len(all)-1].Name)
			assert.Equal(t, a.shows(), w.saved())
		}
	})
}

// The files that were made for the next commit may be open when a generation is pinned. They are given up, and removed.
func TestPinGivesUpExpectedFiles(t *testing.T) {
	disk := autosavetest.NewDisk()
	files := disk.Client()
	s := autosave.NewLayout(files, autosavetest.SHA256)
	at := time.UnixMilli(1_700_000_000_000)
	save := func() {
		_, err := s.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("x"), Token: 7, SavedAt: at}) // the clock stands
		require.NoError(t, err)
	}
	save()
	save()
	files.Log()
	_, err := s.Pin(t.Context(), 7, autosave.Current, "x")
	require.NoError(t, err)
	assert.Equal(t, []string{"list index", "write index/7-5.json", "write index/7-6.json", "list index"}, files.Log(), "7-4 is expected")
	save()
	log := files.Log()
	assert.NotContains(t, log, "write history/1700000000002-7", "it was expected")
	assert.Contains(t, log, "remove history/1700000000002-7")
	save()
	assert.Len(t, disk.Paths(), 4+1+2+1, "%v", disk.Paths())
}

// Bits rot in the index that a pin has just written. The name stays, and so does the generation.
func TestPinOutlivesADamagedIndex(t *testing.T) {
	disk := autosavetest.NewDisk()
	s := disk.Page()
	for _, content := range []string{"one", "two", "three"} {
		_, err := s.Commit(t.Context(), commit(content, 1))
		require.NoError(t, err)
	}
	all, err := s.List(t.Context())
	require.NoError(t, err)
	_, err = s.Pin(t.Context(), 1, all[2].ID, "first")
	require.NoError(t, err)
	var index string
	for _, path := range disk.Paths() { // in the order of their names
		if strings.HasPrefix(path, autosave.FolderIndex) {
			index = path
		}
	}
	disk.Corrupt(index)
	next := disk.Page()
	require.NoError(t, next.Fence(t.Context(), 2))
	assert.Equal(t, []string{"three", "two", "one"}, contents(t, next))
	after, err := next.List(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "first", after[2].Name)
}

// The storage has room for one more index only. The generation is pinned then, and the caller learns that.
func TestPinWithRoomForOneIndex(t *testing.T) {
	disk := autosavetest.NewDisk()
	files := disk.Client()
	s := autosave.NewLayout(files, autosavetest.SHA256)
	_, err := s.Commit(t.Context(), commit("one", 1))
	require.NoError(t, err)
	files.Break(2, autosavetest.Torn, false) // after the list and the first index
	pinned, err := s.Pin(t.Context(), 1, autosave.Current, "first")
	require.NoError(t, err)
	assert.Equal(t, "first", pinned.Name)
	for _, reader := range []autosave.Store{s, disk.Page()} {
		all, err := reader.List(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "first", all[0].Name)
	}
	_, err = s.Commit(t.Context(), commit("two", 1))
	require.NoError(t, err)
	assert.Equal(t, []string{"two", "one"}, contents(t, disk.Page()))
}
