package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBusyCountsTheWorkOfThePage(t *testing.T) {
	b := Start(t, Options{})
	s := Serve(t, Pages{"/": {Body: "<title>x</title>"}})
	tab := b.Open(t, s.URL("/"))
	before := tab.Busy()
	tab.MustEval("await new Promise(done => setTimeout(done, 300)); null", nil)
	idle := tab.Busy() - before
	tab.MustEval("{ let sum = 0; for (let i = 0; i < 5e8; i++) sum += i % 7; globalThis.sum = sum } null", nil)
	busy := tab.Busy() - before - idle
	assert.Less(t, idle, 100*time.Millisecond)
	assert.Greater(t, busy, 2*idle)
}
