//go:build js && wasm

package opfs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// saveUntil takes over and saves, as a peer, and hangs before its n-th operation.
func saveUntil(root string, n int) {
	c := autosavetest.NewClient(newPlace(root))
	ops := 0
	c.Before = func(operation string) {
		if ops++; ops > n {
			say("at", operation)
			select {}
		}
	}
	say("at", "the end", fmt.Sprint(takeOver(autosave.NewLayout(c, SHA256))))
}

// A worker ends before any operation of a takeover and its first save. The last save reads back whole, and the next
// editor can save.
func TestKilledAtEveryOperationOfSave(t *testing.T) { inEachPlace(t, testKilledAtEveryOperationOfSave) }

func testKilledAtEveryOperationOfSave(t *testing.T, newRoot func() string) {
	for n := 0; ; n++ {
		root := twice(t, newRoot())
		p := startPeer(t, root, safejs.Null())
		p.tell("save", strconv.Itoa(n))
		at := p.expect("at")
		p.kill()

		whole(t, root, at, "older")
		next := autosave.NewLayout(newPlace(root), SHA256)
		_, err := next.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes("next"), Token: 3, SavedAt: time.Now()})
		require.NoError(t, err, at)
		if strings.HasPrefix(at, "the end") {
			require.Equal(t, "the end <nil>", at)
			all, err := next.List(t.Context())
			require.NoError(t, err)
			content, err := next.Read(t.Context(), all[1].ID)
			require.NoError(t, err)
			assert.Equal(t, "new", string(content), "the earlier save is readable under the next one")
			assert.Greater(t, n, 6)
			return
		}
	}
}

// operations are the browser's operations during a save.
var operations = map[string][]string{
	"FileSystemDirectoryHandle":  {"getDirectoryHandle", "getFileHandle", "removeEntry", "keys"},
	"FileSystemFileHandle":       {"createSyncAccessHandle", "getFile"},
	"FileSystemSyncAccessHandle": {"write", "flush", "close"},
	"SubtleCrypto":               {"digest"},
	"IDBTransaction":             {"commit"}, // before it, the transaction does nothing that outlives its page
}

// hang and refuse are what plant does to an operation.
const (
	hang   = `postMessage(["peer", "at " + name]); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`
	refuse = `if (name !== "close") { const error = new DOMException("planted", "UnknownError"); if (sync.includes(name)) throw error; return Promise.reject(error) }`
)

// plant makes something else happen before the n-th operation of the browser from now on. undo removes this, and
// reports whether it has happened.
func plant(n int, what string) (undo func() bool) {
	list := map[string]any{}
	for class, methods := range operations {
		all := make([]any, len(methods))
		for i, m := range methods {
			all[i] = m
		}
		list[class] = all
	}
	planted := must(must(must(safejs.Global().Get("Function")).New("list", "n", `
		const sync = ["write", "flush", "close", "keys", "commit"], undo = [];
		for (const [kind, names] of Object.entries(list)) for (const name of names) {
			const { prototype } = globalThis[kind], before = prototype[name];
			prototype[name] = function (...args) { if (n-- === 0) { `+what+` } return before.apply(this, args) };
			undo.push(() => { prototype[name] = before });
		}
		return () => { undo.forEach((one) => one()); return n < 0 }`)).Invoke(list, n))
	return func() bool { return must(must(planted.Invoke()).Truthy()) }
}

// takeOver takes over from an editor that has saved twice, and saves.
func takeOver(store *autosave.Layout) error {
	err := store.Fence(context.Background(), 2)
	if err == nil {
		_, err = store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes("new"), Token: 2,
			SavedAt: time.Now(), Limits: autosave.Limits{MaxGenerations: 2}})
	}
	return err
}

// twice returns a project in which an editor has saved "older", then "old".
func twice(t *testing.T, root string) string {
	store := autosave.NewLayout(newPlace(root), SHA256)
	for _, content := range []string{"older", "old"} {
		_, err := store.Commit(t.Context(), autosave.Commit{Content: autosave.Bytes(content), Token: 1, SavedAt: time.Now()})
		require.NoError(t, err)
	}
	return root
}

