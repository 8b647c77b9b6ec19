package e2e

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// late are those of one that does not save by itself for as long as an attack takes, with a server whose leases are short.
const late = "{debounceMs: 60000, idleMs: 60000, lock: {ttlMs: 3000, heartbeatIntervalMs: 600}}"

// soon are options of an AutoSave that finds out within seconds that its server does not answer.
const soon = "{debounceMs: 50, lock: {ttlMs: 3000, heartbeatIntervalMs: 600, backoff: {initialDelayMs: 200, maxDelayMs: 500, maxRetries: 0}}}"

var onlyLetters = regexp.MustCompile("[^A-Za-z0-9]+")

// cutOff is a site with a server behind it that can be cut off. The pages themselves are served on.
type cutOff struct {
	world
	wire *serving.Wire
}

func openCutOff(t *testing.T, options browser.Options) cutOff {
	t.Helper()
	server := serving.Run(t, "--data-dir", t.TempDir(), "--lock-ttl", "3s", "--rate", "0", "--new-rate", "0", "--log-level", "error")
	wire := serving.NewWire(t, "tcp", server.Address())
	mux := pages(t, siteDir)
	mux.Handle("/api/", wire.Proxy())
	return cutOff{world{browser.Start(t, options), browser.Serve(t, mux)}, wire}
}

// shared returns the options of a Holdfast that locks and saves on the server.
func (s setup) shared(root, owner string) string {
	return fmt.Sprintf("{host: '%s', root: '%s', ownerName: '%s', server: {url: location.origin}}", s.host, root, owner)
}

// eachHostShared is eachSetup for documents on a server, whose lock has a strategy of its own.
func eachHostShared(t *testing.T, test func(t *testing.T, s setup)) {
	eachHost(t, func(t *testing.T, host string) { test(t, setup{host, "remote"}) })
}

// A page is cut off from its server for longer than its lease lasts, goes on typing, and ends in any way: what it had is saved
// when the document is opened again with the server, and is shown as a draft before that.
func TestNothingLostWhileCutOffFromServer(t *testing.T) {
	t.Parallel()
	eachHostShared(t, func(t *testing.T, s setup) {
		w := openCutOff(t, quick)
		for _, expired := range []bool{true, false} {
			t.Run(fmt.Sprintf("expired: %v", expired), func(t *testing.T) {
				eachEnding(t, func(t *testing.T, end endings.Ending, round int, root string) {
					testCutOff(t, w, s, end, expired, round%2 == 0, root)
				})
			})
		}
	})
}

func testCutOff(t *testing.T, w cutOff, s setup, end endings.Ending, expired, openedOffline bool, root string) {
	defer w.wire.Cut(false)
	root = onlyLetters.ReplaceAllString(root, "-") // as names on the server are
	first, second := endings.Word(), endings.Word()
	ann := w.attacked(t, s.shared(root, "Ann"), soon)
	ann.MustEval("type('before'); await autosave.flushNow(); null", nil)
	w.wire.Cut(true)
	ann.MustEval("type(', "+first+"'); null", nil)
	if expired {
		ann.WaitFor("autosave.readOnly && heard('readonly').length === 1", 2*browser.Limit)
		ann.WaitFor("await drafted('"+first+"')", browser.Limit)
	} else {
		ann.MustEval("type(', "+second+"'); null", nil)
	}
	if end.Abrupt {
		w.WaitStored(t, first, browser.Limit)
		if !expired {
			w.WaitStored(t, second, browser.Limit)
		}
	}
	end.End(ann)
	if !openedOffline {
		w.wire.Cut(false)
	}
	next := w.Open(t, w.URL("/blank"))
	begin(next, s.shared(root, "Ann"))
	next.MustEval(editing, nil)
	next.MustEval(attacking, nil)
	if openedOffline {
		next.MustEval("result = edit("+soon+"); null", nil)
		w.wire.Cut(false)
		next.MustEval("await result; null", nil)
	} else {
		next.MustEval("await edit("+soon+"); null", nil)
	}
	endings.AssertFound(t, next, first, "content")
	if !expired {
		endings.AssertFound(t, next, second, "content")
	}
	assert.Contains(t, browser.Get[string](next, "current()"), "before")
	next.MustEval("await hf.close(); null", nil)
	next.Spare()
	ann.Spare()
}

