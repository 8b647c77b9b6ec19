package lock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// freezing is the Locker of a page that freezes after its steal was granted. When it wakes, it learns of the grant, and of a later
// steal only with the answer of its next query, as in a browser.
type freezing struct {
	lock.Locker
	asleep func()
	lost   chan struct{}
	hears  sync.Once
}

type unheard struct {
	lock.Grant
	lost chan struct{}
}

func (g unheard) Lost() <-chan struct{} { return g.lost }

func (f *freezing) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := f.Locker.Request(ctx, r)
	f.asleep()
	return unheard{g, f.lost}, err
}

func (f *freezing) Query(ctx context.Context) (lock.Snapshot, error) {
	f.hears.Do(func() { close(f.lost) })
	return f.Locker.Query(ctx)
}

// A page steals the lock of the browser and freezes before it steals the file. Another page takes both over. The first one wakes:
// it takes nothing from that page, which lives.
func TestStealerThatFreezesBetweenTheLockersOfBothStealsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steal := lock.Request{Wants: []lock.Want{{Name: "n", Mode: lock.Exclusive}}, Steal: true}
		first, second := locktest.NewSpace(), locktest.NewSpace()
		var successor lock.Grant
		page := &freezing{Locker: first.Client("stealer"), lost: make(chan struct{}), asleep: func() {
			var err error
			successor, err = lock.Both(first.Client("successor"), second.Client("successor")).Request(t.Context(), steal)
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}}
		g, err := lock.Both(page, second.Client("stealer")).Request(t.Context(), steal)
		require.NoError(t, err)
		synctest.Wait()
		assert.True(t, isLost(g), "it was stolen")
		assert.False(t, isLost(successor), "it lives")
		require.NoError(t, g.Release(t.Context()))
		require.NoError(t, successor.Release(t.Context()))
	})
}
