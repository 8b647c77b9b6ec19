//go:build js && wasm

package opfs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// rescuePage is a page that finds the entry of another page in localStorage.
type rescuePage struct {
	draftPage
	entry map[string]any // nil if there is none
}

// Rescue implements [DraftPage].
func (p *rescuePage) Rescue(ctx context.Context, folder string) error {
	if p.entry == nil {
		return nil
	}
	merged, err := call(ctx, p.journals, "merge", folder, p.entry)
	if err == nil && must(merged.String()) == "done" {
		p.entry = nil
	}
	return err
}

// afterEnd returns a page that finds what another page has left: a draft, and an entry that builds on it and has one more word.
func afterEnd(t *testing.T, root string) (p *rescuePage, entry map[string]any, whole string) {
	stored := strings.Repeat("stored, ", 3000)
	journals := made("journal.js", "new module.Journals()")
	p = &rescuePage{draftPage: draftPage{number: 1}}
	p.Drafts = newPlace(root).Drafts(nil, journals, p)
	p.Bind(p.number, "owner", "Ada")
	must(call(t.Context(), journals, "write", p.number, described(autosave.Draft{ID: "one", Number: 1, At: time.Now()}), stored))
	must(call(t.Context(), journals, "release", p.number))
	difference := map[string]any{"number": 1, "length": len(stored), "prefix": len(stored), "suffix": 0, "insert": "last"}
	entry = map[string]any{"draft": "one", "number": 2, "base": "", "at": 1, "ownerId": "owner", "binary": false, "differences": []any{difference}}
	return p, entry, stored + "last"
}

// holdsAll requires that the draft has all that its page has typed.
func (p *rescuePage) holdsAll(t *testing.T, whole string) {
	t.Helper()
	all := must(p.List(t.Context()))
	require.Len(t, all, 1)
	require.Equal(t, int64(2), all[0].Number)
	require.Equal(t, whole, string(must(p.Read(t.Context(), "one"))))
}

// reading keeps the draft open for the rest of the test, as another page that reads it does.
func reading(t *testing.T, p *rescuePage) {
	hold := made("journal.js", `async (folder, draft) => {
		if (folder.startsWith("indexeddb://")) return new Promise((held) => {
			navigator.locks.request("holdfast draft " + folder + "/" + draft, { mode: "shared" }, () => new Promise((done) => held({ close: done })));
		});
		let at = await navigator.storage.getDirectory();
		for (const name of [...folder.split("/"), "drafts"]) at = await at.getDirectoryHandle(name);
		return (await at.getFileHandle(draft)).createSyncAccessHandle({ mode: "read-only" });
	}`)
	reader := must(jsbridge.Await(t.Context(), must(hold.Invoke(p.Folder(), "one"))))
	t.Cleanup(func() { must(reader.Call("close")) })
}

// A page cannot bring the last text of another page into its draft, and makes the draft the content. The draft stays: the last text builds on it.
func TestDraftStaysUntilItsLastTextIsStored(t *testing.T) {
	for name, prevent := range map[string]func(*testing.T, *rescuePage){
		"another page reads the draft": reading,
		"the disk is full": func(t *testing.T, _ *rescuePage) {
			for class, method := range map[string]string{"FileSystemSyncAccessHandle": "write", "IDBObjectStore": "put"} {
				replace(t, prototype(class), method, "return function () { throw argument }", exception(noQuota))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEachPlace(t, func(t *testing.T, newRoot func() string) {
				var p *rescuePage
				var whole string
				t.Run("list", func(t *testing.T) {
					page, entry, text := afterEnd(t, newRoot())
					p, whole = page, text
					p.entry = entry
					prevent(t, p)
					require.Len(t, must(p.List(t.Context())), 1)
				})
				entry := p.entry
				p.entry = nil // so that only the failed attempt keeps the draft
				require.NoError(t, p.Remove(t.Context(), "one", 1))
				p.entry = entry
				p.holdsAll(t, whole)
				require.NoError(t, p.Remove(t.Context(), "one", 2))
				require.Empty(t, must(p.List(t.Context())))
			})
		})
	}
}

// A page ends while another page lists the drafts: the list has the draft without its last text.
func TestLastTextComesBeforeRemoval(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		p, entry, whole := afterEnd(t, newRoot())
		require.Len(t, must(p.List(t.Context())), 1)
		p.entry = entry
		require.NoError(t, p.Remove(t.Context(), "one", 1))
		p.holdsAll(t, whole)
	})
}

