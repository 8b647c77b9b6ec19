//go:build js && wasm

package opfs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// Drafts pass their suite in a worker and through the helper of a page.
func TestDrafts(t *testing.T) {
	inEachPlace(t, func(t *testing.T, root func() string) {
		t.Run("worker", func(t *testing.T) {
			testDrafts(t, root, func() safejs.Value { return made("journal.js", "new module.Journals()") }, nil)
		})
		t.Run("page", func(t *testing.T) {
			const files = "new module.Files(() => new Worker('/package/testdata/helper.js', {type: 'module'}))"
			testDrafts(t, root, func() safejs.Value { return made("files.js", files) }, func(files safejs.Value) { must(files.Call("close")) })
		})
	})
}

// draftPage is a page that writes drafts, without a text editor.
type draftPage struct {
	*Drafts
	number int
	draft  autosave.Draft
	text   []byte
}

// newDraftPage returns the page 1 of these journals, in which Ada is the user.
func newDraftPage(root string, journals safejs.Value) *draftPage {
	page := &draftPage{number: 1}
	page.Drafts = newPlace(root).Drafts(nil, journals, page)
	page.Bind(page.number, "owner", "Ada")
	return page
}

func testDrafts(t *testing.T, newRoot func() string, start func() safejs.Value, end func(safejs.Value)) {
	autosavetest.RunDrafts(t, func(t *testing.T) func() autosavetest.DraftPage {
		root, last := newRoot(), 0
		return func() autosavetest.DraftPage {
			last++
			host := start()
			journals := host
			if end != nil {
				journals = must(host.Get("journals"))
				t.Cleanup(func() { end(host) })
			}
			p := &draftPage{number: last}
			p.Drafts = newPlace(root).Drafts([]string{"a/b", "c"}, journals, p)
			p.Bind(last, "owner", "Ada 🦀")
			must(call(t.Context(), journals, "release", last)) // the page is bound
			return autosavetest.DraftPage{
				Drafts: p.Drafts,
				Journal: func(d autosave.Draft, text []byte) {
					_, err := call(t.Context(), journals, "write", p.number, described(d), must(jsbridge.Uint8Array(text)))
					if jsbridge.ExceptionName(err) != "NotAllowedError" { // a user has discarded the text
						require.NoError(t, err)
					}
				},
				Type:  func(d autosave.Draft, text []byte) { p.draft, p.text = d, text },
				Saved: func(draft string, number int64) { must(call(t.Context(), journals, "saved", p.number, draft, number)) },
				End: func() {
					if end != nil {
						end(host)
						return
					}
					must(call(context.Background(), journals, "release", p.number))
				},
			}
		}
	})
}

func described(d autosave.Draft) map[string]any {
	return map[string]any{"draft": d.ID, "number": d.Number, "base": d.Base, "at": d.At.UnixMilli(), "cause": string(d.Cause)}
}

// Rescue implements [DraftPage].
func (p *draftPage) Rescue(context.Context, string) error { return nil }

// Seal implements [DraftPage].
func (p *draftPage) Seal(ctx context.Context, cause autosave.Cause) (safejs.Value, error) {
	answer, err := safejs.ValueOf(map[string]any{})
	if err != nil || p.text == nil {
		return answer, err
	}
	p.draft.Cause = cause
	sealed, err := call(ctx, p.journals, "seal", p.number, described(p.draft), must(jsbridge.Uint8Array(p.text)))
	if err == nil {
		err = answer.Set("draft", sealed)
	}
	return answer, err
}

// After a kill at any byte, a draft file has the older or the newer snapshot. After a loss or reordering of unflushed
// writes, it has the last flushed snapshot or a later one.
func TestDraftFileSurvives(t *testing.T) {
	check := made("testdata/powerloss.js", "module.check")
	for seed := range 60 {
		wrong := must(must(check.Invoke(seed)).String())
		require.Empty(t, wrong, "seed %d", seed)
	}
}

