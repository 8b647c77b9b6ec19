package waitgraph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two requests to hand over, for documents of which one is below the other, put two tickets at the front of one line.
func TestTicketsAtOnePlace(t *testing.T) {
	want := func(id string, path ...string) Want { return Want{ID: id, Owner: id, Paths: [][]string{path}} }
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		g := New()
		g.Join(&Ticket{Want: want("a", "p"), Place: 1})
		g.Join(&Ticket{Want: want("b", "p", "q"), Place: 1})
		g.Join(&Ticket{Want: want("c", "p"), Place: 7})
		assert.True(t, g.Ahead("a").Free())
		assert.True(t, g.Ahead("b").Free())
		assert.False(t, g.Ahead("c").Free())
		for _, id := range order {
			assert.False(t, g.Ahead("c").Free())
			g.Leave(id)
		}
		assert.True(t, g.Ahead("c").Free(), "participants that left leave nothing")
	}
}

// All slots of many places are held, each by a lease that has the slot at every place. A request for a slot waits for each of the leases once,
// so its cost does not grow with the square of the places.
func TestHoldersOfSlotsOfManyPlaces(t *testing.T) {
	graph := New()
	want := func(id string) Want {
		w := Want{ID: id, Owner: id, Slots: 1000}
		for depth := range 16 {
			w.Paths = append(w.Paths, append(slices.Repeat([]string{"a"}, depth), fmt.Sprint("leaf-", depth)))
		}
		return w
	}
	for slot := range 1000 {
		graph.Hold(&Claim{want(fmt.Sprint("l", slot)), slot})
	}
	assert.Len(t, graph.Before(want("w")).Claims, 1000)
	graph.Release("l7")
	assert.Equal(t, Conflicts{Slot: 7}, graph.Before(want("w")))
}

// Many wait for one of two slots. One of the holders waits behind another request for another place. The look for the waiters that it may go
// ahead of sees each of them a few times.
func TestManyWaitersForASlotOfAWaiter(t *testing.T) {
	graph := New()
	p, q := [][]string{{"p"}}, [][]string{{"q"}}
	graph.Hold(&Claim{Want{ID: "a", Owner: "Ann", Paths: p, Slots: 2}, 0})
	graph.Hold(&Claim{Want{ID: "b", Owner: "Bob", Paths: p, Slots: 2}, 1})
	graph.Hold(&Claim{Want{ID: "c", Owner: "Eve", Paths: q}, 0})
	for i := range 2000 {
		graph.Join(&Ticket{Want: Want{ID: fmt.Sprint(i), Owner: fmt.Sprint(i), Paths: p, Slots: 2}, Place: int64(i)})
	}
	graph.Join(&Ticket{Want: Want{ID: "ahead", Owner: "Ben", Paths: q}, Place: 2000})
	graph.Join(&Ticket{Want: Want{ID: "ann", Owner: "Ann", Paths: q}, Place: 2001})
	before := graph.steps
	assert.Equal(t, "ahead", graph.Ahead("ann").Ticket.ID)
	assert.Less(t, graph.steps-before, 20_000)
}

// An owner has many requests in the lines of many places, and somebody else waits behind them. A further lease of the owner closes no cycle, and
// finding that sees each place of a request a few times.
func TestManyRequestsOfOneOwner(t *testing.T) {
	graph := New()
	var paths [][]string
	for i := range 16 {
		paths = append(paths, []string{"p", fmt.Sprint(i)})
	}
	graph.Hold(&Claim{Want{ID: "b", Owner: "Bob", Paths: paths}, 0})
	for i := range 6000 {
		graph.Join(&Ticket{Want: Want{ID: fmt.Sprint(i), Owner: "Ann", Paths: paths}, Place: int64(i)})
	}
	graph.Join(&Ticket{Want: Want{ID: "eve", Owner: "Eve", Paths: paths}, Place: 6000})
	graph.Hold(&Claim{Want{ID: "a", Owner: "Ann", Paths: [][]string{{"q"}}}, 0})
	before := graph.steps
	assert.Equal(t, Effects{}, graph.Check("Ann"))
	assert.Less(t, graph.steps-before, 480_000)
}

