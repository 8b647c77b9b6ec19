//go:build js && wasm

package opfs

import (
	"testing"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/assert"
)

// A request that does not want to wait sees exactly the operations that its page began before.
func TestUnavailableBesideOthersOfItsTurn(t *testing.T) {
	root := newRoot()
	other, c := newClient(t, root), newClient(t, root)
	elsewhere, held := hold(t, other, "elsewhere"), hold(t, c, "held")
	a := newAnswers(t, c)
	inOneTurn(c,
		a.request("waits", want("elsewhere")), a.request("behind a waiter", optional("elsewhere")),
		a.request("before the release", optional("held")), a.release("release", held), a.request("after the release", optional("held")),
		a.request("first", optional("free")), a.request("later", want("free")), a.request("last", optional("free")))()
	assert.Equal(t, []string{"behind a waiter fails", "before the release fails", "release", "after the release", "first", "last fails"}, a.next(6))
	free(t, elsewhere)
	assert.Equal(t, "waits", <-a.given)
	free(t, a.grants["first"])
	assert.Equal(t, "later", <-a.given)
}

// The holder of a lock has ended. A request that does not want to wait gets the lock; a later one of the same turn does not overtake it.
func TestUnavailableBecauseOfADeadHolder(t *testing.T) {
	root := newRoot()
	c, p := newClient(t, root), startPeer(t, root, safejs.Null())
	held := hold(t, c, "y")
	p.tell("request", "x")
	p.expect("granted")
	p.kill()
	ended(t, c)
	a := newAnswers(t, c)
	inOneTurn(c, a.release("release", held), a.request("first", optional("x")), a.request("second", want("x")), a.request("third", want("y")))()
	assert.Equal(t, []string{"release", "first", "third"}, a.next(3))
	free(t, a.grants["first"])
	assert.Equal(t, "second", <-a.given)
}