// A difference to a generation restores the text of the page. The file of a generation ends with a seal, which is not
// part of the content.
func TestRescueBuildsOnGeneration(t *testing.T) {
	inEachPlace(t, testRescueBuildsOnGeneration)
}

func testRescueBuildsOnGeneration(t *testing.T, newRoot func() string) {
	root := newRoot()
	saved := "first line, " + strings.Repeat("the same, ", 2000) + "last line 🦀"
	g := must(autosave.NewLayout(newPlace(root), SHA256).Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(saved), Token: 1, SavedAt: time.Now()}))
	journals := made("journal.js", "new module.Journals()")
	drafts := newPlace(root).Drafts([]string{"doc"}, journals, &draftPage{})
	units := len(utf16.Encode([]rune(saved)))
	merge := func(draft, base string, difference any) string {
		entry := map[string]any{"draft": draft, "number": 3, "base": base, "at": 1, "ownerId": "owner", "binary": false, "differences": []any{difference}}
		return must(must(call(t.Context(), journals, "merge", drafts.Folder(), entry)).String())
	}
	rescue := func(draft, base string, length int) string {
		return merge(draft, base, map[string]any{"base": base, "length": length, "prefix": len("first line, "), "suffix": units - len("first line, "), "insert": "new words, "})
	}

	require.Equal(t, "done", rescue("whole", g.ID, units))
	text := must(drafts.Read(t.Context(), "whole"))
	require.Equal(t, strings.Replace(saved, "first line, ", "first line, new words, ", 1), string(text))

	require.Equal(t, "unreadable", rescue("other", g.ID, units+1), "another text than the one that it was made from")
	require.Equal(t, "unreadable", rescue("gone", "1-1", units))
	require.Equal(t, "failed", merge("odd", g.ID, nil), "an odd draft does not keep the page waiting")
}

// Two pages merge the same entry over slow storage. Neither of them lists the drafts before the text is one.
func TestPagesMergeOneEntry(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		root, saved := newRoot(), strings.Repeat("the same, ", 2000)
		g := must(autosave.NewLayout(newPlace(root), SHA256).Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(saved), Token: 1, SavedAt: time.Now()}))
		replace(t, prototype("Blob"), "arrayBuffer", "return function () { return new Promise(done => setTimeout(done, 1000)).then(() => before.call(this)) }", nil)
		replace(t, prototype("IDBObjectStore"), "get", slowGet, 1000)
		difference := map[string]any{"base": g.ID, "length": len(saved), "prefix": 0, "suffix": len(saved), "insert": "new words, "}
		entry := map[string]any{"draft": "one", "number": 3, "base": g.ID, "at": 1, "ownerId": "owner", "binary": false, "differences": []any{difference}}
		merged := make(chan string, 2)
		for range cap(merged) {
			go func() {
				journals := made("journal.js", "new module.Journals()")
				merged <- must(must(call(context.Background(), journals, "merge", newPlace(root).Folder(), entry)).String())
			}()
		}
		require.Equal(t, []string{"done", "done"}, []string{<-merged, <-merged})
	})
}

// slowOpen returns a file some milliseconds after the browser has opened it. exclusiveOpen does the same in an engine whose files have one
// reader at a time.
const (
	slowOpen = `return function (options) {
		return before.call(this, options).then(file => new Promise(done => setTimeout(() => done(file), argument)))
	}`
	exclusiveOpen = `return function () {
		return before.call(this).then(file => new Promise(done => setTimeout(() => done(file), argument)))
	}`
)

// waitForTurns makes pages wait for their turn to read a draft, however long the machine takes.
func waitForTurns(t *testing.T) {
	replace(t, must(safejs.Global().Get("AbortSignal")), "timeout", "return () => new AbortController().signal", nil)
}

