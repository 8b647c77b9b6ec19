package lock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Random states of waiters, each of which waits for one name or for one of several. If the waiters that cannot go on
// are removed, ending the youngest of each deadlock set, and no other, frees all the rest. If all can go on, none is
// ended.
func TestDeadlockSets(t *testing.T) {
	knots, withSlots, free := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		names := make([]string, rapid.IntRange(1, 6).Draw(t, "names"))
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		all := make([]*waiterState, rapid.IntRange(1, 6).Draw(t, "waiters"))
		for i := range all {
			all[i] = &waiterState{}
			all[i].LeaseID, all[i].Since = fmt.Sprint(i), time.UnixMilli(int64(rapid.IntRange(0, 3).Draw(t, "since")))
		}
		slots := false
		for _, name := range names { // one waiter holds it, or none
			if holder := rapid.IntRange(-1, len(all)-1).Draw(t, "holder"); holder >= 0 {
				all[holder].holds = append(all[holder].holds, Want{name, Exclusive})
			}
		}
		for i := range all {
			awaited := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID[string]).Draw(t, "awaits")
			slots = slots || len(awaited) > 1
			for _, name := range awaited {
				all[i].Awaits = append(all[i].Awaits, Want{name, Exclusive})
			}
		}
		for first := true; ; first = false {
			all = deadlocked(all)
			var victims []string
			for i := range all {
				if youngestOfDeadlock(slices.Clone(all), all[i].LeaseID) {
					victims = append(victims, all[i].LeaseID)
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
				others := slices.DeleteFunc(slices.Clone(all), func(s *waiterState) bool { return s.LeaseID != id && slices.Contains(victims, s.LeaseID) })
				left := deadlocked(others)
				require.True(t, slices.ContainsFunc(left, func(s *waiterState) bool { return s.LeaseID == id }), "%v: %s is ended for nothing", all, id)
			}
			all = slices.DeleteFunc(all, func(s *waiterState) bool { return slices.Contains(victims, s.LeaseID) })
		}
	})
	assert.Greater(t, withSlots, 5)
	assert.Greater(t, knots, 10)
	assert.Greater(t, free, 10)
}

// deadlocked removes the waiters that can get what they wait for, one at a time, and returns the rest.
func deadlocked(all []*waiterState) []*waiterState {
	for {
		i := slices.IndexFunc(all, func(s *waiterState) bool {
			return slices.ContainsFunc(s.Awaits, func(a Want) bool {
				return !slices.ContainsFunc(all, func(o *waiterState) bool { return slices.Contains(o.holds, a) })
			})
		})
		if i < 0 {
			return all
		}
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
}
