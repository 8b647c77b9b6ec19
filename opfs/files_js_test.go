//go:build js && wasm

package opfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// project returns the storage of a new project as the suite wants it.
func project(t *testing.T) autosavetest.Storage {
	t.Helper()
	root := newRoot()
	var all []*Files
	files := func() *Files {
		all = append(all, newFiles(root))
		return all[len(all)-1]
	}
	return autosavetest.Storage{
		Open: func() autosavetest.Page {
			return autosavetest.PageOf(files(), SHA256)
		},
		Corrupt: func(id string) {
			dir := files().folders[autosave.FolderHistory]
			content := must(files().Read(context.Background(), autosave.FolderHistory, id))
			h := must(openHandle(context.Background(), must(dir.file(context.Background(), id, false))))
			defer h.close()
			content[0]++
			require.NoError(t, h.write(context.Background(), content))
		},
		Forget: func(cut bool) {
			for _, f := range all {
				f.Rest(context.Background())
			}
			f := files()
			for _, name := range must(f.List(context.Background(), autosave.FolderIndex)) {
				require.NoError(t, f.Remove(context.Background(), autosave.FolderIndex, name))
				if cut {
					require.NoError(t, f.Write(context.Background(), autosave.FolderIndex, name, nil))
				}
			}
		},
		Evict: func() {
			for _, f := range all {
				f.Rest(context.Background())
			}
			top, below, _ := strings.Cut(root, "/")
			folder := must(storage(context.Background()))
			if below != "" {
				folder = must(call(context.Background(), folder, "getDirectoryHandle", top))
				top = below
			}
			must(call(context.Background(), folder, "removeEntry", top, map[string]any{"recursive": true}))
		},
	}
}

func TestStore(t *testing.T) {
	autosavetest.RunStore(t, project)
}

func TestFileBeingWrittenIsNotFound(t *testing.T) {
	files := newFiles(newRoot())
	dir := files.folders[autosave.FolderIndex]
	h := must(openHandle(t.Context(), must(dir.file(t.Context(), "1-1.json", true))))
	require.NoError(t, h.write(t.Context(), []byte("half of it")))
	content, err := files.Read(t.Context(), autosave.FolderIndex, "1-1.json")
	if err == nil {
		t.Logf("this engine reads beside a writer: %q", content)
	} else {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	h.close()
	content, err = files.Read(t.Context(), autosave.FolderIndex, "1-1.json")
	require.NoError(t, err)
	assert.Equal(t, "half of it", string(content))
	_, err = files.Read(t.Context(), autosave.FolderIndex, "no such file")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Readers exclude neither each other nor a client that removes the file.
func TestManyReaders(t *testing.T) {
	files := newFiles(newRoot())
	require.NoError(t, files.Write(t.Context(), autosave.FolderHistory, "1-1", []byte("text")))
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := newFiles(files.dir.parent.String()).Read(t.Context(), autosave.FolderHistory, "1-1")
			errs <- err
		}()
	}
	for range 8 {
		require.NoError(t, <-errs)
	}
	require.NoError(t, files.Remove(t.Context(), autosave.FolderHistory, "1-1"))
	require.NoError(t, files.Remove(t.Context(), autosave.FolderHistory, "1-1"), "again")
}

