//go:build js && wasm

package opfs

import (
	"strings"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// bell tells other clients over a BroadcastChannel which entries have something to look
// for in the table. Whoever does not hear it looks by itself a little later.
type bell struct {
	value safejs.Value
	scope jsbridge.Scope
	rung  bool // there is a channel
}

// everyone instead of an entry's id means all clients.
const everyone = "*"

func newBell(name string, heard func(ids []string)) *bell {
	b := &bell{}
	class, err := safejs.Global().Get("BroadcastChannel")
	if err != nil || class.Type() != safejs.TypeFunction {
		return b
	}
	listener, err := b.scope.Func(func(args []safejs.Value) any {
		if ids, err := args[0].Get("data"); err == nil && ids.Type() == safejs.TypeString {
			text, _ := ids.String()
			heard(strings.Fields(text))
		}
		return nil
	})
	if err == nil {
		b.value, err = jsbridge.Broadcast(name)
	}
	if err == nil {
		_, err = b.value.Call("addEventListener", "message", listener)
	}
	b.rung = err == nil
	return b
}

func (b *bell) ring(ids []string) {
	if b.rung && len(ids) > 0 {
		_, _ = b.value.Call("postMessage", strings.Join(ids, " "))
	}
}

func (b *bell) close() {
	if b.rung {
		_, _ = b.value.Call("close")
	}
	b.scope.Release()
}
