//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// A client opens its liveness file after another one has probed it and before that one removes it: it lives.
func TestClientThatOpensItsFileAfterTheProbeLives(t *testing.T) {
	ctx := t.Context()
	a := newClient(t, lock.NewID())
	const client = "begins"
	file, err := a.steps.liveness.alive.dir.file(ctx, client, true)
	require.NoError(t, err)
	folders := prototype("FileSystemDirectoryHandle")
	real := must(folders.Get("removeEntry"))
	opener := must(safejs.Global().Call("eval", `((file, real) => {
		const held = []
		return { held, remove: async function (name) {
			if (name === "begins" && held.length === 0) held.push(await file.createSyncAccessHandle())
			return real.call(this, name)
		} }
	})`))
	patch := must(opener.Invoke(file, real))
	require.NoError(t, folders.Set("removeEntry", must(patch.Get("remove"))))
	defer func() { require.NoError(t, folders.Set("removeEntry", real)) }()

	assert.False(t, a.steps.liveness.alive.gone(ctx, client), "it has its file open")
	_, err = must(must(patch.Get("held")).Index(0)).Call("close")
	require.NoError(t, err)
	assert.True(t, a.steps.liveness.alive.gone(ctx, client), "it has ended")
}

// The same, if the other one gives up waiting for the removal.
func TestClientThatOpensItsFileAfterAProbeThatIsGivenUpLives(t *testing.T) {
	a := newClient(t, lock.NewID())
	file, err := a.steps.liveness.alive.dir.file(t.Context(), "begins", true)
	require.NoError(t, err)
	folders := prototype("FileSystemDirectoryHandle")
	real := must(folders.Get("removeEntry"))
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var scope jsbridge.Scope
	defer scope.Release()
	stop, err := scope.Func(func([]safejs.Value) any { giveUp(); return nil })
	require.NoError(t, err)
	patch := must(safejs.Global().Call("eval", `((file, real, stop) => async function (name) {
		this.own = await file.createSyncAccessHandle()
		stop()
		await new Promise(done => setTimeout(done, 100))
		return real.call(this, name)
	})`))
	require.NoError(t, folders.Set("removeEntry", must(patch.Invoke(file, real, stop))))
	defer func() { require.NoError(t, folders.Set("removeEntry", real)) }()

	assert.False(t, a.steps.liveness.alive.gone(ctx, "begins"), "it has its file open")
}

// A client is frozen between the opening of its liveness file and its first entry. Other clients wait for it once, and
// not again for each client that comes later.
func TestClientWithoutEntryIsWaitedForOnce(t *testing.T) {
	ctx, root := t.Context(), newRoot()
	options := Options{Tables: newTables(), TTL: 2 * time.Second}
	frozen, err := NewFileLocks(root, options)
	require.NoError(t, err)
	err = frozen.steps.liveness.alive.begin(ctx)
	require.NoError(t, err)
	defer frozen.steps.liveness.alive.end(context.Background())

	var warnings []string
	options.Warn = func(detail string) { warnings = append(warnings, detail) }
	use := func() {
		c, err := NewFileLocks(root, options)
		require.NoError(t, err)
		g, err := c.Request(ctx, lock.Request{Wants: []lock.Want{{Name: "x", Mode: lock.Exclusive}}})
		require.NoError(t, err)
		require.NoError(t, g.Release(ctx))
		require.NoError(t, c.Close(ctx))
	}
	use()
	require.NotEmpty(t, warnings, "the entries of the client are unknown")
	warnings = nil
	for range 3 {
		use()
	}
	assert.Empty(t, warnings, "the table knows of it now")

	frozen.steps.liveness.alive.end(ctx) // it wakes and ends
	use()
	assert.Empty(t, warnings)
}

// The first request of a client is given up while the client lists the others. The next request waits, and is granted when the lock is free.
func TestRequestIsGrantedAfterOneThatWasGivenUpAtTheBeginning(t *testing.T) {
	root := newRoot()
	holder := newClient(t, root)
	g := hold(t, holder, "x")
	folders := prototype("FileSystemDirectoryHandle")
	real := must(folders.Get("keys"))
	ctx, giveUp := context.WithCancel(t.Context())
	var scope jsbridge.Scope
	defer scope.Release()
	stop, err := scope.Func(func([]safejs.Value) any { giveUp(); return nil })
	require.NoError(t, err)
	patch := must(safejs.Global().Call("eval", `((real, stop) => function () { stop(); return real.call(this) })`))
	require.NoError(t, folders.Set("keys", must(patch.Invoke(real, stop))))
	c := newClient(t, root)
	_, err = c.Request(ctx, want("x"))
	require.NoError(t, folders.Set("keys", real))
	require.ErrorIs(t, err, context.Canceled)

	granted := make(chan error, 1)
	go func() {
		_, err := c.Request(t.Context(), want("x"))
		granted <- err
	}()
	for state := (lock.Snapshot{}); len(state.Pending) == 0; {
		state = must(holder.Query(t.Context()))
	}
	free(t, g)
	select {
	case err := <-granted:
		require.NoError(t, err)
	case <-time.After(prompt):
		require.Fail(t, "nobody looks at the table for the waiter")
	}
}

// Another goroutine finds out that the holder has ended, after the step of a request that does not want to wait. The request gets the lock.
func TestDeadHolderIsFoundByAnother(t *testing.T) {
	root := newRoot()
	c, p := newClient(t, root), startPeer(t, root, safejs.Null())
	p.tell("request", "x")
	p.expect("granted")
	holder := must(c.Query(t.Context())).Held[0].ClientID
	p.kill()
	ended(t, c)
	c.steps.hook = func(step string) {
		if step == "closed" {
			c.steps.hook = nil
			c.steps.liveness.dead[holder] = true
		}
	}
	g, err := try(c, "x")
	require.NoError(t, err)
	free(t, g)
}
