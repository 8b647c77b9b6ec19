package lock_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// slots is one of n slots of a place, waited for without a limit.
func slots(n int, path ...string) lock.AcquireOptions {
	o := place(path...)
	o.Slots = n
	return o
}

// A wait for a slot ends when any holder leaves. A cycle through it is a deadlock once all holders wait for the waiter,
// and not before.
func TestCycleThroughSlots(t *testing.T) {
	for _, n := range []int{2, 3} {
		virtual(t, func(t *testing.T, w *world) {
			network := locktest.NewNetwork()
			var holders []*owner
			var held []lock.Lease
			for range n {
				o := w.talking("holder", network.Join())
				holders, held = append(holders, o), append(held, o.acquire(slots(n, "pool")))
			}
			z := w.talking("z", network.Join())
			other := z.acquire(place("q"))
			slot := z.begin(lock.Within(w.Context(), other), slots(n, "pool"))
			w.sleep(time.Millisecond)
			second := z.begin(w.Context(), slots(n, "pool")) // waits in line, behind the cycle
			var waiting []<-chan outcome
			for i, o := range holders[:n-1] {
				w.sleep(time.Millisecond)
				waiting = append(waiting, o.begin(lock.Within(w.Context(), held[i]), place("q")))
			}
			w.sleep(time.Minute)
			for _, o := range append(waiting, slot, second) {
				require.Empty(t, o, "one of the holders does not wait")
			}
			closed := time.Since(w.start)
			last := holders[n-1].begin(lock.Within(w.Context(), held[n-1]), place("q"))
			got := <-last
			require.ErrorIs(t, got.err, lock.ErrDeadlock)
			assert.Less(t, got.at-closed, time.Second)
			w.sleep(time.Minute)
			for _, o := range append(waiting, slot, second) {
				require.Empty(t, o, "one victim is enough")
			}
			holders[n-1].release(held[n-1])
			z.release((<-slot).lease)
			z.release(other)
			z.release((<-second).lease)
			for i, o := range waiting {
				holders[i].release((<-o).lease)
				holders[i].release(held[i])
			}
			w.mustBeFree()
		})
	}
}

// The holder of a slot is in another deadlock and cannot go on, but can once that deadlock has a victim: the cycle
// through the slots needs none.
func TestCycleThroughSlotsNeedsNoVictimOfItsOwn(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b, c, z := w.talking("a", network.Join()), w.talking("b", network.Join()), w.talking("c", network.Join()), w.talking("z", network.Join())
		one, two := a.acquire(slots(2, "pool")), b.acquire(slots(2, "pool"))
		q, r := z.acquire(place("q")), c.acquire(place("r"))
		slot := z.begin(lock.Within(w.Context(), q), slots(2, "pool"))
		w.sleep(time.Millisecond)
		wantsQ := a.begin(lock.Within(w.Context(), one), place("q"))
		deeper, err := b.Acquire(lock.Within(w.Context(), two), place("s"))
		require.NoError(t, err)
		w.sleep(time.Millisecond)
		// b, which holds the other slot, and c wait for each other.
		wantsR := b.begin(lock.Within(w.Context(), deeper), place("r"))
		w.sleep(time.Millisecond)
		wantsS := c.begin(lock.Within(w.Context(), r), place("s"))
		got := <-wantsS
		require.ErrorIs(t, got.err, lock.ErrDeadlock)
		w.sleep(time.Minute)
		for _, o := range []<-chan outcome{slot, wantsQ, wantsR} {
			require.Empty(t, o)
		}
		c.release(r)
		b.release((<-wantsR).lease)
		b.release(deeper)
		b.release(two)
		z.release((<-slot).lease)
		z.release(q)
		a.release((<-wantsQ).lease)
		a.release(one)
		w.mustBeFree()
	})
}

// An owner that holds all slots and wants another one within its own lease waits for itself.
func TestOwnerThatHoldsAllSlotsWaitsForItself(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.tab("a"), w.tab("b")
		one, other := a.acquire(slots(2, "pool")), b.acquire(slots(2, "pool"))
		more := a.begin(lock.Within(w.Context(), one), slots(2, "pool"))
		w.sleep(time.Minute)
		require.Empty(t, more, "the other holder may leave")
		b.release(other)
		two := (<-more).lease
		got := <-a.begin(lock.Within(w.Context(), two), slots(2, "pool"))
		require.ErrorIs(t, got.err, lock.ErrDeadlock)
		a.release(two)
		a.release(one)
		w.mustBeFree()
	})
}

// Two probes of one initiator travel at the same time among waiters in a cycle. Each of them is passed on once.
func TestProbesArePassedOnOnce(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		network := locktest.NewNetwork()
		a, b, z := w.talking("a", network.Join()), w.talking("b", network.Join()), w.talkingOver("z", &slowChannel{Channel: network.Join(), random: rand.New(rand.NewPCG(1, 1))})
		one, two, other := a.acquire(slots(2, "pool")), b.acquire(slots(2, "pool")), z.acquire(place("q"))
		slot := z.begin(lock.Within(w.Context(), other), slots(2, "pool"))
		blockers := a.begin(lock.Within(w.Context(), one), place("q"))
		w.sleep(time.Minute)

		ear := network.Join()
		var heard atomic.Int64
		_, err := ear.Listen(func(m lock.Message) {
			if m.Probe.Initiator == "probe" {
				heard.Add(1)
			}
		})
		require.NoError(t, err)
		q := lock.Want{Name: "project//q", Mode: lock.Exclusive}
		mouth := network.Join()
		for _, round := range []string{"first", "second"} {
			require.NoError(t, mouth.Post(lock.Message{Kind: lock.WhoIsInTheWay, Round: round,
				Probe: lock.Probe{Initiator: "probe", Since: time.Now().Add(time.Hour), Wants: []lock.Want{q}}}))
			w.sleep(5 * time.Millisecond)
		}
		w.sleep(time.Second)
		assert.EqualValues(t, 2+2*2, heard.Load(), "each was sent once and passed on by both")
		b.release(two)
		z.release((<-slot).lease)
		z.release(other)
		a.release((<-blockers).lease)
		a.release(one)
		w.mustBeFree()
	})
}
