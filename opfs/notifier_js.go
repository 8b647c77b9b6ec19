//go:build js && wasm

package opfs

import (
	"strings"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

// notifier sends notifications over a BroadcastChannel to the clients whose entries should read the table. A client that misses a
// notification reads the table by itself a little later.
type notifier struct {
	name  string
	heard func(ids []string)
	begun bool // listen was called
	value safejs.Value
	scope jsbridge.Scope
	open  bool // there is a channel
}

// everyone stands for all clients in place of an entry's id.
const everyone = "*"

// listen opens the channel, the first time.
func (n *notifier) listen() {
	if n.begun {
		return
	}
	n.begun = true
	class, err := safejs.Global().Get("BroadcastChannel")
	if err != nil || class.Type() != safejs.TypeFunction {
		return
	}
	listener, err := n.scope.Func(func(args []safejs.Value) any {
		if ids, err := args[0].Get("data"); err == nil && ids.Type() == safejs.TypeString {
			text, _ := ids.String()
			n.heard(strings.Fields(text))
		}
		return nil
	})
	if err == nil {
		n.value, err = jsbridge.Broadcast(n.name)
	}
	if err == nil {
		_, err = n.value.Call("addEventListener", "message", listener)
	}
	n.open = err == nil
}

func (n *notifier) notify(ids []string) {
	n.listen()
	if n.open && len(ids) > 0 {
		_, _ = n.value.Call("postMessage", strings.Join(ids, " "))
	}
}

func (n *notifier) close() {
	n.begun = true
	if n.open {
		_, _ = n.value.Call("close")
	}
	n.scope.Release()
}