// A user discards a draft while another page reads it for a long time, and learns that it stays. Otherwise the next editor would make the
// discarded text the content.
func TestDiscardFailsWhileDraftIsRead(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		p, _, _ := afterEnd(t, newRoot())
		t.Run("read", func(t *testing.T) {
			reading(t, p)
			require.Error(t, p.Discard(t.Context(), "one", 1))
			require.NoError(t, p.Remove(t.Context(), "one", 1), "the content has it: the next editor removes it")
		})
		require.Len(t, must(p.List(t.Context())), 1)
		require.NoError(t, p.Discard(t.Context(), "one", 1))
		require.NoError(t, p.Discard(t.Context(), "one", 1), "again")
		require.NoError(t, p.Discard(t.Context(), "gone", 1))
		require.Empty(t, must(p.List(t.Context())))
	})
}

// A user discards a draft that another page reads, and the storage does not answer whether there still is one. It may stay.
func TestDiscardFailsWhileTheStorageIsSilent(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		p, _, _ := afterEnd(t, newRoot())
		t.Run("silent", func(t *testing.T) {
			reading(t, p)
			replace(t, prototype("IDBObjectStore"), "count", "return function () { throw argument }", exception("UnknownError"))
			replace(t, prototype("FileSystemDirectoryHandle"), "getFileHandle", `return function (...args) {
				return args.length > 1 ? before.apply(this, args) : Promise.reject(argument)
			}`, exception("UnknownError"))
			require.Error(t, p.Discard(t.Context(), "one", 1))
		})
		require.Len(t, must(p.List(t.Context())), 1)
	})
}

// The storage refuses to remove a draft. Every page still finds it, and the next attempt removes it.
func TestDraftIsFoundAfterAFailedRemoval(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		p, _, _ := afterEnd(t, newRoot())
		t.Run("refused", func(t *testing.T) {
			for class, method := range map[string]string{"FileSystemSyncAccessHandle": "write", "IDBObjectStore": "put"} {
				replace(t, prototype(class), method, "return function () { throw argument }", exception(noQuota))
			}
			require.Error(t, p.Discard(t.Context(), "one", 1))
		})
		require.Len(t, must(p.List(t.Context())), 1)
		require.NoError(t, p.Discard(t.Context(), "one", 1))
		require.Empty(t, must(p.List(t.Context())))
	})
}

// A frozen page keeps its turn to read a draft. Other pages wait for a time only, and find the draft.
func TestDraftIsFoundBesideAFrozenReader(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		p, _, _ := afterEnd(t, newRoot())
		hold := made("journal.js", `(name) => new Promise((held) => {
			navigator.locks.request(name, () => new Promise((release) => held({ release })));
		})`)
		reader := must(jsbridge.Await(t.Context(), must(hold.Invoke("holdfast turn "+p.Folder()+"/one"))))
		defer func() { must(reader.Call("release")) }()
		require.Len(t, must(p.List(t.Context())), 1)
	})
}

// A page is frozen while it merges an entry. Another page waits for that once, and then lists the drafts without the text. Otherwise it would
// not edit for as long as the first page is frozen. The text comes when that page goes on.
func TestAFrozenMergeIsWaitedForOnce(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		p, entry, whole := afterEnd(t, newRoot())
		hold := made("journal.js", `(name) => new Promise((held) => {
			navigator.locks.request(name, () => new Promise((done) => held({ async release() {
				done();
				while ((await navigator.locks.query()).held.some((lock) => lock.name === name));
			} })));
		})`)
		frozen := must(jsbridge.Await(t.Context(), must(hold.Invoke("holdfast merge "+p.Folder()+"/one"))))
		p.entry = entry
		t.Run("soon", func(t *testing.T) {
			replace(t, must(safejs.Global().Get("AbortSignal")), "timeout", "return function () { return before.call(this, argument) }", 100)
			require.Error(t, p.Rescue(t.Context(), p.Folder()))
		})
		limited, stop := context.WithTimeout(t.Context(), prompt/2)
		defer stop()
		require.Len(t, must(p.List(limited)), 1)
		require.Error(t, p.Remove(limited, "one", 1))
		must(call(t.Context(), frozen, "release"))
		p.holdsAll(t, whole)
	})
}

// The helper of a page ends before it brings the last text of another page into its draft, and the next helper does not know of that text. The
// draft stays.
func TestDraftStaysAfterTheEndOfAHelper(t *testing.T) {
	root := newRoot()
	p, entry, whole := afterEnd(t, root)
	files := made("files.js", `new module.Files(() => ({
		postMessage(ask) {
			if (ask.args[0] === "mergeNow") return void setTimeout(() => this.onerror(new ErrorEvent("error", { message: "ended" })));
			module.serve(ask).then((data) => this.onmessage({ data }));
		},
		terminate() {},
	}))`)
	defer func() { must(files.Call("close")) }()
	ended := &rescuePage{entry: entry}
	ended.Drafts = newPlace(root).Drafts(nil, must(files.Get("journals")), ended)
	require.Len(t, must(ended.List(t.Context())), 1)
	require.Error(t, ended.Remove(t.Context(), "one", 1))
	p.entry = entry
	p.holdsAll(t, whole)
}
