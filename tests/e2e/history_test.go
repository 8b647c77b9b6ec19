package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// step is a tab's use of one lease.
type step struct {
	Path                      string
	Shared                    bool
	Slots                     int
	Asked, Got, Gave, Settled float64 // milliseconds of the wall clock
}

// taking is the input of an operation of the history: the beginning or the end of a lease.
type taking struct {
	lease  string
	path   string
	shared bool // by several owners; places with slots count too
	slots  int  // the number of leases with slots that the place admits; 0 for a lease without slots
	ends   bool
}

func (a taking) conflicts(b taking) bool {
	switch {
	case a.path == b.path:
		return !a.shared || !b.shared
	case strings.HasPrefix(b.path, a.path+"/"):
		return !a.shared
	case strings.HasPrefix(a.path, b.path+"/"):
		return !b.shared
	}
	return false
}

// others counts the leases with slots on the same place.
func (a taking) others(held []taking) (n int) {
	for _, h := range held {
		if h.slots > 0 && h.path == a.path {
			n++
		}
	}
	return n
}

// treeOfLocks is the whole specification: a lease may begin if no other lease conflicts with it and a slot is free.
var treeOfLocks = porcupine.Model{
	Init: func() any { return []taking(nil) },
	Step: func(state, input, _ any) (bool, any) {
		held, op := state.([]taking), input.(taking)
		if op.ends {
			return true, slices.DeleteFunc(slices.Clone(held), func(h taking) bool { return h.lease == op.lease })
		}
		if slices.ContainsFunc(held, op.conflicts) || op.slots > 0 && op.others(held) >= op.slots {
			return false, state
		}
		held = append(slices.Clone(held), op)
		slices.SortFunc(held, func(a, b taking) int { return strings.Compare(a.lease, b.lease) })
		return true, held
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]taking), b.([]taking)) },
}

// clockError is the maximum difference between the clocks of two tabs.
const clockError = 1.0 // ms

// randomWork is a script with a seed: it acquires and releases random places, and notes the time of each step.
const randomWork = `globalThis.steps = []; globalThis.done = ''
		let seed = %d
		const random = n => { seed = (seed * 1103515245 + 12345) %% 2147483648; return Math.floor(seed / 65536) %% n }
		const places = [['u1'], ['u1', 'a1'], ['u1', 'a2'], ['u1', 'a1', 'r1'], ['u1', 'a1', 'r2']]
		const work = async () => {
			for (let i = 0; i < 30; i++) {
				const path = places[random(places.length)], kind = random(4)
				const shared = kind === 0, slots = kind === 1 ? 2 : 0
				const step = {path: path.join('/'), shared, slots, asked: now()}
				const lease = await hf.acquireProjectLock({path, mode: shared ? 'shared' : 'exclusive', ...(slots && {slots}), ` + patient + `})
				step.got = now()
				await new Promise(done => setTimeout(done, random(5)))
				step.gave = now()
				await lease.release()
				step.settled = now()
				steps.push(step)
			}
		}
		work().then(() => { done = 'yes' }, e => { done = e.message }); null`

// The random operations of tabs on places can be ordered so that every lease was valid, and each step is between its
// call and its answer.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	strategies(t, func(t *testing.T, options func(string) string) {
		var tabs []*browser.Tab
		for i := range 3 {
			tabs = append(tabs, w.tab(t, options(fmt.Sprint("tab ", i))))
		}
		for i, tab := range tabs {
			tab.MustEval(fmt.Sprintf(randomWork, 7+i), nil)
		}
		var operations []porcupine.Operation
		overlaps := 0
		for client, tab := range tabs {
			tab.WaitFor("done", 4*browser.Limit)
			require.Equal(t, "yes", browser.Get[string](tab, "done"))
			for i, s := range browser.Get[[]step](tab, "steps") {
				op := taking{lease: fmt.Sprint(client, ".", i), path: s.Path, shared: s.Shared || s.Slots > 0, slots: s.Slots}
				ended := op
				ended.ends = true
				if s.Got-s.Asked > 20 {
					overlaps++
				}
				operations = append(operations,
					porcupine.Operation{ClientId: client, Input: op, Call: micros(s.Asked), Return: micros(s.Got + clockError)},
					porcupine.Operation{ClientId: client, Input: ended, Call: micros(max(s.Gave, s.Got+clockError)), Return: micros(s.Settled + 2*clockError)})
			}
			tab.MustEval("await hf.close()", nil)
			tab.Quiet()
		}
		t.Logf("%d operations, %d leases were waited for", len(operations), overlaps)
		assert.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(treeOfLocks, operations, 30*time.Second))
		assertFindsTooMany(t, operations)
	})
}

// assertFindsTooMany checks that the check can fail: it finds one lease too many while another one was surely held, and
// one slot too many for a moment.
func assertFindsTooMany(t *testing.T, operations []porcupine.Operation) {
	t.Helper()
	for _, want := range []taking{{lease: "wrong"}, {lease: "wrong", shared: true, slots: 1}} {
		i := 0
		for i < len(operations) && !heldAlong(operations[i], operations[i+1], want.slots) {
			i += 2
		}
		require.Less(t, i, len(operations), "nobody held anything for long enough")
		want.path = operations[i].Input.(taking).path
		ended := want
		ended.ends = true
		at := operations[i].Return
		bad := append(slices.Clone(operations), porcupine.Operation{ClientId: 9, Input: want, Call: at + 1, Return: at + 40},
			porcupine.Operation{ClientId: 9, Input: ended, Call: at + 41, Return: at + 80})
		assert.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(treeOfLocks, bad, 30*time.Second))
	}
}

// heldAlong reports whether a lease, with slots if slots > 0, was held for a while.
func heldAlong(begin, end porcupine.Operation, slots int) bool {
	return end.Call-begin.Return > 100 && begin.Input.(taking).slots > 0 == (slots > 0)
}

func micros(ms float64) int64 { return int64(ms * 1000) }
