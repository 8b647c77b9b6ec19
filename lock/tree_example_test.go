package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

func ExampleUser() {
	ctx := context.Background()
	space := locktest.NewSpace()
	left, right := tab(space, "left"), tab(space, "right")
	defer func() { _, _ = left.Close(ctx), right.Close(ctx) }()

	account := lock.User("u1").Account("a1")
	resource, err := left.Acquire(ctx, lock.AcquireOptions{Path: account.Resource("r1")})
	fmt.Println("r1:", resource.Paths, err)
	_, err = right.Acquire(ctx, lock.AcquireOptions{Path: account.Resource("r2"), IfAvailable: true})
	fmt.Println("r2 at the same time:", err)
	_, err = right.Acquire(ctx, lock.AcquireOptions{Path: account, IfAvailable: true})
	fmt.Println("the account meanwhile is denied:", errors.Is(err, lock.ErrDenied))
	// Output:
	// r1: [[u1 a1 r1]] <nil>
	// r2 at the same time: <nil>
	// the account meanwhile is denied: true
}

func ExampleManager_AcquireResources() {
	ctx := context.Background()
	m := tab(locktest.NewSpace(), "left")
	defer func() { _ = m.Close(ctx) }()

	// The ids are taken in one order, whatever order they come in: no caller can deadlock.
	lease, err := m.AcquireResources(ctx, lock.User("u1").Account("a1"), []string{"r2", "r1"}, lock.AcquireOptions{})
	fmt.Println(lease.Paths, err)
	// Output: [[u1 a1 r2] [u1 a1 r1]] <nil>
}

func ExampleWithin() {
	ctx := context.Background()
	m := tab(locktest.NewSpace(), "left")
	defer func() { _ = m.Close(ctx) }()

	account := lock.User("u1").Account("a1")
	err := m.With(ctx, func(ctx context.Context, _ lock.Lease) error {
		// The account is ours already; ctx says so.
		_, err := m.Acquire(ctx, lock.AcquireOptions{Path: account.Resource("r1")})
		fmt.Println("a resource of it:", err)
		_, err = m.Acquire(ctx, lock.AcquireOptions{Path: account})
		fmt.Println("the account again is reentrant:", errors.Is(err, lock.ErrReentrant))
		return nil
	}, lock.WithOptions{AcquireOptions: lock.AcquireOptions{Path: account}})
	fmt.Println(err)
	// Output:
	// a resource of it: <nil>
	// the account again is reentrant: true
	// <nil>
}

// Refresh a token once, although every tab finds at the same moment that it has expired: take the lock, look again, and
// skip the work that another tab has done meanwhile.
func ExampleManager_With_singleFlight() {
	ctx := context.Background()
	space := locktest.NewSpace()
	fresh, refreshed := false, 0 // state that the tabs share: the stored token

	var tabs sync.WaitGroup
	for i := range 8 {
		m := tab(space, fmt.Sprint("tab ", i))
		tabs.Go(func() {
			defer func() { _ = m.Close(ctx) }()
			err := m.With(ctx, func(context.Context, lock.Lease) error {
				if fresh {
					return nil
				}
				refreshed++ // the request to the server
				fresh = true
				return nil
			}, lock.WithOptions{AcquireOptions: lock.AcquireOptions{Path: []string{"token-refresh"},
				Backoff: lock.Backoff{MaxRetries: lock.Unlimited}}})
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	tabs.Wait()
	fmt.Println("refreshed", refreshed, "time")
	// Output: refreshed 1 time
}
