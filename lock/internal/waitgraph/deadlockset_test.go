package waitgraph

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// names are exclusive locks.
var names = &Search[string]{
	Conflict:  func(held, want string) bool { return held == want },
	Exclusive: func(name string) string { return name },
}

// someWaiters returns up to six waiters, and up to six locks that they hold. At most one waiter holds a lock.
func someWaiters(t *rapid.T) []*Waiter[string] {
	locks := make([]string, rapid.IntRange(1, 6).Draw(t, "locks"))
	for i := range locks {
		locks[i] = fmt.Sprint(i)
	}
	all := make([]*Waiter[string], rapid.IntRange(1, 6).Draw(t, "waiters"))
	for i := range all {
		all[i] = &Waiter[string]{}
		all[i].ID, all[i].Since = fmt.Sprint(i), time.UnixMilli(int64(rapid.IntRange(0, 3).Draw(t, "since")))
	}
	for _, name := range locks {
		if holder := rapid.IntRange(-1, len(all)-1).Draw(t, "holder"); holder >= 0 {
			all[holder].Holds = append(all[holder].Holds, name)
		}
	}
	for i := range all {
		all[i].Awaits = rapid.SliceOfNDistinct(rapid.SampledFrom(locks), 1, 3, rapid.ID[string]).Draw(t, "awaits")
	}
	return all
}

// Random states of waiters, each of which waits for one name or for one of several. If the waiters that cannot go on
// are removed, ending the youngest of each deadlock set, and no other, frees all the rest. If all can go on, none is
// ended.
func TestDeadlockSets(t *testing.T) {
	knots, withSlots, free := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all := someWaiters(t)
		slots := slices.ContainsFunc(all, func(w *Waiter[string]) bool { return len(w.Awaits) > 1 })
		for first := true; ; first = false {
			all = deadlocked(all)
			var victims []string
			for i := range all {
				if names.youngestOfDeadlock(slices.Clone(all), all[i].ID) {
					victims = append(victims, all[i].ID)
				}
			}
			require.Equal(t, len(all) == 0, len(victims) == 0, "%v: there is a victim exactly where there is a deadlock", all)
			if len(all) == 0 {
				if first {
					free++
				}
				return
			}
			knots++
			if slots {
				withSlots++
			}
			for _, id := range victims {
				// This victim is needed even if the other victims have ended already.
				others := slices.DeleteFunc(slices.Clone(all), func(s *Waiter[string]) bool { return s.ID != id && slices.Contains(victims, s.ID) })
				left := deadlocked(others)
				require.True(t, slices.ContainsFunc(left, func(s *Waiter[string]) bool { return s.ID == id }), "%v: %s is ended for nothing", all, id)
			}
			all = slices.DeleteFunc(all, func(s *Waiter[string]) bool { return slices.Contains(victims, s.ID) })
		}
	})
	if !testing.Short() { // which draws a fifth of the graphs
		assert.Greater(t, withSlots, 5)
		assert.Greater(t, knots, 10)
		assert.Greater(t, free, 10)
	}
}

// deadlocked removes the waiters that can get what they wait for, one at a time, and returns the rest.
func deadlocked(all []*Waiter[string]) []*Waiter[string] {
	for {
		i := slices.IndexFunc(all, func(s *Waiter[string]) bool {
			return slices.ContainsFunc(s.Awaits, func(a string) bool {
				return !slices.ContainsFunc(all, func(o *Waiter[string]) bool { return slices.Contains(o.Holds, a) })
			})
		})
		if i < 0 {
			return all
		}
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
}
