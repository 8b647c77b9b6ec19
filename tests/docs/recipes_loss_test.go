package docs

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

var full = flag.Bool("full", false, "end the pages of all recipes in all ways")

// A table is the environment of a recipe: its page in a browser, and a server that the test can cut off.
type table struct {
	*browser.Browser
	*browser.Server
	recipe
	wire *serving.Wire
}

// asked makes the imported package use the options in the page's address, and gives the test the opened objects.
const asked = `
import * as itself from "./holdfast-itself.js";
export * from "./holdfast-itself.js";
const asked = JSON.parse(new URLSearchParams(location.search).get("with"));
export const openHoldfast = async (options) => {
  const hf = globalThis.hf = await itself.openHoldfast({ ...options, ...asked.open });
  const init = hf.initAutoSave.bind(hf);
  hf.initAutoSave = async (take, options) => globalThis.autosave = await init(take, { ...options, ...asked.autosave });
  return hf;
};
`

// set prepares the environment for a recipe.
func set(t *testing.T, r recipe, parts map[string]string) table {
	t.Helper()
	server := serving.Run(t, "--data-dir", t.TempDir(), "--lock-ttl", "3s", "--rate", "0", "--new-rate", "0", "--log-level", "error")
	wire := serving.NewWire(t, "tcp", server.Address())
	mux := http.NewServeMux()
	mux.Handle("/", kitchenOf(t, r, r.exposed(parts)))
	mux.Handle("/api/", wire.Proxy())
	itself, err := os.ReadFile("../../web/site/holdfast.js")
	require.NoError(t, err)
	for path, script := range map[string]string{"/holdfast.js": asked, "/holdfast-itself.js": string(itself), "/blank": ""} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			kind := "text/javascript"
			if path == "/blank" {
				kind = "text/html"
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(script))
		})
	}
	return table{browser.Start(t, browser.Options{Shell: true}), browser.Serve(t, mux), r, wire}
}

type options map[string]any

// local returns the options of a document in this browser that does not save on its own during a test.
func local(root string) map[string]options {
	return map[string]options{"open": {"root": root}, "autosave": {"debounceMs": 60000, "idleMs": 60000}}
}

// shared returns the options of a document on the server. Its page detects within seconds that the server does not
// answer.
func (k table) shared(root string) map[string]options {
	return map[string]options{
		"open": {"root": root, "server": options{"url": k.URL("/")}},
		"autosave": {"debounceMs": 50, "lock": options{"ttlMs": 3000, "heartbeatIntervalMs": 600,
			"backoff": options{"initialDelayMs": 200, "maxDelayMs": 500, "maxRetries": 0}}},
	}
}

// open opens the page of the recipe.
func (k table) open(t *testing.T, with map[string]options) *browser.Tab {
	t.Helper()
	text, err := json.Marshal(with)
	require.NoError(t, err)
	return ready(k.Open(t, k.URL("/recipe?with="+url.QueryEscape(string(text)))))
}

// again returns the page after an ending: a reloaded page is still open, any other is opened again.
func (k table) again(t *testing.T, tab *browser.Tab, end endings.Ending, with map[string]options) *browser.Tab {
	t.Helper()
	if end.Name == "reloaded" {
		return ready(tab)
	}
	return k.open(t, with)
}

func ready(tab *browser.Tab) *browser.Tab {
	tab.WaitFor("globalThis.autosave && globalThis.shown", browser.Limit)
	tab.MustEval(endings.Script, nil)
	return tab
}

// write opens the page and types a word, which is not saved.
func (k table) write(t *testing.T, with map[string]options, word string) *browser.Tab {
	t.Helper()
	tab := k.open(t, with)
	shows(tab, "You edit.")
	k.typed(tab, word)
	return tab
}

func (k table) typed(tab *browser.Tab, word string) {
	tab.Show()
	k.begin(tab)
	tab.Type(word)
	tab.WaitFor("shown().includes('"+word+"')", browser.Limit)
}

// assertLeft asserts that the word is in the content of a page that was opened later, and is shown.
func assertLeft(t *testing.T, next *browser.Tab, word string) {
	t.Helper()
	endings.AssertFound(t, next, word, "content")
	next.WaitFor("shown().includes('"+word+"')", browser.Limit)
	leaves(next)
}

