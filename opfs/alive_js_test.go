//go:build js && wasm

package opfs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/lock"
)

// A client opens its liveness file after another one has probed it and before that one removes it: it lives.
func TestClientThatOpensItsFileAfterTheProbeLives(t *testing.T) {
	ctx := t.Context()
	a := newClient(t, lock.NewID())
	const client = "begins"
	file, err := a.alive.dir.file(ctx, client, true)
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

	assert.False(t, a.alive.gone(ctx, client), "it has its file open")
	_, err = must(must(patch.Get("held")).Index(0)).Call("close")
	require.NoError(t, err)
	assert.True(t, a.alive.gone(ctx, client), "it has ended")
}