func TestFullStorage(t *testing.T) {
	files := newFiles(newRoot())
	store := autosave.NewLayout(files, SHA256)
	good, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("good"), Token: 1})
	require.NoError(t, err)
	listed := func() (all []string) {
		for _, folder := range []string{autosave.FolderHistory, autosave.FolderIndex} {
			names, err := files.List(t.Context(), folder)
			require.NoError(t, err)
			slices.Sort(names)
			for _, name := range names {
				if content, err := files.Read(t.Context(), folder, name); err != nil || len(content) > 0 {
					all = append(all, name)
				}
			}
		}
		return all
	}
	before := listed()
	for name, body := range map[string]string{
		"refused":     "return function () { throw argument }",
		"cut short":   "return function (b, o) { return before.call(this, b.subarray(0, b.length >> 1), o) }",
		"not flushed": "return function () { throw argument }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("full", func(t *testing.T) {
				method := "write"
				if name == "not flushed" {
					method = "flush"
				}
				handles := prototype("FileSystemSyncAccessHandle")
				replace(t, handles, method, body, exception(noQuota))
				_, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("better"), Token: 1})
				require.ErrorIs(t, err, autosave.ErrQuota)
				content, err := store.Read(t.Context(), autosave.Current)
				require.NoError(t, err)
				assert.Equal(t, "good", string(content))
			})
			assert.Equal(t, before, listed(), "a failed save leaves no file, which would need the space that is missing")
			all, err := store.List(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []autosave.Generation{good}, all)
		})
	}
	_, err = store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("better"), Token: 1})
	require.NoError(t, err)
}

func TestFilesWithoutStorage(t *testing.T) {
	manager := prototype("StorageManager")
	handles := prototype("FileSystemFileHandle")
	for name, plant := range map[string]func(*testing.T){
		"private window": func(t *testing.T) {
			replace(t, manager, "getDirectory", "return function () { return Promise.reject(argument) }", exception("SecurityError"))
		},
		"no storage": func(t *testing.T) { replace(t, manager, "getDirectory", "return undefined", nil) },
		"no handles": func(t *testing.T) { replace(t, handles, "createSyncAccessHandle", "return undefined", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			files := newFiles(newRoot())
			plant(t)
			require.ErrorIs(t, files.Check(t.Context()), lock.ErrUnsupported)
		})
	}
	require.NoError(t, newFiles(newRoot()).Check(t.Context()))
	_, err := NewFiles("../up", safejs.Undefined())
	require.True(t, errors.Is(err, lock.ErrInvalidArgument))
}

// Pages that check at the same time share a file, and each of them removes it.
func TestConcurrentChecks(t *testing.T) {
	const pages, checks = 8, 20
	root, failed := newRoot(), make(chan error)
	for range pages {
		go func() {
			files := newFiles(root)
			for range checks {
				failed <- files.Check(t.Context())
			}
		}()
	}
	for range pages * checks {
		assert.NoError(t, <-failed)
	}
}

// A helper that is replaced may have stored text in a file that was removed. Its successor gets the last text of a page,
// unless that text was saved, sealed, removed or released.
func TestReplacedHelperGetsTheLastText(t *testing.T) {
	for after, want := range map[string]string{
		`undefined`:                                        "2",
		`journals.saved(1, "d", 1)`:                        "2",
		`journals.saved(1, "e", 9)`:                        "2",
		`journals.saved(1, "d", 2)`:                        "",
		`journals.remove("f", "d", 2)`:                     "",
		`journals.seal(1, {draft: "d", number: 3}, "abc")`: "",
		`journals.release(1)`:                              "",
	} {
		t.Run(after, func(t *testing.T) {
			sent := made("files.js", `(() => {
				const workers = []
				const files = new module.Files(() => {
					const worker = { asks: [], postMessage(ask) { this.asks.push(ask) }, terminate() {} }
					workers.push(worker)
					return worker
				})
				const quiet = (call) => call?.catch(() => undefined)
				const { journals } = files
				quiet(journals.bind(1, "f", "owner", "Ann"))
				quiet(journals.write(1, { draft: "d", number: 1 }, "a"))
				quiet(journals.write(1, { draft: "d", number: 2 }, "ab"))
				quiet(`+after+`)
				workers[0].onerror({ preventDefault() {} })
				quiet(files.probe({}))
				return workers[1].asks.filter(({ args }) => args[0] === "write").map(({ args }) => args[2].number).join()
			})()`)
			assert.Equal(t, want, must(sent.String()))
		})
	}
}
