//go:build js && wasm

package opfs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// inEachPlace runs a test over files and over IndexedDB. newRoot returns a root for newPlace.
func inEachPlace(t *testing.T, test func(t *testing.T, newRoot func() string)) {
	t.Run("files", func(t *testing.T) { test(t, newRoot) })
	t.Run("indexeddb", func(t *testing.T) { test(t, newDatabaseRoot) })
}

func newDatabaseRoot() string { return inDatabase + newRoot() }

// newPlace returns the place of a root, which InDatabase distinguishes.
func newPlace(root string) Place {
	if below, ok := strings.CutPrefix(root, inDatabase); ok {
		return NewDatabase(below, made("database.js", "new module.Database()"))
	}
	return newFiles(root)
}

// clearDatabase deletes the database, as a user who clears the data of the site does.
func clearDatabase() {
	deleted := made("database.js", `() => new Promise((done, failed) => {
		const asked = indexedDB.deleteDatabase("holdfast")
		asked.onsuccess = done
		asked.onerror = failed
	})`)
	must(call(context.Background(), deleted, "call"))
}

// databaseProject returns the storage of a new project in IndexedDB as the suite wants it.
func databaseProject(t *testing.T) autosavetest.Storage {
	t.Helper()
	place := newPlace(newDatabaseRoot())
	return autosavetest.Storage{
		Open: func() autosavetest.Page { return autosavetest.PageOf(place, SHA256) },
		Corrupt: func(id string) {
			content := must(place.Read(context.Background(), autosave.FolderHistory, id))
			content[0]++
			require.NoError(t, place.Write(context.Background(), autosave.FolderHistory, id, content))
		},
		Forget: func(cut bool) {
			for _, name := range must(place.List(context.Background(), autosave.FolderIndex)) {
				require.NoError(t, place.Remove(context.Background(), autosave.FolderIndex, name))
				if cut {
					require.NoError(t, place.Write(context.Background(), autosave.FolderIndex, name, nil))
				}
			}
		},
		Evict: clearDatabase,
	}
}

func TestStoreInDatabase(t *testing.T) {
	autosavetest.RunStore(t, databaseProject)
}

// A full storage aborts the transaction of a save: nothing of it is stored, and the error says so.
func TestFullDatabase(t *testing.T) {
	place := newPlace(newDatabaseRoot())
	store := autosave.NewLayout(place, SHA256)
	good := must(store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("good"), Token: 1}))
	listed := func() []string {
		return append(must(place.List(t.Context(), autosave.FolderHistory)), must(place.List(t.Context(), autosave.FolderIndex))...)
	}
	before := listed()
	for name, refusal := range map[string]struct{ method, body string }{
		"at once": {"put", "return function () { throw argument }"},
		"later": {"put", `return function (...args) {
			const { transaction } = this
			Object.defineProperty(transaction, "error", { value: argument, configurable: true })
			transaction.commit = () => transaction.abort()
			return before.apply(this, args)
		}`},
		"after its last request was dropped": {"getAllKeys", `return function (...args) {
			const { transaction } = this
			if (transaction.mode === "readonly") return before.apply(this, args)
			const request = { error: new DOMException("planted", "InvalidStateError") }
			transaction.commit = () => {
				let reason = request.error
				request.onerror?.({ preventDefault() { reason = argument } })
				Object.defineProperty(transaction, "error", { value: reason })
				transaction.abort()
			}
			return request
		}`},
	} {
		t.Run("refused "+name, func(t *testing.T) {
			t.Run("full", func(t *testing.T) {
				replace(t, prototype("IDBObjectStore"), refusal.method, refusal.body, exception(noQuota))
				_, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("better"), Token: 1})
				require.ErrorIs(t, err, autosave.ErrQuota)
			})
			assert.Equal(t, before, listed())
			assert.Equal(t, []autosave.Generation{good}, must(store.List(t.Context())))
			assert.Equal(t, "good", string(must(store.Read(t.Context(), autosave.Current))))
		})
	}
	_, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("better"), Token: 1})
	require.NoError(t, err)
}