// whole fails unless every generation reads back whole and the current one is none of the superseded ones. It returns
// the current one.
func whole(t *testing.T, root, at string, superseded ...string) (current string) {
	t.Helper()
	store := autosave.NewLayout(newPlace(root), SHA256)
	all, err := store.List(t.Context())
	require.NoError(t, err, at)
	require.NotEmpty(t, all, at)
	for i, g := range all {
		content, err := store.Read(t.Context(), g.ID)
		require.NoError(t, err, "%s: generation %d", at, i)
		require.Contains(t, []string{"older", "old", "new"}, string(content), at)
		if i == 0 {
			current = string(content)
			require.NotContains(t, superseded, current, at)
		}
	}
	return current
}

// A worker ends before any operation of the browser in a takeover and its first save. The last save reads back whole,
// and the next editor can save.
func TestKilledAtEveryOperationOfTheBrowser(t *testing.T) {
	inEachPlace(t, testKilledAtEveryOperationOfTheBrowser)
}

func testKilledAtEveryOperationOfTheBrowser(t *testing.T, newRoot func() string) {
	for n := 0; ; n++ {
		root := twice(t, newRoot())
		p := startPeer(t, root, safejs.Null())
		p.tell("save over", strconv.Itoa(n))
		at := p.expect("at")
		p.kill()
		superseded := []string{"older"}
		if at == "the end <nil>" {
			superseded = append(superseded, "old")
		}
		whole(t, root, at, superseded...)
		_, err := autosave.NewLayout(newPlace(root), SHA256).Commit(t.Context(),
			autosave.Commit{Content: autosave.Bytes("new"), Token: 3, SavedAt: time.Now()})
		require.NoError(t, err, at)
		require.Equal(t, "new", whole(t, root, at))
		if strings.HasPrefix(at, "the end") {
			require.Equal(t, "the end <nil>", at)
			assert.Greater(t, n, 10, "there are more operations than that")
			return
		}
	}
}

// Any operation of the browser fails. No saved content is lost, and the next attempt succeeds.
func TestEveryOperationOfTheBrowserFails(t *testing.T) {
	inEachPlace(t, testEveryOperationOfTheBrowserFails)
}

func testEveryOperationOfTheBrowserFails(t *testing.T, newRoot func() string) {
	for n := 0; ; n++ {
		root := twice(t, newRoot())
		store := autosave.NewLayout(newPlace(root), SHA256)
		undo := plant(n, refuse)
		err := takeOver(store)
		happened := undo()
		superseded := []string{"older"}
		if err == nil {
			superseded = append(superseded, "old")
		} else {
			require.ErrorIs(t, err, autosave.ErrWriteFailed, "operation %d", n)
		}
		whole(t, root, strconv.Itoa(n), superseded...)
		require.NoError(t, takeOver(store), "operation %d: again", n)
		require.Equal(t, "new", whole(t, root, strconv.Itoa(n)))
		if !happened {
			require.NoError(t, err)
			assert.Greater(t, n, 10, "there are more operations than that")
			return
		}
	}
}

const large = 1 << 20

// saveOn saves new contents in a loop, as a peer.
func saveOn(root string) {
	store := autosave.NewLayout(newPlace(root), SHA256)
	for n := 1; ; n++ {
		content := strings.Repeat(fmt.Sprintf("%07d\n", n), large/8)
		_, err := store.Commit(context.Background(), autosave.Commit{Content: autosave.Bytes(content), Token: 2, SavedAt: time.Now()})
		if err != nil {
			say("failed", err.Error())
		}
		say("saved", strconv.Itoa(n))
	}
}

// A worker ends during any operation: no acknowledged save is lost, and none is torn.
func TestKilledDuringSave(t *testing.T) { inEachPlace(t, testKilledDuringSave) }

func testKilledDuringSave(t *testing.T, newRoot func() string) {
	for round := range 12 { // acknowledgements that were under way may be missing
		root := newRoot()
		p := startPeer(t, root, safejs.Null())
		p.tell("save on")
		p.expect("saved 1")
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		p.kill()
		acknowledged := 1
		for len(p.heard) > 0 {
			acknowledged = number(strings.TrimPrefix(<-p.heard, "saved "))
		}
		next := autosave.NewLayout(newPlace(root), SHA256)
		require.NoError(t, next.Fence(t.Context(), 3))
		content, err := next.Read(t.Context(), autosave.Current)
		require.NoError(t, err, "round %d", round)
		require.Len(t, content, large)
		current := number(strings.TrimLeft(string(content[:7]), "0"))
		assert.GreaterOrEqual(t, current, acknowledged)
		assert.Equal(t, strings.Repeat(string(content[:8]), large/8), string(content))
	}
}
