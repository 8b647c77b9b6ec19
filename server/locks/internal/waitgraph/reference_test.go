package waitgraph

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// world is the plain reference: lists, and the definitions written out.
type world struct {
	claims  []*Claim
	tickets []*Ticket
}

func above(p, q []string) bool { return len(p) < len(q) && slices.Equal(p, q[:len(p)]) }

func conflict(a, b Want) bool {
	for _, p := range a.Paths {
		for _, q := range b.Paths {
			if slices.Equal(p, q) && !(a.Shared && b.Shared) || above(p, q) && !a.Shared || above(q, p) && !b.Shared {
				return true
			}
		}
	}
	return false
}

// mate reports whether a lease that conflicts with a want holds a slot of the same places, and nothing above or below
// them.
func mate(w Want, c *Claim) bool {
	if w.Shared || c.Shared || w.Slots <= 1 || c.Slots != w.Slots {
		return false
	}
	for _, p := range w.Paths {
		for _, q := range c.Paths {
			if above(p, q) || above(q, p) {
				return false
			}
		}
	}
	return true
}

// blocked reports whether a conflicting lease belongs to an owner that counts, or all slots do.
func (w *world) blocked(t *Ticket, counts func(owner string) bool) bool {
	slots := map[int]bool{}
	for _, c := range w.claims {
		if c.ID == t.ID || !conflict(t.Want, c.Want) || !counts(c.Owner) {
			continue
		}
		if !mate(t.Want, c) {
			return true
		}
		slots[c.Slot] = true
	}
	return t.Slots > 1 && len(slots) >= t.Slots
}

// waited reports whether somebody waits for a want.
func (w *world) waited(want Want) bool {
	return slices.ContainsFunc(w.tickets, func(t *Ticket) bool { return conflict(want, t.Want) })
}

// full reports whether all slots of a want are held by leases on the same places.
func (w *world) full(want Want) bool {
	slots := map[int]bool{}
	for _, c := range w.claims {
		if conflict(want, c.Want) && mate(want, c) {
			slots[c.Slot] = true
		}
	}
	return len(slots) >= max(want.Slots, 1)
}

// deadlocked is the largest set of owners each of which waits for leases of the set.
func (w *world) deadlocked() map[string]bool {
	set := map[string]bool{}
	for _, t := range w.tickets {
		set[t.Owner] = true
	}
	for changed := true; changed; {
		changed = false
		for owner := range set {
			if !slices.ContainsFunc(w.tickets, func(t *Ticket) bool {
				return t.Owner == owner && !t.Doomed && w.blocked(t, func(o string) bool { return o != owner && set[o] })
			}) {
				delete(set, owner)
				changed = true
			}
		}
	}
	return set
}

// stuckOn is the largest set of owners that can no longer continue while the ticket's owner keeps its leases, except
// those that conflict with the ticket itself. It is a subset of the owners that may wait for that owner.
func (w *world) stuckOn(t *Ticket) map[string]bool {
	var rest world
	for _, c := range w.claims {
		if c.Owner != t.Owner || !conflict(t.Want, c.Want) {
			rest.claims = append(rest.claims, c)
		}
	}
	behind := func(u *Ticket, set map[string]bool) bool {
		return slices.ContainsFunc(w.tickets, func(v *Ticket) bool {
			return v.Place < u.Place && !v.Doomed && conflict(u.Want, v.Want) && v.Owner != u.Owner && v.Owner != t.Owner && set[v.Owner]
		})
	}
	set := map[string]bool{t.Owner: true}
	for changed := true; changed; {
		changed = false
		for _, u := range w.tickets {
			if !u.Doomed && !set[u.Owner] && (behind(u, set) || slices.ContainsFunc(rest.claims, func(c *Claim) bool {
				return c.Owner != u.Owner && set[c.Owner] && conflict(u.Want, c.Want)
			})) {
				set[u.Owner] = true
				changed = true
			}
		}
	}
	stuck := func(owner string) bool {
		return slices.ContainsFunc(w.tickets, func(u *Ticket) bool {
			return u.Owner == owner && !u.Doomed &&
				(rest.blocked(u, func(o string) bool { return o != owner && set[o] }) || behind(u, set))
		})
	}
	for changed := true; changed; {
		changed = false
		for owner := range set {
			if owner != t.Owner && !stuck(owner) {
				delete(set, owner)
				changed = true
			}
		}
	}
	return set
}