// A save is durable when it is acknowledged.
func TestSavesInDatabaseAreStrict(t *testing.T) {
	store := autosave.NewLayout(newPlace(newDatabaseRoot()), SHA256)
	asked := made("database.js", `(asked => {
		const { prototype } = IDBDatabase, { transaction } = prototype
		prototype.transaction = function (names, mode, options) { asked.push(mode + " " + options.durability); return transaction.call(this, names, mode, options) }
		asked.undo = () => { prototype.transaction = transaction }
		return asked
	})([])`)
	defer func() { must(asked.Call("undo")) }()
	require.NoError(t, store.Fence(t.Context(), 1))
	must(asked.Call("splice", 0))
	committed := make(chan string, 1)
	must(store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("text"), Token: 1,
		Committed: func(autosave.Generation) { committed <- must(must(asked.Call("join")).String()) }}))
	assert.Equal(t, "readonly relaxed,readwrite strict", <-committed)
}

// busyDisk keeps the first strict transaction, and all that come after it, from being complete until rest is called.
const busyDisk = `(() => {
	const { prototype } = IDBDatabase, { transaction } = prototype
	let free, rest, tell
	const begun = new Promise(done => { tell = done })
	prototype.transaction = function (names, mode, options) {
		const made = transaction.call(this, names, mode, options)
		if (options.durability === "strict" && !free) {
			free = new Promise(done => { rest = done })
			tell()
		}
		const before = free
		if (before) Object.defineProperty(made, "oncomplete", { set(run) { made.addEventListener("complete", () => before.then(run)) } })
		return made
	}
	return { begun: () => begun, rest: () => rest(), undo: () => { prototype.transaction = transaction } }
})()`

// While the disk is busy, a save and what comes after it take long. They do not fail. A page whose snapshot is not
// stored in time learns that, and can keep the text elsewhere.
func TestDatabaseOnBusyDisk(t *testing.T) {
	root, journals := newDatabaseRoot(), made("journal.js", "new module.Journals()")
	page, place := newDraftPage(root, journals), newPlace(root)
	store := autosave.NewLayout(place, SHA256)
	must(store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("before"), Token: 1}))
	disk := made("database.js", busyDisk)
	defer func() { must(disk.Call("undo")) }()

	saved := make(chan error, 1)
	go func() {
		_, err := store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("saved"), Token: 1})
		saved <- err
	}()
	must(call(t.Context(), disk, "begun"))
	write := func(number int64, text string) error {
		written := must(journals.Call("write", page.number, described(autosave.Draft{ID: "one", Number: number, At: time.Now()}), text))
		_, err := jsbridge.Await(t.Context(), written)
		return err
	}
	listed := make(chan []string, 1)
	go func() { listed <- must(place.List(t.Context(), autosave.FolderHistory)) }()
	require.Error(t, write(1, "typed"))
	assert.Empty(t, saved)
	must(disk.Call("rest"))
	require.NoError(t, <-saved)
	assert.Len(t, <-listed, 2)

	require.NoError(t, write(2, "typed on"))
	must(call(t.Context(), journals, "release", page.number))
	assert.Equal(t, "typed on", string(must(page.Read(t.Context(), "one"))))
}

// slowGet returns what it reads that many milliseconds later.
const slowGet = `return function (key) {
	const asked = before.call(this, key)
	return { get result() { return asked.result }, set onsuccess(done) { asked.onsuccess = () => setTimeout(done, argument) } }
}`

// An editor that was frozen before its last step wakes after another one has taken over: its save is refused, and the
// content of its successor stays.
func TestFrozenEditorInDatabase(t *testing.T) {
	root := newDatabaseRoot()
	before, after := autosave.NewLayout(newPlace(root), SHA256), autosave.NewLayout(newPlace(root), SHA256)
	must(before.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("old"), Token: 1}))
	finish := made("database.js", `(() => {
		const { prototype } = module.Database, { finish } = prototype
		let wake
		const sleep = new Promise(done => { wake = done })
		const frozen = new Promise(asked => { prototype.finish = async function (...args) {
			prototype.finish = finish
			asked()
			await sleep
			return finish.apply(this, args)
		} })
		return { frozen: () => frozen, wake }
	})()`)
	refused := make(chan error)
	go func() {
		_, err := before.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("late"), Token: 1})
		refused <- err
	}()
	must(call(t.Context(), finish, "frozen"))
	require.NoError(t, after.Fence(t.Context(), 2))
	must(finish.Call("wake"))
	require.ErrorIs(t, <-refused, autosave.ErrStaleToken)
	must(after.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("new"), Token: 2}))
	next := autosave.NewLayout(newPlace(root), SHA256)
	assert.Equal(t, "new", string(must(next.Read(t.Context(), autosave.Current))))
}

