//go:build js && wasm

package opfs

import (
	"context"
	"testing"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// made returns what an expression makes of a module of this package.
func made(name, expression string) safejs.Value {
	function := must(safejs.Global().Get("Function"))
	module := must(call(context.Background(), must(function.New("return import('/package/"+name+"')")), "call"))
	return must(must(function.New("module", "return "+expression)).Invoke(module))
}

// newFiles returns the files of a project root, which the helper saves where there is one.
func newFiles(root string) *Files {
	if helped() {
		return must(NewFiles(root, helper))
	}
	return must(NewFiles(root, made("savings.js", "new module.Savings()")))
}

// newTables returns what makes the steps of a client: the helper where there is one.
func newTables() safejs.Value {
	if helped() {
		return helper
	}
	return made("tables.js", "new module.Tables()")
}

// withHelper has a helper worker open the files of this program, as for one in a page,
// until the test ends. The runner serves the folder of the package.
func withHelper(t *testing.T) {
	files := made("files.js", "new module.Files(() => new Worker('/package/testdata/helper.js', {type: 'module'}))")
	UseHelper(files)
	t.Cleanup(func() {
		UseHelper(safejs.Value{})
		must(files.Call("close"))
	})
}

// withHelperHere is withHelper without the worker, so that what is planted here is met.
func withHelperHere(t *testing.T) {
	UseHelper(made("files.js", `new module.Files(() => ({
		postMessage(ask) { module.serve(ask).then((data) => this.onmessage({ data })) },
	}))`))
	t.Cleanup(func() { UseHelper(safejs.Value{}) })
}

// What holds for a program in a worker holds for one in a page, and between the two.
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
		{"kept", TestTheTableIsKept},
		{"rung", TestAKeeperYieldsAtOnce},
		{"killed waiter", TestKilledWaiter},
		{"damage", TestDamageUnderAHolder},
		{"directory", TestDirectoryInItsPlace},
		{"newer version", TestNewerVersion},
		{"expiry", TestExpiredLeaseIsTakenOver},
		{"query", TestQuerySeesWhatOthersAreAbout},
		{"frozen", TestQueryDoesNotWaitForWhoIsFrozen},
		{"records", TestRecordsBesideAnotherMechanism},
		{"handles", TestOpenFileIsNeitherOpenedNorRemoved},
		{"saves", TestStore},
	} {
		t.Run(c.name, c.test)
	}
}

// Whoever has been overtaken decides anew, on what the file has now.
func TestSwapIsDecidedAnew(t *testing.T) {
	root := newRoot()
	direct := newClient(t, root)
	_, err := direct.Request(t.Context(), want("x"))
	require.NoError(t, err)

	withHelper(t)
	c := newClient(t, root)
	decided := 0
	require.NoError(t, c.visit(t.Context(), func(s *session) error {
		decided++
		s.changed = true
		return nil
	}))
	assert.GreaterOrEqual(t, decided, 2, "it knew nothing of the file at first")
	before := decided
	require.NoError(t, c.visit(t.Context(), func(s *session) error { decided++; return nil }))
	assert.Equal(t, before+1, decided, "it knows the file now")

	UseHelper(safejs.Value{})
	_, err = direct.Request(t.Context(), want("y"))
	require.NoError(t, err)
	withHelper(t)
	before = decided
	require.NoError(t, c.visit(t.Context(), func(s *session) error { decided++; s.changed = true; return nil }))
	assert.Equal(t, before+2, decided)
	UseHelper(safejs.Value{})
	held, err := direct.Query(t.Context())
	require.NoError(t, err)
	assert.Len(t, held.Held, 2, "what others wrote is not overwritten")
}

// Where the helper has ended or cannot be loaded, calls fail and say so.
func TestHelperIsGone(t *testing.T) {
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