// stealer opens a page without an editor that can steal the lock.
func (k table) stealer(t *testing.T, root string) *browser.Tab {
	t.Helper()
	stealer := k.Open(t, k.URL("/blank"))
	stealer.MustEval("const {openHoldfast} = await import('/holdfast-itself.js'); globalThis.hf = await openHoldfast({root: '"+root+"'}); null", nil)
	return stealer
}

const steal = "globalThis.lease = await hf.acquireProjectLock({steal: true}); "

// stolenPage opens a page with saved text, types a word into it, and steals the lock of the page.
func (k table) stolenPage(t *testing.T, root, word string) (tab, stealer *browser.Tab) {
	t.Helper()
	tab = k.write(t, local(root), "before, ")
	tab.MustEval("await autosave.flushNow(); null", nil)
	k.typed(tab, word)
	stealer = k.stealer(t, root)
	stealer.MustEval(steal+"null", nil)
	shows(tab, lost)
	return tab, stealer
}

// leaves ends a page in an orderly way.
func leaves(tab *browser.Tab) {
	tab.MustEval("await hf.close(); null", nil)
	tab.Close()
}

// An attack is a way in which a page could lose text.
type attack struct {
	name string
	run  func(t *testing.T, k table, end endings.Ending, root, word string)
	once bool // whether it plays with only one ending
	each bool // whether every editor plays it in the short form, too
}

var attacks = []attack{
	{name: "left", run: leave},
	{name: "disposed", run: teardown("autosave.dispose()", "emptied()"), once: true},
	{name: "closed", run: teardown("hf.close()", "emptied()"), once: true},
	{name: "removed", run: teardown("autosave.dispose()", "removed()"), once: true, each: true},
	{name: "handing over", run: handOver},
	{name: "lock stolen", run: lockStolen},
	{name: "lock stolen and back", run: lockBack, once: true},
	{name: "conflict", run: conflict, each: true},
	{name: "cut off", run: cutOff},
	{name: "end of the browser", run: endOfBrowser, once: true},
}

// The recipes lose no text, for every ending of their pages.
func TestNothingLostByRecipes(t *testing.T) {
	t.Parallel()
	parts := ingredients(t, recipes)
	for place, r := range kitchen {
		t.Run(r.script, func(t *testing.T) {
			t.Parallel()
			k := set(t, r, parts)
			for i, o := range attacks {
				// The wiring is the same for all editors, so each one plays half of the attacks, with other endings than its neighbours.
				if !*full && !o.each && (i+place)%2 != 0 {
					continue
				}
				for n, end := range endings.All {
					if o.once && n > 0 || !*full && n != (i+place/2)%len(endings.All) && !o.once {
						continue
					}
					name := o.name
					if !o.once {
						name += ", " + end.Name
					}
					t.Run(name, func(t *testing.T) {
						root := strings.NewReplacer(", ", "-", " ", "-").Replace(name)
						o.run(t, k, end, root, endings.Word())
					})
				}
			}
		})
	}
}

func leave(t *testing.T, k table, end endings.Ending, root, word string) {
	tab := k.write(t, local(root), word)
	end.EndAfter(t, k.Browser, tab, word)
	assertLeft(t, k.again(t, tab, end, local(root)), word)
}

// teardown ends the AutoSave and empties or removes the editor in the same task. Nothing is reported as an error.
func teardown(call, then string) func(t *testing.T, k table, end endings.Ending, root, word string) {
	return func(t *testing.T, k table, _ endings.Ending, root, word string) {
		tab := k.write(t, local(root), word)
		tab.MustEval("const done = "+call+"; "+then+"; await done; null", nil)
		k.quiet(tab)
		tab.Close()
		assertLeft(t, k.open(t, local(root)), word)
	}
}

// handOver ends the page when another page asks for the lock.
func handOver(t *testing.T, k table, end endings.Ending, root, word string) {
	tab, other := k.write(t, local(root), word), k.open(t, local(root))
	if end.Abrupt {
		k.WaitStored(t, word, browser.Limit)
	}
	other.MustEval("document.querySelector('#ask').click()", nil)
	end.End(tab)
	endings.AssertFound(t, other, word, endings.Anywhere...)
	other.WaitFor("(shown() + document.querySelector('#drafts').textContent).includes('"+word+"')", browser.Limit)
	leaves(other)
}