// A page keeps no other page from clearing the data of the site. An open draft is made again, and the next save begins
// again.
func TestDatabaseIsDeletedUnderItsPage(t *testing.T) {
	root, journals := newDatabaseRoot(), made("journal.js", "new module.Journals()")
	page := newDraftPage(root, journals)
	store := autosave.NewLayout(newPlace(root), SHA256)
	must(store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("saved"), Token: 1}))
	write := func(number int64, text string) {
		d := autosave.Draft{ID: "one", Number: number, At: time.Now()}
		must(call(t.Context(), journals, "write", page.number, described(d), text))
	}
	write(1, "typed")
	clearDatabase()

	_, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("saved again"), Token: 1})
	require.ErrorIs(t, err, autosave.ErrEvicted)
	must(store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("saved again"), Token: 1}))
	write(2, "typed on")
	must(call(t.Context(), journals, "release", page.number))
	next := newPlace(root).Drafts(nil, made("journal.js", "new module.Journals()"), page)
	assert.Equal(t, "typed on", string(must(next.Read(t.Context(), "one"))))
	assert.Equal(t, "saved again", string(must(store.Read(t.Context(), autosave.Current))))
}

// The draft of a worker that was killed is found; that of a living one is not.
func TestDraftInDatabaseOfKilledWorker(t *testing.T) {
	root, page := newDatabaseRoot(), &draftPage{}
	p := startPeer(t, root, safejs.Null())
	p.tell("journal")
	p.expect("journalled")
	drafts := newPlace(root).Drafts(nil, made("journal.js", "new module.Journals()"), page)
	assert.Empty(t, must(drafts.List(t.Context())))
	p.kill()
	for end := time.Now().Add(20 * time.Second); ; {
		all := must(drafts.List(t.Context()))
		if len(all) == 1 {
			assert.Equal(t, autosave.CauseCrashed, all[0].Cause)
			assert.Equal(t, "last words", string(must(drafts.Read(t.Context(), all[0].ID))))
			return
		}
		require.True(t, time.Now().Before(end), "the draft is not found")
	}
}

// journalAndWait writes a draft, as a peer, and lives on.
func journalAndWait(root string) {
	journals := made("journal.js", "new module.Journals()")
	page := newDraftPage(root, journals)
	must(call(context.Background(), journals, "write", page.number, described(autosave.Draft{ID: "one", Number: 1, At: time.Now()}), "last words"))
	say("journalled")
}

// A page that may not use IndexedDB either gets an error with a sentence.
func TestWithoutDatabase(t *testing.T) {
	factory := prototype("IDBFactory")
	for name, body := range map[string]string{
		"open throws": "return function () { throw argument }",
		"open fails": `return function () {
			const asked = { error: argument }
			queueMicrotask(() => asked.onerror())
			return asked
		}`,
	} {
		t.Run(name, func(t *testing.T) {
			must(call(t.Context(), made("database.js", "{ close: async () => new module.Database().close() }"), "close"))
			database := newPlace(newDatabaseRoot())
			replace(t, factory, "open", body, exception("SecurityError"))
			err := database.Check(t.Context())
			require.ErrorIs(t, err, lock.ErrUnsupported)
			assert.Contains(t, err.Error(), "allow it to store data")
		})
	}
	require.NoError(t, newPlace(newDatabaseRoot()).Check(t.Context()))
}

// Holds tells a document with files from one without, and makes no database.
func TestDatabaseHolds(t *testing.T) {
	database := newPlace(newDatabaseRoot()).(Database)
	clearDatabase()
	require.False(t, database.Holds(t.Context()))
	names := made("database.js", "async () => (await indexedDB.databases()).length")
	require.Equal(t, 0, must(must(call(t.Context(), names, "call")).Int()))
	require.NoError(t, database.Write(t.Context(), autosave.FolderIndex, "1-1.json", []byte("text")))
	require.True(t, database.Holds(t.Context()))
	require.False(t, newPlace(newDatabaseRoot()).(Database).Holds(t.Context()))
}