// Pages that look for drafts at the same time all find them, however long the browser takes to read.
func TestPagesReadDraftsAtOnce(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		newJournals := func() safejs.Value { return made("journal.js", "new module.Journals()") }
		for name, open := range map[string]string{"shared": slowOpen, "exclusive": exclusiveOpen} {
			t.Run(name+" in two workers", func(t *testing.T) { testReadAtOnce(t, newRoot(), open, newJournals) })
			t.Run(name+" in one worker", func(t *testing.T) {
				journals := newJournals()
				testReadAtOnce(t, newRoot(), open, func() safejs.Value { return journals })
			})
		}
	})
}

func testReadAtOnce(t *testing.T, root, open string, journals func() safejs.Value) {
	first := journals()
	page := newDraftPage(root, first)
	must(call(t.Context(), first, "write", page.number, described(autosave.Draft{ID: "one", Number: 1, At: time.Now()}), "typed"))
	must(call(t.Context(), first, "release", page.number))
	replace(t, prototype("IDBObjectStore"), "get", slowGet, 500)
	replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", open, 100)
	waitForTurns(t)
	found := make(chan error, 2)
	for range cap(found) {
		go func() {
			next := newPlace(root).Drafts(nil, journals(), page)
			all, err := next.List(t.Context())
			if err == nil && len(all) != 1 {
				err = fmt.Errorf("%d drafts", len(all))
			}
			if err == nil {
				_, err = next.Read(t.Context(), "one")
			}
			found <- err
		}()
	}
	for range cap(found) {
		require.NoError(t, <-found)
	}
}

// A draft is read while an entry of localStorage is merged into it in the same worker, or while its page opens it again there, however long that
// takes.
func TestDraftIsReadWhileItIsOpened(t *testing.T) {
	for name, args := range map[string][]any{
		"merge": {map[string]any{"draft": "one", "number": 1, "base": "", "at": 1, "ownerId": "owner", "binary": false, "differences": []any{}}},
		"write": {described(autosave.Draft{ID: "one", Number: 1, At: time.Now()}), "typed"},
	} {
		t.Run(name, func(t *testing.T) { testReadDuring(t, name, args) })
	}
}

func testReadDuring(t *testing.T, method string, args []any) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		root, journals := newRoot(), made("journal.js", "new module.Journals()")
		page := newDraftPage(root, journals)
		must(call(t.Context(), journals, "write", page.number, described(autosave.Draft{ID: "one", Number: 1, At: time.Now()}), "typed"))
		must(call(t.Context(), journals, "release", page.number))
		opens := must(must(safejs.Global().Get("Promise")).Call("withResolvers"))
		replace(t, prototype("FileSystemFileHandle"), "createSyncAccessHandle", `return function (options) {
			return before.call(this, options).then(file => new Promise(done => { argument.resolve(); setTimeout(done, 500, file) }))
		}`, opens)
		replace(t, prototype("IDBObjectStore"), "get", `return function (key) {
			const asked = before.call(this, key)
			argument.resolve()
			return { get result() { return asked.result }, set onsuccess(done) { asked.onsuccess = () => setTimeout(done, 500) } }
		}`, opens)
		waitForTurns(t)
		first := map[string]any{"merge": page.Folder(), "write": page.number}[method]
		ended := make(chan error, 1)
		go func() {
			_, err := call(context.Background(), journals, method, append([]any{first}, args...)...)
			ended <- err
		}()
		must(jsbridge.Await(t.Context(), must(opens.Get("promise"))))
		text, err := page.Drafts.Read(t.Context(), "one")
		require.NoError(t, err)
		require.Equal(t, "typed", string(text))
		require.NoError(t, <-ended)
	})
}

