//go:build js && wasm

package opfs

import (
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// The browser never opens one of the two files of a save, or opens it too late. The save uses other files. A file that
// is opened late is closed and removed. The same holds for files that are opened in advance.
func TestSaveUsesOtherFilesWhenOpenHangs(t *testing.T) {
	for n, what := range []string{"generation", "index", "generation in advance", "index in advance"} {
		t.Run(what, func(t *testing.T) {
			files := newFiles(newRoot())
			store := autosave.NewLayout(files, SHA256)
			require.NoError(t, save(t, store, "one"))
			files.Rest(t.Context())
			t.Run("stuck", func(t *testing.T) {
				replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", `let n = 0
					return function () {
						const opening = before.call(this)
						return n++ === argument ? new Promise((settle) => { globalThis.openLate = () => settle(opening) }) : opening
					}`, n)
				require.NoError(t, save(t, store, "two"))
				require.NoError(t, save(t, store, "three"), "the save does not wait for a file that never opens")
			})
			must(safejs.Global().Call("openLate"))
			require.NoError(t, save(t, store, "four"))
			require.NoError(t, save(t, store, "five"))
			reads(t, store, "five", "four", "three", "two", "one")
			for folder, want := range map[string]int{autosave.FolderHistory: 5, autosave.FolderIndex: 2} {
				var left []string
				assert.Eventually(t, func() bool { // the next one is made after the save
					left = must(files.List(t.Context(), folder))
					return len(left) == want+1
				}, prompt, time.Millisecond, "and the next one, in "+folder)
				t.Log(folder, left)
			}
		})
	}
}

func save(t *testing.T, store *autosave.Layout, content string) error {
	t.Helper()
	_, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(content), Token: 1, SavedAt: time.Now()})
	return err
}

// reads fails unless the generations are want.
func reads(t *testing.T, store *autosave.Layout, want ...string) {
	t.Helper()
	all, err := store.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, len(want))
	for i, g := range all {
		content, err := store.Read(t.Context(), g.ID)
		require.NoError(t, err)
		assert.Equal(t, want[i], string(content))
	}
}

// opened returns a function that lists the opened files in order; an open file is followed by a space.
func opened(t *testing.T) func() []string {
	replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", `globalThis.openings = []
		return async function () {
			const n = openings.push(this.name) - 1
			const handle = await before.call(this)
			openings[n] += " "
			return handle
		}`, nil)
	return func() []string {
		text := must(must(must(safejs.Global().Get("openings")).Call("join", "/")).String())
		return strings.Split(text, "/")
	}
}

// isOpen waits until a number of files were opened.
func isOpen(t *testing.T, files func() []string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		all := files()
		return len(all) >= n && strings.HasSuffix(all[n-1], " ")
	}, prompt, time.Millisecond)
}

// A save that follows another one soon finds its files open.
func TestNextSaveFindsFilesOpen(t *testing.T) {
	root := newFiles(newRoot())
	store := autosave.NewLayout(root, SHA256)
	require.NoError(t, save(t, store, "one"))
	root.Rest(t.Context()) // otherwise the files for the second save may be opened before or after the next line
	files := opened(t)
	require.NoError(t, save(t, store, "two"))
	isOpen(t, files, 4)
	before := files()
	require.NoError(t, save(t, store, "three"))
	isOpen(t, files, 6)
	all, err := store.List(t.Context())
	require.NoError(t, err)
	assert.Contains(t, before, all[0].ID+" ", "before it was saved")
	seen := map[string]bool{}
	for _, name := range files() {
		assert.False(t, seen[name], "%s was opened twice", name)
		seen[name] = true
	}
	reads(t, store, "three", "two", "one")
}

// A save that comes while its files are being opened waits for them, and does not open them again.
func TestNextSaveWaitsForOpeningFiles(t *testing.T) {
	store := autosave.NewLayout(newFiles(newRoot()), SHA256)
	for _, content := range []string{"one", "two", "three", "four"} {
		c := autosave.Commit{Content: autosave.Bytes(content), Token: 1, SavedAt: time.Now()}
		done := make(chan error, 1)
		c.Committed = func(autosave.Generation) { done <- nil }
		go func() {
			if _, err := store.Commit(t.Context(), c); err != nil {
				done <- err
			}
		}()
		require.NoError(t, <-done, content)
	}
	reads(t, store, "four", "three", "two", "one")
}

// Files that were opened for a save that does not come are closed after a while, and the save can still use them.
func TestFilesOfMissingSaveAreClosed(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Files){
		"in time": func(*testing.T, *Files) { must(safejs.Global().Call("expire")) },
		"ever":    func(t *testing.T, f *Files) { f.Rest(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			files := newFiles(newRoot())
			store := autosave.NewLayout(files, SHA256)
			require.NoError(t, save(t, store, "one"))
			files.Rest(t.Context())
			replace(t, safejs.Global(), "setTimeout",
				"return (f, ms, ...args) => ms === 5000 ? (globalThis.expire = f, 0) : before.call(globalThis, f, ms, ...args)", nil)
			names := opened(t)
			require.NoError(t, save(t, store, "two"))
			isOpen(t, names, 4)
			index := strings.TrimSpace(names()[3])
			require.Error(t, files.Remove(t.Context(), autosave.FolderIndex, index), "it is open")
			end(t, files)
			require.Eventually(t, func() bool { return files.Remove(t.Context(), autosave.FolderIndex, index) == nil }, prompt, time.Millisecond)
			require.NoError(t, save(t, store, "three"))
			reads(t, store, "three", "two", "one")
		})
	}
}

// A failure in advance does not affect the save.
func TestFailureInAdvanceDoesNotAffectSave(t *testing.T) {
	for n, name := range []string{"generation", "index"} {
		t.Run(name, func(t *testing.T) {
			files := newFiles(newRoot())
			store := autosave.NewLayout(files, SHA256)
			require.NoError(t, save(t, store, "one"))
			files.Rest(t.Context())
			replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", `let n = 0
				globalThis.failed = 0
				return function () { return n++ === argument ? (failed++, Promise.reject(new DOMException("planted", "UnknownError"))) : before.call(this) }`, n+2)
			require.NoError(t, save(t, store, "two"))
			require.Eventually(t, func() bool { return must(must(safejs.Global().Get("failed")).Int()) == 1 }, prompt, time.Millisecond)
			require.NoError(t, save(t, store, "three"))
			reads(t, store, "three", "two", "one")
		})
	}
}