// lockStolen ends a page that lost the lock. It is opened again while another page still holds the lock.
func lockStolen(t *testing.T, k table, end endings.Ending, root, word string) {
	tab, stealer := k.stolenPage(t, root, word)
	end.EndAfter(t, k.Browser, tab, word)
	next := k.again(t, tab, end, local(root))
	next.WaitFor("document.querySelector('#drafts').textContent.includes('"+word+"')", browser.Limit)
	leaves(stealer)
	endings.AssertFound(t, next, word, "content")
	next.WaitFor("shown().includes('"+word+"') && document.querySelector('#drafts').childElementCount === 0", browser.Limit)
	leaves(next)
}

// lockBack returns the lock to a page that lost it.
func lockBack(t *testing.T, k table, _ endings.Ending, root, word string) {
	tab, stealer := k.stolenPage(t, root, word)
	leaves(stealer)
	shows(tab, "You edit.")
	k.typed(tab, " and more")
	tab.MustEval("await autosave.flushNow(); null", nil)
	leaves(tab)
	assertLeft(t, k.open(t, local(root)), word)
}

// conflict makes another page save before the draft of a page that lost the lock is found. The user takes the draft.
func conflict(t *testing.T, k table, end endings.Ending, root, word string) {
	tab := k.write(t, local(root), "before, ")
	if k.merges {
		// Excalidraw measures a text when its field closes. If the font arrives after the save, the text changes then.
		tab.MustEval("await document.fonts.load('20px Excalifont', 'before'); null", nil)
		tab.Press("Escape")
		tab.WaitFor("document.querySelector('textarea.excalidraw-wysiwyg') === null", browser.Limit)
	}
	tab.MustEval("await autosave.flushNow(); null", nil)
	k.typed(tab, word)
	other := k.stealer(t, root)
	other.MustEval("globalThis.other = await hf.initAutoSave(() => "+strconv.Quote(k.theirs)+"); null", nil)
	tab.Suspend() // so that the draft is found after the other page has saved
	other.MustEval("await other.requestEdit({force: true, graceMs: 100}); other.markDirty(); await other.flushNow(); null", nil)
	tab.Continue()
	shows(tab, lost)
	end.EndAfter(t, k.Browser, tab, word)
	leaves(other)
	next := k.again(t, tab, end, local(root))
	if k.merges {
		next.WaitFor("['theirs', '"+word+"'].every((part) => shown().includes(part)) && document.querySelector('#drafts').childElementCount === 0", browser.Limit)
		endings.AssertFound(t, next, word, "content")
		endings.AssertFound(t, next, "theirs", "content")
		leaves(next)
		return
	}
	next.WaitFor("!autosave.readOnly && shown() === 'theirs' && document.querySelector('#drafts').textContent.includes('"+word+"')", browser.Limit)
	next.MustEval("document.querySelector('#drafts button').click()", nil)
	next.WaitFor("shown().includes('"+word+"') && document.querySelector('#drafts').childElementCount === 0", browser.Limit)
	endings.AssertFound(t, next, word, "content")
	endings.AssertFound(t, next, "theirs", "history")
	leaves(next)
}

// cutOff ends a page whose server is unreachable, and opens it again when the server answers.
func cutOff(t *testing.T, k table, end endings.Ending, root, word string) {
	defer k.wire.Cut(false)
	tab := k.write(t, k.shared(root), "before, ")
	tab.MustEval("await autosave.flushNow(); null", nil)
	k.wire.Cut(true)
	k.typed(tab, word)
	shows(tab, lost)
	end.EndAfter(t, k.Browser, tab, word)
	k.wire.Cut(false)
	assertLeft(t, k.again(t, tab, end, k.shared(root)), word)
}

func endOfBrowser(t *testing.T, k table, _ endings.Ending, root, word string) {
	k.write(t, local(root), word)
	k.WaitStored(t, word, browser.Limit)
	k.Restart(t, syscall.SIGKILL)
	assertLeft(t, k.open(t, local(root)), word)
}

// lost is the message of a read-only page with unsaved text.
const lost = "What you typed last is not saved yet. It is kept as a draft."
