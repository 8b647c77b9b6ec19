//go:build js && wasm

package jsbridge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

func TestEditsReachOtherPages(t *testing.T) {
	name := "edits " + lock.NewID()
	open := func() Edits {
		c, err := NewChannel(name)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return Edits{c}
	}
	a, b := open(), open()
	heard := make(chan autosave.Message, 10)
	stop, err := b.Listen(func(m autosave.Message) { heard <- m })
	require.NoError(t, err)
	defer stop()
	at := time.UnixMilli(1_700_000_000_000)
	all := []autosave.Message{
		{Kind: autosave.EditRequest, Round: "r", From: "a", Document: "//book/1", Grace: time.Minute, Force: true, Question: 2},
		{Kind: autosave.EditGranted, Round: "r", From: "a", Detail: "l", Question: 2},
		{Kind: autosave.EditRefused, Round: "r", From: "a", Detail: "not now"},
		{Kind: autosave.EditCancelled, Round: "r", From: "a"},
		{Kind: autosave.Edits, From: "a", Holder: lock.Holder{Resource: "p", Mode: lock.Exclusive, Strategy: lock.WebLock,
			OwnerID: "a", OwnerName: "Ann", LeaseID: "l", Token: 7, Since: at, ExpiresAt: at.Add(time.Second)}},
	}
	// A post of another script of the origin is no message, or an empty one.
	for _, foreign := range []any{7, "text", nil, map[string]any{"kind": 7}, map[string]any{"kind": "edits", "holder": "me", "force": "yes"}} {
		_, err := a.value.Call("postMessage", foreign)
		require.NoError(t, err)
	}
	for _, m := range all {
		require.NoError(t, a.Post(m))
	}
	assert.Equal(t, autosave.Message{Kind: autosave.Edits}, <-heard)
	for _, m := range all {
		assert.Equal(t, m, <-heard)
	}
}
