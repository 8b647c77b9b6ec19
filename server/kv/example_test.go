package kv_test

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/server/kv"
)

// raise reads the counter, decides, and commits if nothing changed meanwhile. Otherwise it starts again.
func raise(ctx context.Context, store *kv.Store) error {
	for {
		old, _, err := store.Get(ctx, "counter")
		if err != nil {
			return err
		}
		unchanged := kv.Absent("counter")
		if old.Found() {
			unchanged = kv.Unchanged(old)
		}
		done, err := store.Commit(ctx, kv.Txn{
			If:   []kv.Cond{unchanged},
			Then: []kv.Op{kv.Put("counter", append(old.Value, '|'))},
		})
		if err != nil || done.Held {
			return err
		}
	}
}

// A counter that several processes may raise: read, decide, commit if nothing changed meanwhile, else start again.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "kv")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := kv.Open(ctx, kv.Config{DataDir: dir})
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	for range 3 {
		if err := raise(ctx, store); err != nil {
			panic(err)
		}
	}
	counter, revision, err := store.Get(ctx, "counter")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, created at %d, now %d\n", counter.Value, counter.Created, revision)

	// Watch delivers the changes after the revision that was read.
	ctx, stop := context.WithCancel(ctx)
	err = store.Watch(ctx, "counter", counter.Created, func(changes []kv.Change) error {
		for _, c := range changes {
			fmt.Printf("%s at %d\n", c.Value, c.Modified)
			if c.Modified == revision {
				stop()
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// |||, created at 2, now 4
	// || at 3
	// ||| at 4
	// context canceled
}