// Thousands of owners wait for each other in a chain, and joined the line in the reverse order. At its end, one waits for a slot, of which another
// is free. The look for the owners that wait for a holder of that place finds none, and sees each of them a few times.
func TestAChainOfOwnersInReverseOrder(t *testing.T) {
	const n = 8000
	graph := New()
	place := func(i int) [][]string { return [][]string{{fmt.Sprint(i)}} }
	graph.Hold(&Claim{Want{ID: "a", Owner: "Ann", Paths: place(0), Slots: 2}, 0})
	graph.Hold(&Claim{Want{ID: "c", Owner: "Eve", Paths: place(-1)}, 0})
	for i := range n {
		graph.Hold(&Claim{Want{ID: fmt.Sprint("l", i), Owner: fmt.Sprint(i), Paths: place(i + 1)}, 0})
		w := Want{ID: fmt.Sprint(i), Owner: fmt.Sprint(i), Paths: place(i)}
		if i == 0 {
			w.Slots = 2
		}
		graph.Join(&Ticket{Want: w, Place: int64(n - i)})
	}
	graph.Join(&Ticket{Want: Want{ID: "ahead", Owner: "Ben", Paths: place(-1)}, Place: n + 1})
	graph.Join(&Ticket{Want: Want{ID: "ann", Owner: "Ann", Paths: place(-1)}, Place: n + 2})
	before := graph.steps
	assert.Equal(t, "ahead", graph.Ahead("ann").Ticket.ID)
	assert.Less(t, graph.steps-before, 5*n)
}

// A request waits for one of several slots on each of many places, and the holders of these slots wait for each other in a chain. At its end, one
// waits for a slot, of which another becomes free. The look for the owners that wait for a holder of that place finds none, and looks at the request
// at most once for each holder.
func TestSlotsOfAChainOfOwners(t *testing.T) {
	const slots, places = 4, 16
	graph := New()
	place := func(name any) [][]string { return [][]string{{fmt.Sprint(name)}} }
	graph.Hold(&Claim{Want{ID: "a", Owner: "Ann", Paths: place(0), Slots: 2}, 0})
	graph.Hold(&Claim{Want{ID: "z", Owner: "Zoe", Paths: place(0), Slots: 2}, 1})
	graph.Hold(&Claim{Want{ID: "c", Owner: "Eve", Paths: place(-1)}, 0})
	many := Want{ID: "many", Owner: "Max", Slots: slots}
	const n = slots * places
	for i := range n {
		owner, slotted := fmt.Sprint(i), place(fmt.Sprint("s", i/slots))
		graph.Hold(&Claim{Want{ID: fmt.Sprint("l", i), Owner: owner, Paths: place(i + 1)}, 0})
		graph.Hold(&Claim{Want{ID: fmt.Sprint("s", i), Owner: owner, Paths: slotted, Slots: slots}, i % slots})
		w := Want{ID: owner, Owner: owner, Paths: place(i)}
		if i == 0 {
			w.Slots = 2
		}
		graph.Join(&Ticket{Want: w, Place: int64(n - i + 1)})
		if i%slots == 0 {
			many.Paths = append(many.Paths, slotted...)
		}
	}
	graph.Join(&Ticket{Want: many, Place: 1})
	graph.Join(&Ticket{Want: Want{ID: "ahead", Owner: "Ben", Paths: place(-1)}, Place: n + 2})
	graph.Join(&Ticket{Want: Want{ID: "ann", Owner: "Ann", Paths: place(-1)}, Place: n + 3})
	before := graph.steps
	assert.Equal(t, "ahead", graph.Ahead("ann").Ticket.ID)
	assert.Less(t, graph.steps-before, 2*n*n)
}

// A request waits for a slot. One holder of a slot waits for Ann. The other one waits behind an owner that joined the line later, and that gets a slot
// without Ann. So the request waits for Ann no longer once the look has come to that owner, and Ann stays behind the other request of its owner.
func TestOwnersWaitNoLongerForThoseThatGoAhead(t *testing.T) {
	for range 20 { // the order of the holders is random
		graph := New()
		place := func(name string) [][]string { return [][]string{{name}} }
		hold := func(owner, name string, slots, slot int) {
			graph.Hold(&Claim{Want{ID: owner + name, Owner: owner, Paths: place(name), Slots: slots}, slot})
		}
		join := func(id, owner, name string, slots int, at int64) {
			graph.Join(&Ticket{Want: Want{ID: id, Owner: owner, Paths: place(name), Slots: slots}, Place: at})
		}
		hold("Ann", "free", 2, 0)
		hold("Zoe", "free", 2, 1)
		hold("Ann", "own", 1, 0)
		hold("Sue", "slots", 2, 0)
		hold("Ben", "slots", 2, 1)
		hold("Cleo", "next", 1, 0)
		hold("Eve", "last", 1, 0)
		join("slot", "Max", "slots", 2, 1)
		join("sue", "Sue", "own", 1, 2)
		join("ben", "Ben", "next", 1, 3)
		join("cleo", "Cleo", "free", 2, 4)
		join("ahead", "Max", "last", 1, 5)
		join("ann", "Ann", "last", 1, 6)
		require.NotNil(t, graph.Ahead("ann").Ticket, "Max waits for a slot, and Ben's becomes free")
	}
}