// While a page was cut off somebody else saved: both texts are kept, and neither is put over the other.
func TestNothingLostWhenBothSidesChanged(t *testing.T) {
	t.Parallel()
	eachHostShared(t, func(t *testing.T, s setup) {
		w := openCutOff(t, quick)
		other := world{browser.Start(t, quick), w.Server}
		eachRound(t, 1, 20, func(t *testing.T, round int, root string) {
			root = onlyLetters.ReplaceAllString(root, "-") // as names on the server are
			mine, theirs := endings.Word(), endings.Word()
			ann := w.attacked(t, s.shared(root, "Ann"), soon)
			ann.MustEval("type('before'); await autosave.flushNow(); null", nil)
			w.wire.Cut(true)
			ann.MustEval("type(', "+mine+"'); null", nil)
			ann.WaitFor("autosave.readOnly && heard('readonly').length === 1", 2*browser.Limit)
			end := endings.All[round%len(endings.All)]
			end.EndAfter(t, w.Browser, ann, mine)
			w.wire.Cut(false)
			ben := other.attacked(t, s.shared(root, "Ben"), soon)
			ben.WaitFor("!autosave.readOnly", 2*browser.Limit)
			ben.MustEval("type(', "+theirs+"'); await autosave.flushNow(); await hf.close(); null", nil)

			next := w.attacked(t, s.shared(root, "Ann"), soon)
			endings.AssertFound(t, next, theirs, "content")
			endings.AssertFound(t, next, mine, "draft")
			next.WaitFor("autosave.state().drafts === 1", browser.Limit)
			next.MustEval("await hf.close(); null", nil)
			next.Spare()
			ann.Spare()
			ben.Spare()
		})
	})
}

// A project in this browser and one of the same name on a server are two documents. No text of one comes into the other.
func TestDraftsOfServerAndBrowserNeverMix(t *testing.T) {
	t.Parallel()
	eachHost(t, func(t *testing.T, host string) {
		s := setup{host, "web-lock"}
		w := openCutOff(t, quick)
		for _, onServer := range []bool{true, false} {
			t.Run(fmt.Sprintf("on the server: %v", onServer), func(t *testing.T) {
				eachEnding(t, func(t *testing.T, end endings.Ending, _ int, root string) {
					testNeverMix(t, w, s, end, onServer, root)
				})
			})
		}
	})
}

func testNeverMix(t *testing.T, w cutOff, s setup, end endings.Ending, onServer bool, root string) {
	root = onlyLetters.ReplaceAllString(root, "-") // as names on the server are
	mine, other := s.shared(root, "Ann"), s.project(root, "Ann")
	if !onServer {
		mine, other = other, mine
	}
	word := endings.Word()
	ann := w.attacked(t, mine, late)
	ann.MustEval("type('saved, '); await autosave.flushNow(); type('"+word+"'); null", nil)
	end.EndAfter(t, w.Browser, ann, word)
	ben := w.attacked(t, other, late)
	ben.WaitFor("!autosave.readOnly && heard('editable').length === 1", browser.Limit)
	ben.MustEval("type('of the other'); await autosave.flushNow(); null", nil)
	assert.Equal(t, "nowhere", browser.Get[string](ben, "await places('"+word+"')"))
	assert.Equal(t, "of the other", browser.Get[string](ben, "current()"))
	ben.MustEval("await hf.close(); null", nil)
	next := w.attacked(t, mine, late)
	endings.AssertFound(t, next, word, "content")
	assert.Equal(t, "nowhere", browser.Get[string](next, "await places('of the other')"))
	next.MustEval("await hf.close(); null", nil)
	for _, tab := range []*browser.Tab{ann, ben, next} {
		tab.Spare()
	}
}
