package autosave_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// memory is the configuration of a page in a world of its own.
func memory() autosave.Config {
	m, err := lock.NewManager(lock.Config{
		OwnerName: "left",
		Backends:  []lock.Backend{{Strategy: lock.WebLock, Resource: "project", Locker: locktest.NewSpace().Client("left")}},
	})
	if err != nil {
		panic(err)
	}
	return autosave.Config{
		Store:    autosave.NewLayout(autosavetest.NewDisk().Client(), autosavetest.SHA256),
		Locks:    m,
		Snapshot: func(context.Context) (autosave.Content, error) { return autosave.Bytes("what the editor shows"), nil },
	}
}

func ExampleSaver() {
	ctx := context.Background()
	saver, err := autosave.New(ctx, memory())
	if err != nil {
		fmt.Println(err)
		return
	}
	saver.MarkDirty() // at every change
	g, err := saver.FlushNow(ctx)
	fmt.Println(g.Bytes, g.Current, err)
	content, err := saver.Read(ctx, autosave.Current)
	fmt.Println(string(content), err)
	fmt.Println(saver.Dispose(ctx))
	// Output:
	// 21 true <nil>
	// what the editor shows <nil>
	// <nil>
}

func ExampleLayout() {
	ctx := context.Background()
	store := autosave.NewLayout(autosavetest.NewDisk().Client(), autosavetest.SHA256)
	_, err := store.Commit(ctx, autosave.Commit{Content: autosave.Bytes("old"), Token: 1})
	fmt.Println(err)
	// Another page has become the editor, under a higher token.
	fmt.Println(store.Fence(ctx, 2))
	_, err = store.Commit(ctx, autosave.Commit{Content: autosave.Bytes("late"), Token: 1})
	fmt.Println("refused:", errors.Is(err, autosave.ErrStaleToken))
	// Output:
	// <nil>
	// <nil>
	// refused: true
}

func ExampleError() {
	store := autosave.NewLayout(autosavetest.NewDisk().Client(), autosavetest.SHA256)
	_, err := store.Read(context.Background(), "1-1")
	var failure *autosave.Error
	fmt.Println(errors.Is(err, autosave.ErrNotFound), errors.As(err, &failure) && failure.Retryable())
	// Output: true false
}
