package waitgraph

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
