package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The editor gets a request, saves and hands over. The page may veto, delay, or not answer.
func TestAutoSaveHandover(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "handover " + host
		ann := w.editor(t, named(host, root, "Ann"), "")
		ben := w.editor(t, named(host, root, "Ben"), "")
		ann.MustEval("type('typed a moment ago'); null", nil)
		ben.MustEval("await autosave.requestEdit(); null", nil)
		assert.False(t, browser.Get[bool](ben, "autosave.readOnly"))
		assert.Equal(t, "typed a moment ago", browser.Get[string](ben, "text"), "it is loaded when the promise is fulfilled")
		ann.WaitFor("heard('readonly').length === 1 && autosave.readOnly", browser.Limit)
		ann.WaitFor("autosave.state().holder?.ownerName === 'Ben'", browser.Limit)
		assert.Equal(t, "lease-lost", browser.Get[string](ann, "heard('readonly')[0].reason"))
		assert.Empty(t, browser.Get[[]string](ann, "offered"), "everything was saved")
		assert.Equal(t, []string{"lock:handover-requested"}, browser.Get[[]string](ann, "events.map(e => e.type).filter(t => t.includes('handover'))"))
		assert.Equal(t, browser.Get[string](ben, "hf.ownerId"), browser.Get[string](ann, "events.find(e => e.type.includes('handover')).from"))

		for name, veto := range map[string]string{
			"refuse":         "e.detail.refuse('still typing')",
			"preventDefault": "e.preventDefault()",
			"waitUntil":      "e.detail.waitUntil(Promise.reject(new Error('still typing')))",
		} {
			ben.MustEval("hf.addEventListener('lock:handover-requested', e => { "+veto+" }, {once: true}); null", nil)
			got := browser.Get[event](ann, "await failure(autosave.requestEdit({force: true, graceMs: 10_000}))")
			assert.Equal(t, "handover-refused", got["code"], name)
			assert.Equal(t, "AutoSaveError", got["name"])
			if name != "preventDefault" {
				assert.Contains(t, got["message"], "still typing")
			}
		}
		assert.False(t, browser.Get[bool](ben, "autosave.readOnly"), "force takes nothing from an editor that answers")

		ben.MustEval("hf.addEventListener('lock:handover-requested', e => e.detail.waitUntil(new Promise(() => {})), {once: true}); null", nil)
		ann.MustEval("result = now(); await autosave.requestEdit({graceMs: 10_000}); result = now() - result; null", nil)
		took := browser.Get[float64](ann, "result")
		assert.Greater(t, took, 2900.0, "a page that does not answer within three seconds consents")
		assert.Less(t, took, 10_000.0, "it answers before its grace is over")
		ann.MustEval("await autosave.dispose(); null", nil)
		assert.Equal(t, "disposed", browser.Get[event](ann, "await failure(autosave.flushNow())")["code"])
		for _, tab := range []*browser.Tab{ann, ben} {
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet()
		}
	})
}

// The page of the editor has not reported its last key yet when it is asked. The next editor begins with that key too, without a draft.
func TestHandoverSavesTheKeyThatIsUnderWay(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	eachHost(t, func(t *testing.T, host string) {
		root := "under way " + host
		ann, ben := w.editor(t, named(host, root, "Ann"), ""), w.editor(t, named(host, root, "Ben"), "")
		ann.MustEval(`
			const {setTimeout: real} = globalThis
			globalThis.setTimeout = (run, ms, ...more) => real(run, ms === 25 ? 60_000 : ms, ...more) // the pause between two reports
			type('older')
			await autosave.flushNow()
			type(', newer')
			null`, nil)
		ben.MustEval("await autosave.requestEdit(); null", nil)
		assert.Equal(t, "older, newer", browser.Get[string](ben, "text"))
		assert.Empty(t, browser.Get[[]event](ben, "await autosave.drafts()"))
		ann.WaitFor("heard('readonly').length === 1 && autosave.readOnly", browser.Limit)
		assert.Empty(t, browser.Get[[]string](ann, "offered"), "everything was saved")
		assert.Equal(t, 0, browser.Get[int](ann, "autosave.state().pendingBytes"))
		for _, tab := range []*browser.Tab{ann, ben} {
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet()
		}
	})
}

