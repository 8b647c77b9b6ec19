package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// pair opens two tabs that can start documents.
func (w world) pair(t *testing.T, host, root string) (ann, ben *browser.Tab) {
	t.Helper()
	ann, ben = w.tab(t, named(host, root, "Ann")), w.tab(t, named(host, root, "Ben"))
	for _, tab := range []*browser.Tab{ann, ben} {
		tab.MustEval(document, nil)
	}
	return ann, ben
}

// dispute makes a document that both sides change: Ann's tab ends with the draft "one, mine", and Ben edits "one,
// theirs".
func dispute(t *testing.T, ann, ben *browser.Tab, name, bens string) {
	t.Helper()
	ann.MustEval(fmt.Sprintf("await openDocument('%s', ['%s']); await write('%[1]s', 'one')", name, name), nil)
	ben.MustEval(fmt.Sprintf("await openDocument('%s', ['%s'], %s); await documents['%[1]s'].autosave.requestEdit()", name, name, bens), nil)
	ann.WaitFor("documents['"+name+"'].autosave.readOnly", browser.Limit)
	ann.MustEval("documents['"+name+"'].text = 'one, mine'; documents['"+name+"'].autosave.markDirty()", nil)
	left := browser.Get[event](ann, "await failure(documents['"+name+"'].autosave.dispose())")
	require.Equal(t, "read-only", left["code"], "%v", left)
	ben.MustEval("await write('"+name+"', 'one, theirs')", nil)
}

// A merge function decides about a conflict. If it does not, the draft waits, and nothing of either side is lost.
func TestMerge(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann, ben := w.pair(t, host, "merge "+host)
		ann.MustEval("globalThis.expected = true; globalThis.asked = []; globalThis.both = c => c.theirs.length + ' ' + decode(c.theirs) + decode(c.mine).slice(decode(c.base).length); null", nil)
		for name, c := range map[string]struct{ merge, saved, reported string }{
			"string":    {"both", "11 one, theirs, mine", ""},
			"promise":   {"async c => new TextEncoder().encode(both(c))", "11 one, theirs, mine", ""},
			"object":    {"c => ({merged: 1})", `{"merged":1}`, ""},
			"empty":     {"() => ''", "", ""},
			"undefined": {"() => undefined", "one, theirs", ""},
			"throws":    {"() => { throw new Error('merge has thrown') }", "one, theirs", "merge has thrown"},
			"rejects":   {"() => Promise.reject(new Error('merge has rejected'))", "one, theirs", "merge has rejected"},
			"number":    {"() => 7", "one, theirs", "snapshot"},
			"hangs":     {"() => new Promise(() => {})", "one, theirs", ""},
		} {
			t.Run(name, func(t *testing.T) {
				dispute(t, ann, ben, name, "{}")
				doc := "documents['" + name + "']"
				ann.MustEval(fmt.Sprintf("asked.length = uncaught.length = 0; await openDocument('%s', ['%s'], {merge: c => { asked.push(sidesOf(c)); return (%s)(c) }}); await %s.autosave.requestEdit()", name, name, c.merge, doc), nil)
				assert.Equal(t, c.saved, browser.Get[string](ann, "saved('"+name+"')"))
				assert.Equal(t, c.saved, browser.Get[string](ann, doc+".text"), "the page is given it")
				require.Equal(t, 1, browser.Get[int](ann, "asked.length"), "it is asked once")
				assert.Equal(t, []string{"one", "one, mine", "one, theirs", "closed"}, browser.Get[[]string](ann, "[asked[0].base, asked[0].mine, asked[0].theirs, asked[0].draft.cause]"))
				waiting := 0
				if c.saved == "one, theirs" {
					waiting = 1
				}
				ann.WaitFor(fmt.Sprintf("%s.conflicts.length === %d", doc, waiting), browser.Limit)
				assert.Equal(t, waiting, browser.Get[int](ann, "(await "+doc+".autosave.drafts()).length"))
				assert.Equal(t, waiting, browser.Get[int](ann, doc+".autosave.state().drafts"))
				assert.True(t, browser.Get[bool](ann, "(await texts('"+name+"')).includes('one, theirs')"), "the other side is kept")
				if c.reported == "" {
					assert.Empty(t, browser.Get[[]string](ann, "uncaught"))
				} else if reported := browser.Get[[]string](ann, "uncaught"); assert.Len(t, reported, 1, "the page's error handler gets the error") {
					assert.Contains(t, reported[0], c.reported)
				}
				ann.MustEval("await write('"+name+"', 'goes on'); await "+doc+".autosave.dispose()", nil)
			})
		}
	})
}