func (w *world) free(t *Ticket) bool {
	if w.blocked(t, func(string) bool { return true }) {
		return false
	}
	stuck := w.stuckOn(t)
	return !slices.ContainsFunc(w.tickets, func(v *Ticket) bool {
		return v.Place < t.Place && conflict(t.Want, v.Want) && (v.Owner == t.Owner || !stuck[v.Owner])
	})
}

// run drives a graph and the reference together. As on the server, waiters look only after a notification.
type run struct {
	t     *testing.T
	world world
	graph *Graph
	watch map[*Ticket][]string // the IDs whose end notifies the waiter
	rung  []*Ticket
	place int64
	freed int
	dooms int
	// A doomed ticket may stay for some steps, as on a server whose store is slow.
	random  *rand.Rand
	leaving []*Ticket
}

func (r *run) end(id string) {
	for t, ids := range r.watch {
		if slices.Contains(ids, id) {
			r.rung = append(r.rung, t)
		}
	}
	slices.SortFunc(r.rung, func(a, b *Ticket) int { return int(a.Place - b.Place) })
}

func (r *run) join(w Want) {
	r.place++
	t := &Ticket{Want: w, Place: r.place}
	r.world.tickets = append(r.world.tickets, t)
	require.Empty(r.t, (&world{r.world.claims, r.world.tickets[:len(r.world.tickets)-1]}).deadlocked(), "before")
	r.graph.Join(t)
	r.rung = append(r.rung, t)
	locked := r.world.deadlocked()
	e := r.check(t.Owner, locked)
	if len(locked) > 0 {
		require.Equal(r.t, []*Ticket{t}, e.Doomed, "the request that closes a cycle is its only victim")
	}
}

func (r *run) check(owner string, locked map[string]bool) Effects {
	e := r.graph.Check(owner)
	require.Equal(r.t, len(locked) > 0, len(e.Doomed) > 0, "deadlocked: %v", locked)
	for _, t := range e.Doomed {
		require.True(r.t, locked[t.Owner])
	}
	require.Empty(r.t, r.world.deadlocked(), "after the victims")
	r.dooms += len(e.Doomed)
	r.rung = append(append(r.rung, e.Doomed...), e.Look...)
	return e
}

func (r *run) release(c *Claim) {
	r.world.claims = slices.DeleteFunc(r.world.claims, func(o *Claim) bool { return o == c })
	r.graph.Release(c.ID)
	r.end(c.ID)
}

func (r *run) leave(t *Ticket) {
	r.world.tickets = slices.DeleteFunc(r.world.tickets, func(o *Ticket) bool { return o == t })
	delete(r.watch, t)
	r.graph.Leave(t.ID)
	r.end(t.ID)
}

func (r *run) leaveDoomed() {
	for _, t := range r.leaving {
		if slices.Contains(r.world.tickets, t) {
			r.leave(t)
		}
	}
	r.leaving = nil
}

// hold adds a lease. As on the server, it is an edge only if somebody waits for it.
func (r *run) hold(w Want, slot int) {
	c := &Claim{w, slot}
	r.world.claims = append(r.world.claims, c)
	r.graph.Hold(c)
	if locked := r.world.deadlocked(); r.graph.Wanted(w) {
		r.check(w.Owner, locked)
	} else {
		require.Empty(r.t, locked)
	}
}

// acquire acquires without a place in line if nothing conflicts, and compares the conflicts with the reference.
func (r *run) acquire(w Want) bool {
	before, blocked, waited := r.graph.Before(w), r.world.blocked(&Ticket{Want: w}, func(string) bool { return true }), r.world.waited(w)
	require.Equal(r.t, waited, r.graph.Wanted(w))
	require.Equal(r.t, waited, before.Ticket != nil)
	require.Equal(r.t, blocked || waited, !before.Free(), "%+v", w)
	holders := map[string]bool{}
	r.graph.Holders(w, func(c *Claim) bool {
		require.False(r.t, holders[c.ID], "each holder once")
		holders[c.ID] = true
		return true
	})
	for _, c := range r.world.claims {
		require.Equal(r.t, conflict(w, c.Want) && (r.world.full(w) || !mate(w, c)), holders[c.ID], "%+v %+v", w, c)
	}
	if before.Free() {
		r.hold(w, before.Slot)
	}
	return before.Free()
}