// Two tabs hand the text over to each other while both are typed into. No letter is lost: each is in the text, or
// offered to the tab in which it was typed.
func TestAutoSaveHandoversWhileTyping(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 20, 200)
	w := open(t, quick)
	a, b := w.editor(t, named("worker", "typing", "Ann"), ""), w.editor(t, named("worker", "typing", "Ben"), "")
	for _, tab := range []*browser.Tab{a, b} {
		tab.MustEval(fmt.Sprintf(`
			let letters = 0
			const typing = setInterval(() => { if (!autosave.readOnly) type('%s' + letters++ + '.') }, 7)
			null`, map[bool]string{true: "a", false: "b"}[tab == a]), nil)
	}
	for round := range rounds {
		asker := []*browser.Tab{b, a}[round%2]
		require.NoError(t, asker.Eval("await autosave.requestEdit(); null", nil), "handover %d", round)
		asker.WaitFor(fmt.Sprintf("letters > %d", browser.Get[int](asker, "letters")+1), browser.Limit)
	}
	for _, tab := range []*browser.Tab{a, b} {
		tab.MustEval("clearInterval(typing); null", nil)
	}
	editor := []*browser.Tab{b, a}[(rounds-1)%2]
	editor.MustEval("await autosave.flushNow(); null", nil)
	saved := browser.Get[string](editor, "current()")
	lost, total := 0, 0
	for tab, who := range map[*browser.Tab]string{a: "a", b: "b"} {
		offered := browser.Get[[]string](tab, "offered")
		n := browser.Get[int](tab, "letters")
		total += n
		for letter := range n {
			in := func(text string) bool { return strings.Contains("."+text, fmt.Sprintf(".%s%d.", who, letter)) }
			found := in(saved)
			for _, text := range offered {
				found = found || in(text)
			}
			if !found {
				lost++
			}
		}
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	}
	assert.Zero(t, lost, "of %d letters", total)
	assert.Greater(t, total, rounds, "every turn typed something")
}

// The editor freezes, its lock is stolen, and it resumes. It is offered its unsaved text, and none of that text
// replaces the other page's save.
func TestAutoSaveFrozenAndStolen(t *testing.T) {
	t.Parallel()
	rounds := rounds(t, 6, 200)
	w := open(t, quick)
	tabs := []*browser.Tab{w.editor(t, named("worker", "frozen", "Ann"), ""), w.editor(t, named("worker", "frozen", "Ben"), "")}
	for round := range rounds {
		frozen, other := tabs[round%2], tabs[(round+1)%2]
		mine, theirs := fmt.Sprintf("mine %d", round), fmt.Sprintf("theirs %d", round)
		require.False(t, browser.Get[bool](frozen, "autosave.readOnly"), "round %d", round)
		// A suspended tab, unlike a frozen one, cannot save before it stops.
		frozen.MustEval(fmt.Sprintf("offered.length = told.length = 0; text = '%s'; autosave.markDirty(); null", mine), nil)
		time.Sleep(time.Duration(round%60) * 10 * time.Millisecond) // before, during and after the write
		frozen.Suspend()
		require.NoError(t, other.Eval("await autosave.requestEdit({force: true, graceMs: 100}); null", nil), "round %d", round)
		other.MustEval(fmt.Sprintf("text = '%s'; autosave.markDirty(); await autosave.flushNow(); null", theirs), nil)
		frozen.Continue()
		frozen.WaitFor("heard('readonly').length === 1 && autosave.readOnly", browser.Limit)
		all := browser.Get[[]string](other, "Promise.all((await autosave.history()).map(async g => decode(await autosave.read(g.id))))")
		require.Equal(t, theirs, all[0], "round %d", round)
		if len(all) < 2 || all[1] != mine {
			require.Contains(t, browser.Get[[]string](frozen, "offered"), mine, "round %d: %v", round, all)
		}
		// Its user decides: each takeover reads every draft that waits, and after hundreds of rounds that would take too long.
		frozen.MustEval("for (const {id} of await autosave.drafts()) await autosave.resolveDraft(id, 'discard'); null", nil)
	}
	for _, tab := range tabs {
		assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
		tab.Quiet()
	}
}
