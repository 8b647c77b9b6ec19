//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// made evaluates an expression over a module of this package.
func made(name, expression string) safejs.Value {
	function := must(safejs.Global().Get("Function"))
	module := must(call(context.Background(), must(function.New("return import('/package/"+name+"')")), "call"))
	return must(must(function.New("module", "return "+expression)).Invoke(module))
}

// prompt bounds what happens without a retry or an expiry, on a machine that does much else.
const prompt = 10 * time.Second

// newFiles returns the files of a project root; the helper saves them, if there is one.
func newFiles(root string) *Files {
	if helped() {
		return must(NewFiles(root, helper))
	}
	return must(NewFiles(root, made("savewriter.js", "new module.SaveWriter()")))
}

// newTables returns the object that runs a client's steps: the helper, if there is one.
func newTables() safejs.Value {
	if helped() {
		return helper
	}
	return made("tables.js", "new module.Tables()")
}

// withHelper makes a helper worker open the files of this program, as for a program in a page, until the test ends. The
// runner serves the folder of the package.
func withHelper(t *testing.T) {
	files := made("files.js", "new module.Files(() => new Worker('/package/testdata/helper.js', {type: 'module'}))")
	UseHelper(files)
	t.Cleanup(func() {
		UseHelper(safejs.Value{})
		must(files.Call("close"))
	})
}

// withHelperHere is withHelper without the worker, so that planted faults take effect.
func withHelperHere(t *testing.T) {
	UseHelper(made("files.js", `new module.Files(() => ({
		postMessage(ask) { module.serve(ask).then((data) => this.onmessage({ data })) },
	}))`))
	t.Cleanup(func() { UseHelper(safejs.Value{}) })
}

// withMortalHelper is withHelper for a test that ends the helper. The next request starts another one.
func withMortalHelper(t *testing.T) (end func()) {
	UseHelper(made("files.js", "new module.Files(() => self.helper = new Worker('/package/testdata/helper.js', {type: 'module'}))"))
	t.Cleanup(func() { must(helper.Call("close")); UseHelper(safejs.Value{}) })
	return func() {
		must(must(must(safejs.Global().Get("Function")).New("helper.onerror(new ErrorEvent('error', {message: 'planted'}))")).Invoke())
	}
}

// The guarantees for a program in a worker also hold for one in a page, and between the two.
func TestThroughAHelper(t *testing.T) {
	withHelper(t)
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"suite", TestFileLocks},
		{"close", TestClose},
		{"rest", TestClientRests},
		{"leases", TestLeases},
		{"killed", TestKilledBetweenAnyTwoSteps},
		{"kept", TestTableStaysOpen},
		{"rung", TestClientClosesTableForOthers},
		{"killed waiter", TestKilledWaiter},
		{"turn", TestOperationsOfOneTurnAreOneWrite},
		{"order of a turn", TestAnswersOfOneTurnKeepTheirOrder},
		{"denials of a turn", TestUnavailableBesideOthersOfItsTurn},
		{"killed turn", TestKilledDuringATurn},
		{"damage", TestDamageUnderHolder},
		{"directory", TestDirectoryInPlaceOfLockFile},
		{"newer version", TestNewerVersion},
		{"expiry", TestExpiredLeaseIsTakenOver},
		{"query", TestQuerySeesPendingOperationsOfOthers},
		{"frozen", TestQueryDoesNotWaitForFrozenClient},
		{"records", TestRecordsBesideAnotherMechanism},
		{"handles", TestOpenFileIsNeitherOpenedNorRemoved},
		{"saves", TestStore},
	} {
		t.Run(c.name, c.test)
	}
}