// The event contains the three sides, byte for byte. Without the generation on which the draft was typed, there is no
// base.
func TestConflictHasThreeSides(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann, ben := w.pair(t, host, "sides "+host)
		dispute(t, ann, ben, "kept", "{}")
		dispute(t, ann, ben, "gone", "{maxGenerations: 2, keep: 'latest'}")
		ben.MustEval("await write('gone', 'again'); await write('gone', 'one, theirs'); for (const doc of Object.values(documents)) await doc.autosave.dispose()", nil)
		ann.MustEval("for (const name of ['kept', 'gone']) await openDocument(name, [name])", nil)
		for name, base := range map[string]any{"kept": "one", "gone": nil} {
			doc := "documents." + name
			ann.WaitFor(doc+".conflicts.length === 1 && "+doc+".drafts.length === 1", browser.Limit)
			sides := browser.Get[event](ann, doc+".conflicts[0]")
			assert.Equal(t, []any{base, "one, mine", "one, theirs"}, []any{sides["base"], sides["mine"], sides["theirs"]})
			assert.Equal(t, base != nil, browser.Get[bool](ann, "'base' in "+doc+".conflicts[0]"))
			draft := sides.object("draft")
			assert.Equal(t, []any{name}, draft["path"])
			assert.Equal(t, []any{"Ann", "closed", 9.0}, []any{draft["ownerName"], draft["cause"], draft["bytes"]})
			assert.NotEmpty(t, draft["ownerId"])
			assert.InDelta(t, clock(), draft["at"], 60_000)
			assert.NotEmpty(t, draft["base"])
			assert.Equal(t, map[string]any(draft), browser.Get[map[string]any](ann, doc+".drafts[0]"), "autosave:draft")
			assert.Equal(t, []any{map[string]any(draft)}, browser.Get[[]any](ann, "plain(await "+doc+".autosave.drafts())"))
			assert.Equal(t, []any{map[string]any(draft)}, browser.Get[[]any](ann, doc+".offered"), "autosave:editable")
			assert.Equal(t, "one, mine", browser.Get[string](ann, "decode(await "+doc+".autosave.read("+doc+".drafts[0].id))"))
		}
		ann.MustEval("await hf.close()", nil)
		ann.Quiet()
		ben.Quiet()
	})
}

// The editor can decide in three ways. A read-only page can read and discard a draft, and changes nothing that is
// saved.
func TestResolveDraft(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		ann, ben := w.pair(t, host, "resolve "+host)
		for as, c := range map[string]struct {
			shows string
			texts []string
		}{
			"content":    {"one, mine", []string{"one, mine", "one, theirs", "one"}},
			"generation": {"one, theirs", []string{"one, theirs", "one, mine", "one"}},
			"discard":    {"one, theirs", []string{"one, theirs", "one"}},
		} {
			dispute(t, ann, ben, as, "{}")
			doc := "documents." + as
			ann.MustEval(fmt.Sprintf("await openDocument('%s', ['%s']); globalThis.id = (await %s.autosave.drafts())[0].id", as, as, doc), nil)
			assert.Equal(t, "one, mine", browser.Get[string](ann, "decode(await "+doc+".autosave.read(id))"), "a page that does not edit reads it")
			for _, writing := range []string{"content", "generation"} {
				assert.Equal(t, "read-only", browser.Get[event](ann, "await failure("+doc+".autosave.resolveDraft(id, '"+writing+"'))")["code"])
			}
			assert.Equal(t, "invalid-argument", browser.Get[event](ann, "await failure("+doc+".autosave.resolveDraft(id, 'both'))")["code"])
			assert.Equal(t, "not-found", browser.Get[event](ann, "await failure("+doc+".autosave.resolveDraft('nobody', 'discard'))")["code"])
			if as != "discard" {
				ann.MustEval("globalThis.seen = []; for (const type of ['editable', 'conflict']) "+doc+".autosave.addEventListener('autosave:' + type, ({target}) => seen.push(target.state())); await "+doc+".autosave.requestEdit()", nil)
				ann.WaitFor(doc+".conflicts.length === 1 && "+doc+".autosave.state().drafts === 1", browser.Limit)
				assert.True(t, browser.Get[bool](ann, "seen.length === 2 && seen[0] === seen[1]"), "the second event changes nothing in the state")
			}
			ann.MustEval("await "+doc+".autosave.resolveDraft(id, '"+as+"')", nil)
			if as != "discard" {
				assert.Equal(t, c.shows, browser.Get[string](ann, doc+".text"))
			}
			assert.Equal(t, c.shows, browser.Get[string](ann, "saved('"+as+"')"))
			assert.Equal(t, c.texts, browser.Get[[]string](ann, "texts('"+as+"')"))
			assert.Equal(t, 0, browser.Get[int](ann, "(await "+doc+".autosave.drafts()).length + "+doc+".autosave.state().drafts"))
			assert.Equal(t, "not-found", browser.Get[event](ann, "await failure("+doc+".autosave.resolveDraft(id, 'discard'))")["code"])
			assert.Equal(t, "not-found", browser.Get[event](ann, "await failure("+doc+".autosave.read(id))")["code"])
			ben.MustEval("if (!"+doc+".autosave.readOnly) await write('"+as+"', 'Ben goes on')", nil)
			ann.MustEval("if (!"+doc+".autosave.readOnly) await write('"+as+"', 'Ann goes on')", nil)
		}
		ann.MustEval("await hf.close()", nil)
		ben.MustEval("await hf.close()", nil)
		ann.Quiet()
		ben.Quiet()
	})
}
