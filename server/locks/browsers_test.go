package locks_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// inBrowser is a request of a browser. All browsers have one secret, so that they are one holder.
func inBrowser(browser string, paths ...locks.Path) locks.Request {
	r := want(locks.Holder{ID: ann.ID, Name: browser}, paths...)
	r.Browser, r.Exact = browser, true
	return r
}

// betweenBrowsers runs a test with a table, the leases of its browsers by their only path, and the outcomes of its waiters.
func betweenBrowsers(t *testing.T, holds map[string]locks.Request, test func(t *testing.T, table *locks.Table, held map[string]locks.Lease, outcomes chan outcome)) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New()
		table := locks.OpenInMemory(t, m, m.Client(nil))
		held := map[string]locks.Lease{}
		for path, r := range holds {
			lease, err := table.Acquire(t.Context(), r)
			require.NoError(t, err)
			held[path] = lease
		}
		test(t, table, held, make(chan outcome, 3))
	})
}

func TestACycleOfBrowsersWithOneSecretHasOneVictim(t *testing.T) {
	betweenBrowsers(t, map[string]locks.Request{"p": inBrowser("one", at("p")), "q": inBrowser("two", at("q"))}, func(t *testing.T, table *locks.Table, held map[string]locks.Lease, outcomes chan outcome) {
		queue(t, table, outcomes, inBrowser("one", at("q")), 1)
		r := inBrowser("two", at("p"))
		r.Wait = 5 * time.Second
		_, err := table.Acquire(t.Context(), r)
		require.ErrorIs(t, err, locks.ErrDeadlock)
		require.NoError(t, table.Release(t.Context(), held["q"].ID, ann.ID))
		assert.NoError(t, (<-outcomes).err)
	})
}

// The second browser waits for p and q together. The first one holds p and requests q, which is free.
func TestHolderOvertakesItsWaiterWithTheSameSecret(t *testing.T) {
	betweenBrowsers(t, map[string]locks.Request{"p": inBrowser("one", at("p"))}, func(t *testing.T, table *locks.Table, held map[string]locks.Lease, outcomes chan outcome) {
		queue(t, table, outcomes, inBrowser("two", at("p"), at("q")), 1)
		r := inBrowser("one", at("q"))
		r.Wait = 5 * time.Second
		q, err := table.Acquire(t.Context(), r)
		require.NoError(t, err)
		require.NoError(t, table.Release(t.Context(), q.ID, ann.ID))
		require.NoError(t, table.Release(t.Context(), held["p"].ID, ann.ID))
		assert.NoError(t, (<-outcomes).err)
	})
}

// The second browser waits for Bob, who waits for the first browser, which waits for nobody.
func TestNoDeadlockThroughAnotherBrowserWithTheSameSecret(t *testing.T) {
	betweenBrowsers(t, map[string]locks.Request{"p": inBrowser("one", at("p")), "q": want(bob, at("q"))}, func(t *testing.T, table *locks.Table, held map[string]locks.Lease, outcomes chan outcome) {
		queue(t, table, outcomes, want(bob, at("p")), 1)
		queue(t, table, outcomes, inBrowser("two", at("q")), 1)
		time.Sleep(2 * locks.Backstop)
		require.Empty(t, outcomes, "there is no cycle")
		require.NoError(t, table.Release(t.Context(), held["p"].ID, ann.ID))
		assert.NoError(t, (<-outcomes).err)
		require.NoError(t, table.Release(t.Context(), held["q"].ID, bob.ID))
		assert.NoError(t, (<-outcomes).err)
	})
}