// A client whose step was overtaken decides again, on the file's present content.
func TestOvertakenStepIsDecidedAgain(t *testing.T) {
	root := newRoot()
	direct := newClient(t, root)
	inStepsOnly(direct)
	_, err := direct.Request(t.Context(), want("x"))
	require.NoError(t, err)

	withHelper(t)
	c := newClient(t, root)
	inStepsOnly(c)
	decided := 0
	require.NoError(t, c.steps.visit(t.Context(), func(s *session) error {
		decided++
		s.changed = true
		return nil
	}))
	assert.GreaterOrEqual(t, decided, 2, "it knew nothing of the file at first")
	before := decided
	require.NoError(t, c.steps.visit(t.Context(), func(s *session) error { decided++; return nil }))
	assert.Equal(t, before+1, decided, "it knows the file now")

	UseHelper(safejs.Value{})
	_, err = direct.Request(t.Context(), want("y"))
	require.NoError(t, err)
	withHelper(t)
	before = decided
	require.NoError(t, c.steps.visit(t.Context(), func(s *session) error { decided++; s.changed = true; return nil }))
	assert.Equal(t, before+2, decided)
	UseHelper(safejs.Value{})
	held, err := direct.Query(t.Context())
	require.NoError(t, err)
	assert.Len(t, held.Held, 2, "the entries of other clients are not overwritten")
}

// Calls fail with a reason if the helper has ended or cannot be loaded.
func TestCallsFailWithoutHelper(t *testing.T) {
	for name, script := range map[string]string{"ended": "/package/testdata/helper.js", "missing": "/package/testdata/none.js"} {
		t.Run(name, func(t *testing.T) {
			withHelper(t)
			UseHelper(made("files.js", "new module.Files(() => new Worker('"+script+"', {type: 'module'}))"))
			c := newClient(t, newRoot())
			if name == "ended" {
				must(helper.Call("close"))
			}
			_, err := try(c, "x")
			require.Error(t, err)
			if name == "missing" {
				assert.Contains(t, err.Error(), "holdfast-helper.js")
			}
		})
	}
}

// The helper of a page is replaced, so the browser closes the page's liveness file. The page keeps the locks that nobody
// has taken from it by then, and no other client counts it as gone afterwards.
func TestLocksOutliveTheirHelper(t *testing.T) {
	end := withMortalHelper(t)
	root := newRoot()
	c, other := newClient(t, root), startPeer(t, root, safejs.Null())
	recoveries := 0
	c.steps.options.Warn = func(string) { recoveries++ }
	g, err := c.Request(t.Context(), want("x"))
	require.NoError(t, err)
	end()
	makeStep(t, c)

	other.tell("request", "x")
	inLine(t, c, 1)
	<-time.After(2 * sweeping) // clients look for others that are gone meanwhile
	state, err := c.Query(t.Context())
	require.NoError(t, err)
	assert.Len(t, state.Pending, 1)
	assert.False(t, lost(g))
	assert.Zero(t, recoveries)
	require.NoError(t, g.Release(t.Context()))
	other.expect("granted")
}

// A page's helper ends while the page holds one lock and waits for another one. Another client takes the lock before the page
// notices. The page loses that lock and stays in line for the other one. The table was not replaced.
func TestLockTakenWhileHelperIsReplaced(t *testing.T) {
	end := withMortalHelper(t)
	root := newRoot()
	c, taker, holder := newClient(t, root), startPeer(t, root, safejs.Null()), startPeer(t, root, safejs.Null())
	warnings := 0
	c.steps.options.Warn = func(string) { warnings++ }
	taken := hold(t, c, "x")
	holder.tell("request", "y")
	holder.expect("granted")
	waited := make(chan lock.Grant, 1)
	go func() { waited <- must(c.Request(context.Background(), want("y"))) }()
	inLine(t, c, 1)
	taker.tell("request", "x")
	inLine(t, c, 2)

	c.steps.turn.take(context.Background()) // it does not notice
	end()
	taker.expect("granted")
	c.steps.turn.give()
	makeStep(t, c)
	assert.True(t, lost(taken))
	assert.Zero(t, warnings)
	state, err := c.Query(t.Context())
	require.NoError(t, err)
	for _, held := range state.Held {
		assert.NotEqual(t, c.steps.liveness.alive.id, held.ClientID)
	}
	assert.Len(t, state.Held, 2)
	holder.tell("release", "y")
	free(t, <-waited)
}

// A page's helper ends while the browser keeps the lock of the page's lease. Another client takes the page for dead and removes its
// record before the page notices, between two steps or during one. Nobody has taken the lock, so the lease goes on.
func TestRecordOutlivesItsHelper(t *testing.T) {
	for _, step := range []string{"between steps", "decided"} {
		t.Run(step, func(t *testing.T) { testRecordOutlivesItsHelper(t, step) })
	}
}