// A page asks its helper to merge an entry only when no other page merges it. A helper that waited for a frozen page
// would seem to be stuck, and the page would end it.
func TestHelperWaitsForNoOtherPage(t *testing.T) {
	folder := newPlace(newRoot()).Folder()
	result := made("files.js", `async (folder, entry) => {
		let asked = 0, release;
		const files = new module.Files(() => ({
			postMessage(ask) {
				if (ask.file) asked++;
				module.serve(ask).then((data) => this.onmessage({ data }));
			},
		}));
		const name = "holdfast merge " + folder + "/" + entry.draft;
		await new Promise((held) => navigator.locks.request(name, () => new Promise((done) => { release = done; held(); })));
		const merged = files.journals.merge(folder, entry);
		for (let waits = false; !waits;) waits = (await navigator.locks.query()).pending.some((lock) => lock.name === name);
		const early = asked;
		release();
		return [early, await merged, asked].join(" ");
	}`)
	entry := map[string]any{"draft": "one", "number": 3, "base": "", "at": 1, "ownerId": "owner", "binary": false,
		"differences": []any{map[string]any{"length": 0, "prefix": 0, "suffix": 0, "insert": "text"}}}
	answer := must(jsbridge.Await(t.Context(), must(result.Invoke(folder, entry))))
	require.Equal(t, "0 done 1", must(answer.String()))
}

// After the data of a site is cleared, the browser goes on writing the removed file of a draft without an error. The
// journal makes the file anew, or reports that it cannot: then the page keeps the text in localStorage.
func TestRemovedDraftFileIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		now     string // what happens to the name of the file
		written bool
	}{
		"made anew":           {"name + ' anew'", true},
		"storage is not open": {"(() => { throw new DOMException('cleared', 'UnknownError') })()", false},
	} {
		t.Run(name, func(t *testing.T) {
			root, journals := newRoot(), made("journal.js", "new module.Journals()")
			page := newDraftPage(root, journals)
			write := func(number int64) (text string, err error) {
				d := autosave.Draft{ID: "lost", Number: number, At: time.Now()}
				text = "text " + strconv.FormatInt(number, 10)
				_, err = call(t.Context(), journals, "write", page.number, described(d), must(jsbridge.Uint8Array([]byte(text))))
				return text, err
			}
			_, err := write(1)
			require.NoError(t, err)

			// From here on the name leads to another file, as in a storage that was cleared.
			cleared := must(must(safejs.Global().Get("Function")).New("name", "return "+c.now))
			undo := made("journal.js", `(cleared) => {
				const { prototype } = FileSystemDirectoryHandle, { getFileHandle } = prototype
				prototype.getFileHandle = function (name, options) { return getFileHandle.call(this, name === "lost" ? cleared(name) : name, options) }
				return () => { prototype.getFileHandle = getFileHandle }
			}`)
			undo = must(undo.Invoke(cleared))
			defer func() { must(undo.Invoke()) }()
			last, number := "", int64(1)
			noticed := func() bool {
				number++
				if last, err = write(number); !c.written {
					return err != nil
				}
				require.NoError(t, err)
				return slices.Contains(must(page.folder.Sub("drafts").names(t.Context())), "lost anew")
			}
			for end := time.Now().Add(20 * time.Second); !noticed(); time.Sleep(100 * time.Millisecond) {
				require.True(t, time.Now().Before(end), "it goes on writing the removed file")
			}
			if !c.written {
				return
			}
			must(call(t.Context(), journals, "release", page.number)) // the page ends
			next := newPlace(root).Drafts(nil, made("journal.js", "new module.Journals()"), page)
			require.Equal(t, last, string(must(next.Read(t.Context(), "lost"))))
		})
	}
}

// A snapshot for the journal is taken while the same text is being sealed. The draft stays one that every page sees.
func TestLateSnapshotHidesNoSealedDraft(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		journals := made("journal.js", "new module.Journals()")
		page := newDraftPage(newRoot(), journals)
		ask := func(method string, number int64, cause autosave.Cause, text string) {
			d := autosave.Draft{ID: "one", Number: number, Cause: cause, At: time.Now()}
			must(call(t.Context(), journals, method, page.number, described(d), text))
		}
		ask("seal", 1, autosave.CauseLockLost, "typed")
		ask("write", 1, "", "typed")
		all := must(page.List(t.Context()))
		require.Len(t, all, 1)
		assert.Equal(t, autosave.CauseLockLost, all[0].Cause)

		ask("write", 2, "", "typed on")
		assert.Empty(t, must(page.List(t.Context())), "its page goes on with it")
	})
}
