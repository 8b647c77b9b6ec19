//go:build js && wasm

package opfs

import (
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// A user has discarded a text, and its page marks it again. The page learns that the file does not have the text: the last words of the page must
// not build on it. This is no error for a snapshot that is taken while the same text is being sealed.
func TestDiscardedTextIsNotStored(t *testing.T) {
	inEachPlace(t, func(t *testing.T, newRoot func() string) {
		journals := made("journal.js", "new module.Journals()")
		page := newDraftPage(newRoot(), journals)
		ask := func(method string, number int64, cause autosave.Cause) (safejs.Value, error) {
			d := autosave.Draft{ID: "one", Number: number, Cause: cause, At: time.Now()}
			return call(t.Context(), journals, method, page.number, described(d), "typed")
		}
		must(ask("seal", 1, autosave.CauseLockLost))
		require.NoError(t, page.Discard(t.Context(), "one", 1))
		_, err := ask("write", 2, "")
		require.Error(t, err)
		require.Equal(t, safejs.TypeUndefined, must(ask("seal", 3, autosave.CauseLockLost)).Type())
		must(ask("write", 3, ""))
		require.Empty(t, must(page.List(t.Context())))
	})
}

// The file of a discarded draft has nothing of the text, and is gone an hour later.
func TestDiscardedDraftLeavesAnEmptyFile(t *testing.T) {
	journals := made("journal.js", "new module.Journals()")
	page := newDraftPage(newRoot(), journals)
	text := strings.Repeat("secret ", 10_000)
	must(call(t.Context(), journals, "write", page.number, described(autosave.Draft{ID: "gone", Number: 1, At: time.Now()}), text))
	must(call(t.Context(), journals, "release", page.number))
	require.NoError(t, page.Discard(t.Context(), "gone", 1))
	require.Empty(t, must(page.List(t.Context())))
	folder := page.folder.Sub("drafts")
	file := must(jsbridge.Await(t.Context(), must(must(folder.file(t.Context(), "gone", false)).Call("getFile"))))
	left := must(must(jsbridge.Await(t.Context(), must(file.Call("text")))).String())
	require.NotContains(t, left, "secret")
	require.LessOrEqual(t, jsbridge.Number(file, "size"), int64(12_288))

	later := made("journal.js", `(now => { Date.now = () => now() + 3_600_000; return () => { Date.now = now } })(Date.now)`)
	defer func() { must(later.Invoke()) }()
	require.Empty(t, must(page.List(t.Context())))
	require.NotContains(t, must(folder.names(t.Context())), "gone")
}