func testRecordOutlivesItsHelper(t *testing.T, step string) {
	end := withMortalHelper(t)
	root := newRoot()
	c, viewer, other := newClient(t, root), newClient(t, root), startPeer(t, root, safejs.Null())
	other.tell("request", "y")
	other.expect("granted")
	lease := claimed(t, c, newRecord("x", lock.Exclusive))
	c.steps.turn.take(context.Background())
	c.steps.hook = func(now string) {
		if now != step {
			return
		}
		c.steps.hook = nil
		end()
		for former := c.steps.liveness.alive.id; must(viewer.steps.glance(t.Context())).knows(former); {
			require.NoError(t, wait.For(t.Context(), time.Millisecond))
		}
	}
	c.steps.at("between steps")
	c.steps.turn.give()
	require.NoError(t, c.Renew(t.Context(), lease))
	require.NoError(t, c.Remove(t.Context(), lease))
}

// The helper ends while the page does not look, and only a client that has begun since then is in the table. That client removes the entries of
// the page, and the page restores its record: the table is the one that it knows.
func TestRecordOutlivesItsHelperAmongNewcomers(t *testing.T) {
	end := withMortalHelper(t)
	root := newRoot()
	c, viewer := newClient(t, root), newClient(t, root)
	lease := claimed(t, c, newRecord("x", lock.Exclusive))
	require.NoError(t, wait.For(t.Context(), 20*time.Millisecond))
	makeStep(t, c)
	c.steps.turn.take(context.Background()) // it does not look
	other := startPeer(t, root, safejs.Null())
	other.tell("request", "y")
	other.expect("granted")
	end()
	for former := c.steps.liveness.alive.id; must(viewer.steps.glance(t.Context())).knows(former); {
		require.NoError(t, wait.For(t.Context(), time.Millisecond))
	}
	c.steps.turn.give()
	require.NoError(t, c.Renew(t.Context(), lease))
	record, there, err := viewer.Read(t.Context(), "x")
	require.NoError(t, err)
	assert.True(t, there)
	assert.Equal(t, lease.LeaseID, record.LeaseID)
}

// The helper ends during a step, and its successor makes the step. The liveness file of the entry in the table is closed by then. When
// the request is answered, the client has a new one, so no other client takes the lock.
func TestStepOfReplacedHelper(t *testing.T) {
	withMortalHelper(t)
	root := newRoot()
	c, other := newClient(t, root), startPeer(t, root, safejs.Null())
	free(t, hold(t, c, "y"))
	c.steps.file.tables = must(must(must(safejs.Global().Get("Function")).New("files", `return {swap(...step) {
		this.swap = (...step) => files.swap(...step);
		helper.onerror(new ErrorEvent('error', {message: 'planted'}));
		throw new DOMException('the helper worker did not answer in time', 'TimeoutError');
	}}`)).Invoke(helper))
	held := hold(t, c, "x")
	c.steps.turn.take(context.Background()) // it does not look
	other.tell("request", "x")
	select {
	case text := <-other.heard:
		assert.Fail(t, "two holders", text)
	case <-time.After(4 * slowest): // it has looked within this time
	}
	c.steps.turn.give()
	assert.False(t, lost(held))
	free(t, held)
	other.expect("granted")
}

// The helper ends and cannot be started again, or the next one is silent, so others may take the lock. The page learns that it may have
// lost it.
func TestLockIsLostWithoutHelper(t *testing.T) {
	run := func(code string) { must(must(must(safejs.Global().Get("Function")).New(code)).Invoke()) }
	for name, next := range map[string]string{
		"not started": "throw new DOMException('the script cannot be loaded', 'NetworkError')",
		"silent":      "return {postMessage() {}, terminate() {}}",
	} {
		t.Run(name, func(t *testing.T) {
			UseHelper(made("files.js", `new module.Files(() => {
				if (self.started) `+next+`;
				self.started = true;
				return self.helper = new Worker('/package/testdata/helper.js', {type: 'module'});
			})`))
			t.Cleanup(func() { must(helper.Call("close")); UseHelper(safejs.Value{}); run("self.started = false") })
			root := newRoot()
			c, other := must(NewFileLocks(root, Options{Tables: newTables()})), startPeer(t, root, safejs.Null())
			held := hold(t, c, "x")
			run("helper.onerror(new ErrorEvent('error', {message: 'planted'}))")
			other.tell("request", "x")
			other.expect("granted")
			require.Eventually(t, func() bool { return lost(held) }, failures*(stepLimit+resting)+prompt, time.Millisecond)
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			_ = c.Close(ctx) // it cannot remove its entry
		})
	}
}

