package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// late is the Locker of a page that freezes during its steal, before it takes anything.
type late struct {
	lock.Locker
	asleep func()
}

func (l *late) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	l.asleep()
	return l.Locker.Request(ctx, r)
}

// frozenStealer makes a page steal a lock from a frozen one, and freeze before it steals the file. Meanwhile another page takes both over,
// and must not lose them. The stealer sees the file as through returns it.
func frozenStealer(t *testing.T, through func(file lock.Locker) lock.Locker) {
	t.Helper()
	steal := lock.Request{Wants: []lock.Want{{Name: "n", Mode: lock.Exclusive}}, Steal: true}
	first, second := locktest.NewSpace(), locktest.NewSpace()
	frozen, err := lock.Both(first.Client("frozen"), second.Client("frozen")).Request(t.Context(), steal)
	require.NoError(t, err)
	var successor lock.Grant
	page := &freezing{Locker: first.Client("stealer"), lost: make(chan struct{}), asleep: func() {}}
	file := &late{Locker: through(second.Client("stealer")), asleep: func() {
		if successor == nil {
			successor, err = lock.Both(first.Client("successor"), second.Client("successor")).Request(t.Context(), steal)
			require.NoError(t, err)
		}
	}}
	g, err := lock.Both(page, file).Request(t.Context(), steal)
	synctest.Wait()
	assert.False(t, isLost(successor), "it lives")
	if err == nil {
		require.NoError(t, g.Release(t.Context()))
	}
	require.NoError(t, successor.Release(t.Context()))
	require.NoError(t, frozen.Release(t.Context()))
}

// A page steals the lock of the browser, finds that nobody has stolen that meanwhile, and freezes before it steals the file. Another
// page takes both over, and lives.
func TestStealerThatFreezesDuringTheSecondStealTakesNothingFromASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { frozenStealer(t, func(file lock.Locker) lock.Locker { return file }) })
}

// unqueryableLocker is a Locker that cannot say which clients hold the lock.
type unqueryableLocker struct{ lock.Locker }

func (unqueryableLocker) Query(context.Context) (lock.Snapshot, error) {
	return lock.Snapshot{}, errors.New("the file cannot be read")
}

// A page that steals the lock of the browser cannot learn who holds the file, and freezes before it steals that.
func TestStealerThatKnowsNoHolderTakesNothingFromASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frozenStealer(t, func(file lock.Locker) lock.Locker { return unqueryableLocker{file} })
	})
}