// looks lets all notified waiters look, until none is left.
func (r *run) looks() {
	for len(r.rung) > 0 {
		t := r.rung[0]
		r.rung = r.rung[1:]
		if !slices.Contains(r.world.tickets, t) {
			continue
		}
		if t.Doomed {
			r.leaving = append(r.leaving, t)
			if r.random.IntN(2) == 0 {
				r.leaveDoomed()
			}
			continue
		}
		way := r.graph.Ahead(t.ID)
		require.Equal(r.t, r.world.free(t), way.Free(), "%+v", *t)
		if way.Free() {
			r.leave(t)
			r.hold(t.Want, way.Slot)
			r.freed++
			continue
		}
		r.watch[t] = nil
		if way.Ticket != nil {
			r.watch[t] = []string{way.Ticket.ID}
		}
		for _, c := range way.Claims {
			r.watch[t] = append(r.watch[t], c.ID)
		}
	}
	if len(r.leaving) > 0 {
		return // those behind a doomed ticket are notified when it leaves
	}
	for _, t := range r.world.tickets {
		require.False(r.t, r.world.free(t), "a waiter that may go ahead was not notified: %+v", *t)
	}
}

func (r *run) String() string {
	var text string
	for _, c := range r.world.claims {
		text += fmt.Sprintf("\n%s holds %+v", c.Owner, *c)
	}
	for _, t := range r.world.tickets {
		text += fmt.Sprintf("\n%s waits %+v", t.Owner, *t)
	}
	return text
}

func (r *run) waits(owner string) bool {
	return slices.ContainsFunc(r.world.tickets, func(t *Ticket) bool { return t.Owner == owner })
}

// waitsForItself reports whether another tab of the same owner has the conflict. That tab releases on its own.
func (r *run) waitsForItself(c *Claim) bool {
	return slices.ContainsFunc(r.world.tickets, func(t *Ticket) bool { return t.Owner == c.Owner && conflict(t.Want, c.Want) })
}

// finish releases the leases of all owners that wait for nobody, or for themselves, until every owner is served.
func (r *run) finish() {
	for len(r.world.tickets) > 0 {
		progress := len(r.leaving) > 0
		r.leaveDoomed()
		r.looks()
		for _, c := range slices.Clone(r.world.claims) {
			if (!r.waits(c.Owner) || r.waitsForItself(c)) && slices.Contains(r.world.claims, c) {
				r.release(c)
				r.looks()
				progress = true
			}
		}
		require.True(r.t, progress, "no owner makes progress: %s", r)
	}
}

var places = [][]string{{"a"}, {"a", "b"}, {"a", "c"}, {"a", "b", "d"}, {"e"}, {"e", "f"}, {"g"}, {"h"}}

func randomWant(random *rand.Rand, id int, owners int) Want {
	w := Want{ID: fmt.Sprint("l", id), Owner: string(rune('A' + random.IntN(owners)))}
	for range 1 + random.IntN(7)/3 {
		w.Paths = append(w.Paths, places[random.IntN(len(places))])
	}
	switch random.IntN(6) {
	case 0:
		w.Shared = true
	case 1, 2:
		w.Slots = 2 + random.IntN(3)
	}
	return w
}

// Random waits are compared with the reference after every step. GRAPHS= sets their number and SEED= the seed.
func TestRandomWaitsAgainstTheReference(t *testing.T) {
	graphs, seed := 400, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("GRAPHS")); err == nil {
		graphs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	served, victims := 0, 0
	for i := range graphs {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		r := &run{t: t, graph: New(), watch: map[*Ticket][]string{}, random: random}
		owners := 2 + random.IntN(6)
		for step := range 60 {
			w := randomWant(random, step, owners)
			if len(r.world.claims) > 0 && random.IntN(3) == 0 {
				c := r.world.claims[random.IntN(len(r.world.claims))]
				if !r.waits(c.Owner) || random.IntN(4) == 0 {
					r.release(c)
				}
			} else if !r.waits(w.Owner) || random.IntN(8) == 0 {
				if !r.acquire(w) {
					r.join(w)
				}
			} else if random.IntN(3) == 0 {
				r.leaveDoomed()
			}
			r.looks()
			if t.Failed() {
				t.Logf("graph %d, step %d", i, step)
				return
			}
		}
		r.finish()
		served, victims = served+r.freed, victims+r.dooms
	}
	t.Logf("%d graphs: %d served, %d victims", graphs, served, victims)
	require.Positive(t, victims)
}
