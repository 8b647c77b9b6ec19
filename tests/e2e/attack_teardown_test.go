package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
)

// tearing gives a page snapshots of every kind, of a state that changes in place, and the attack on them.
const tearing = `
const encode = text => new TextEncoder().encode(text)
const state = {text: ''}
let buffer = encode('')
const put = now => { state.text = now; buffer.fill(46); buffer = encode(now) }
const kinds = {
  string: () => state.text,
  bytes: () => buffer,
  object: () => state,
  promise: async () => { const {text} = state; await sleep(5); return text },
}
// attack types a word, ends the AutoSave in the same task and shows another text, or none, before that task is over.
const attack = (word, method, then) => {
  put(word)
  autosave.markDirty()
  const done = failure(method === 'close' ? hf.close() : autosave[method]())
  put(then)
  return done
}
1`

// teardown is one attack: a page in a role calls a method, and changes its text in the same task.
type teardown struct {
	role, method, kind, then string
}

var (
	teardownRoles   = []string{"editing", "handing over", "read-only", "loading"}
	teardownMethods = []string{"dispose", "close", "flushNow"}
	teardownKinds   = []string{"string", "bytes", "object", "promise"}
	teardownThen    = []string{"", "another document"}
)

// teardowns are all attacks, or as many that every two of their parts meet in one of them.
func teardowns() (list []teardown) {
	for r, role := range teardownRoles {
		for m, method := range teardownMethods {
			for k, kind := range teardownKinds {
				for n, then := range teardownThen {
					if *full || (r+m+k)%4 == 0 && n == (r+m)%2 {
						list = append(list, teardown{role, method, kind, then})
					}
				}
			}
		}
	}
	return list
}

// The text that a page has in the task in which it ends its AutoSave, or asks for a save, is what is saved, or is a draft. What
// the page shows afterwards is no part of it.
func TestNothingLostByTeardown(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, s setup) {
		w := open(t, quick)
		for n, c := range teardowns() {
			for round := range rounds(t, 1, 3) {
				root := fmt.Sprintf("teardown %v %d %d", s, n, round)
				t.Run(fmt.Sprintf("%s %s %s then %q", c.role, c.method, c.kind, c.then), func(t *testing.T) {
					testTeardown(t, w, s, c, root)
				})
			}
		}
	})
}

func testTeardown(t *testing.T, w world, s setup, c teardown, root string) {
	ann := w.tab(t, s.project(root, "Ann"))
	for _, script := range []string{editing, attacking, tearing} {
		ann.MustEval(script, nil)
	}
	take := ", kinds." + c.kind
	attack := fmt.Sprintf("result = attack('typed', '%s', '%s')", c.method, c.then)
	ann.MustEval("await edit("+endings.Unsaved+take+"); null", nil)
	switch c.role {
	case "editing":
		ann.MustEval(attack+"; null", nil)
		got := browser.Get[event](ann, "await result")
		assert.Empty(t, got["code"], "%v", got)
		ann.MustEval("await hf.close(); null", nil)
		assertKept(t, w, s, root, c, "content")
	case "loading":
		ann.MustEval(`autosave.addEventListener('autosave:editable', e => {
			e.detail.waitUntil(sleep(50))
			`+attack+`
		}, {once: true}); null`, nil)
		ann.WaitFor("result", browser.Limit)
		ann.MustEval("await result; await failure(hf.close()); null", nil)
		assertKept(t, w, s, root, c, endings.Anywhere...)
	case "read-only":
		ben := w.tab(t, s.project(root, "Ben"))
		ben.MustEval("lease = await hf.acquireProjectLock({steal: true}); null", nil)
		ann.WaitFor("autosave.readOnly", browser.Limit)
		ann.MustEval(attack+"; null", nil)
		got := browser.Get[event](ann, "await result")
		assert.NotEmpty(t, got["code"], "it says what could not be saved: %v", got)
		ann.MustEval("await failure(hf.close()); null", nil)
		ben.MustEval("await hf.close(); null", nil)
		assertKept(t, w, s, root, c, endings.Anywhere...)
	case "handing over":
		ben := w.attacked(t, s.project(root, "Ben"), endings.Unsaved)
		ann.MustEval(`hf.addEventListener('lock:handover-requested', () => { `+attack+` }, {once: true}); null`, nil)
		ben.MustEval("await failure(autosave.requestEdit()); null", nil)
		ann.MustEval("await result; null", nil)
		endings.AssertFound(t, ben, "typed", endings.Anywhere...)
		ben.MustEval("await hf.close(); null", nil)
		ann.MustEval("await failure(hf.close()); null", nil)
		assertKept(t, w, s, root, c, endings.Anywhere...)
		ben.Spare()
	}
	assert.Empty(t, browser.Get[[]string](ann, "uncaught"))
}

// assertKept opens the document anew and asserts where the typed word is, and that what was shown afterwards is nowhere.
func assertKept(t *testing.T, w world, s setup, root string, c teardown, in ...string) {
	t.Helper()
	next := w.attacked(t, s.project(root, "Cleo"), endings.Unsaved)
	endings.AssertFound(t, next, "typed", in...)
	if c.then != "" {
		assert.Equal(t, "nowhere", browser.Get[string](next, fmt.Sprintf("await places('%s')", c.then)), "what was shown afterwards")
	}
	next.MustEval("await hf.close(); null", nil)
	next.Spare()
}