// A request that cannot be sent to the helper has failed. Nobody waits for its answer, so the helper does not seem to be
// stuck.
func TestUnsentRequestIsNotAwaited(t *testing.T) {
	run := func(body string) safejs.Value {
		return must(must(must(safejs.Global().Get("Function")).New(body)).Invoke())
	}
	run(`self.timers = new Set();
		self.native = [setInterval, clearInterval];
		self.setInterval = (...args) => { const id = native[0].call(self, ...args); timers.add(id); return id; };
		self.clearInterval = (id) => { timers.delete(id); native[1].call(self, id); };`)
	defer run("[self.setInterval, self.clearInterval] = native")
	withHelper(t)
	_, err := call(t.Context(), helper, "probe", must(must(safejs.Global().Get("Function")).New()))
	require.True(t, isNamed(err, "DataCloneError"), err)
	must(call(t.Context(), helper, "preopen", newRoot()))
	require.Eventually(t, func() bool { return must(run("return timers.size").Int()) == 0 }, prompt, 10*time.Millisecond)
}

// A snapshot arrives after a later one was sealed. Neither the helper nor one that replaces it opens the draft again: other pages
// would not see the draft, and one that another page has made the content would come back.
func TestReplacedHelperLeavesSealedDraftClosed(t *testing.T) {
	files := made("files.js", `new module.Files(() => (self.fake = { sent: [], terminate() {}, postMessage(ask) {
		this.sent.push(ask.args.slice(0, 3));
		if (ask.file) queueMicrotask(() => this.onmessage({ data: { file: ask.file } }));
	} }))`)
	defer func() { must(files.Call("close")) }()
	journals := must(files.Get("journals"))
	entry := func(number int) map[string]any {
		return map[string]any{"draft": "d", "number": number, "base": "", "at": 1}
	}
	must(call(t.Context(), journals, "bind", 1, "folder", "o", "n"))
	must(call(t.Context(), journals, "seal", 1, entry(5), "newer"))
	must(call(t.Context(), journals, "write", 1, entry(4), "older"))
	must(must(must(safejs.Global().Get("Function")).New("fake.onerror(new ErrorEvent('error', {message: 'planted'}))")).Invoke())
	must(call(t.Context(), journals, "list", "folder"))
	must(call(t.Context(), journals, "write", 1, entry(3), "oldest"))
	sent := must(must(safejs.Global().Get("JSON")).Call("stringify", must(must(safejs.Global().Get("fake")).Get("sent"))))
	assert.NotContains(t, must(sent.String()), `"write"`)
	assert.Contains(t, must(sent.String()), `"bind"`)

	must(call(t.Context(), journals, "write", 1, entry(6), "newest"))
	sent = must(must(safejs.Global().Get("JSON")).Call("stringify", must(must(safejs.Global().Get("fake")).Get("sent"))))
	assert.Contains(t, must(sent.String()), `"write"`)
}

// The helper ends after the step that grants a lock, and another client takes the lock before the page has answered the request. The
// request waits in line again: it does not report the lost grant.
func TestGrantOfReplacedHelper(t *testing.T) {
	end := withMortalHelper(t)
	root := newRoot()
	c, other := newClient(t, root), startPeer(t, root, safejs.Null())
	free(t, hold(t, c, "y"))
	c.steps.hook = func(step string) {
		if step == "closed" {
			c.steps.hook = nil
			end()
			other.tell("request", "x")
			other.expect("granted")
		}
	}
	granted := make(chan lock.Grant, 1)
	go func() { granted <- must(c.Request(context.Background(), want("x"))) }()
	select {
	case g := <-granted:
		require.Fail(t, "two holders", "lost: %v", lost(g))
	case <-time.After(4 * slowest): // it has looked within this time
	}
	other.tell("release", "x")
	free(t, <-granted)
}
