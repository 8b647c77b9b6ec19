package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// tab returns a manager that shares the space with others, as the tabs of a browser do.
func tab(space *locktest.Space, name string) *lock.Manager {
	m, err := lock.NewManager(lock.Config{
		OwnerName: name,
		Backends:  []lock.Backend{{Strategy: lock.WebLock, Resource: "project", Locker: space.Client(name)}},
	})
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleManager() {
	ctx := context.Background()
	m := tab(locktest.NewSpace(), "left")
	m.Subscribe(func(e lock.Event) { fmt.Println(e.Type) })

	err := m.With(ctx, func(ctx context.Context, lease lock.Lease) error {
		// Nobody else writes now. ctx ends when the lease does.
		return ctx.Err()
	}, lock.WithOptions{})
	if err != nil {
		fmt.Println(err)
	}
	_ = m.Close(ctx)
	// Output:
	// lock:attempt
	// lock:acquired
	// lock:renew-scheduled
	// lock:release-requested
	// lock:released
}

func ExampleLease() {
	ctx := context.Background()
	space := locktest.NewSpace()
	left, right := tab(space, "left"), tab(space, "right")
	defer func() { _, _ = left.Close(ctx), right.Close(ctx) }()

	lease, err := left.Acquire(ctx, lock.AcquireOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stealer, err := right.Acquire(ctx, lock.AcquireOptions{Steal: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-lease.Done() // from now on its owner must not write
	fmt.Println("lost:", errors.Is(lease.Err(), lock.ErrLost))
	fmt.Println("the stealer's token is greater:", stealer.Token > lease.Token)
	fmt.Println("released:", stealer.Release(ctx) == nil, stealer.Err() == nil)
	// Output:
	// lost: true
	// the stealer's token is greater: true
	// released: true true
}

func ExampleError() {
	ctx := context.Background()
	space := locktest.NewSpace()
	left, right := tab(space, "left"), tab(space, "right")
	defer func() { _, _ = left.Close(ctx), right.Close(ctx) }()
	if _, err := left.Acquire(ctx, lock.AcquireOptions{}); err != nil {
		fmt.Println(err)
		return
	}

	_, err := right.Acquire(ctx, lock.AcquireOptions{IfAvailable: true})
	var failure *lock.Error
	switch {
	case errors.Is(err, lock.ErrDenied):
		fmt.Println("somebody else edits")
	case errors.As(err, &failure) && failure.Retryable():
		fmt.Println("try again later")
	}
	// Output: somebody else edits
}

func ExampleBackoff() {
	// Look again after 200 ms, 300 ms, 450 ms, …, at most 2 s, until ten minutes are over.
	patient := lock.AcquireOptions{
		Timeout: 10 * time.Minute,
		Backoff: lock.Backoff{
			InitialDelay: 200 * time.Millisecond,
			MaxDelay:     2 * time.Second,
			Jitter:       lock.NoJitter,
			MaxRetries:   lock.Unlimited,
		},
	}
	m := tab(locktest.NewSpace(), "left")
	lease, err := m.Acquire(context.Background(), patient)
	fmt.Println(lease.Mode, err)
	_ = m.Close(context.Background())
	// Output: exclusive <nil>
}
