//go:build js && wasm

package jsbridge

import "github.com/hack-pad/safejs"

// Keeper knows the functions that give locks back, so that the loader can call them
// when this program has died: in a page, unlike in a worker, the browser keeps what a
// dead program held.
type Keeper struct{ set safejs.Value }

// NewKeeper returns a keeper over a JavaScript Set; anything else means that nobody has
// to know.
func NewKeeper(set safejs.Value) Keeper { return Keeper{set} }

func (k Keeper) add(release safejs.Value)    { k.call("add", release) }
func (k Keeper) remove(release safejs.Value) { k.call("delete", release) }

func (k Keeper) call(method string, release safejs.Value) {
	if k.set.Type() == safejs.TypeObject {
		_, _ = k.set.Call(method, release)
	}
}
