package locktest_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

func TestFakeLocker(t *testing.T) {
	locktest.RunLocker(t, func(*testing.T) func() lock.Locker {
		space := locktest.NewSpace()
		return func() lock.Locker { return space.Client(lock.NewID()) }
	})
}

func TestFakeLockerTree(t *testing.T) {
	locktest.RunTree(t, func(*testing.T) func() lock.Locker {
		space := locktest.NewSpace()
		return func() lock.Locker { return space.Client(lock.NewID()) }
	})
}

func TestFakeRecords(t *testing.T) {
	locktest.RunRecords(t, func(*testing.T) func() lock.Records {
		records := &locktest.Records{}
		return func() lock.Records { return records }
	})
}
