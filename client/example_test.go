package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/client"
)

// A program changes a document that pages edit too.
func Example() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: "https://locks.example.com", Key: os.Getenv("HOLDFAST_API_KEY"), Name: "nightly import"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	err = c.With(ctx, client.Request{Document: "plan", Wait: time.Minute}, func(ctx context.Context, l *client.Lease) error {
		before, err := c.Get(ctx, "plan", client.GetOptions{})
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		_, err = c.Put(ctx, l.Fence(), "plan", append(before.Data, "imported\n"...), client.PutOptions{})
		return err
	})
	if errors.Is(err, client.ErrTimeout) {
		fmt.Println("somebody edits the plan; the import runs again tomorrow")
	}
}

// At most three workers at once, and each ends when its slot is lost.
func ExampleClient_Acquire() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	lease, err := c.Acquire(ctx, client.Request{Paths: [][]string{{"workers"}}, Slots: 3, Wait: client.Forever})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lease.Release(ctx) }()
	select {
	case <-lease.Lost():
		fmt.Println(lease.Err())
	case <-time.After(time.Minute): // the work
	}
}

// A lock within a lock. The server ends it with a deadlock error if two programs lock two documents in different orders.
func ExampleLease_Context() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close(ctx) }()
	err = c.With(ctx, client.Request{Document: "from", Wait: client.Forever}, func(ctx context.Context, _ *client.Lease) error {
		return c.With(ctx, client.Request{Document: "to", Wait: client.Forever}, func(context.Context, *client.Lease) error {
			return nil // move something
		})
	})
	if errors.Is(err, client.ErrDeadlock) {
		fmt.Println("another program moves between them; begin again")
	}
}

func ExampleNew() {
	_, err := client.New(client.Config{URL: "locks.example.com"})
	fmt.Println(err)
	// Output: connect locks.example.com: the URL must be the server's address, such as https://locks.example.com (invalid_request)
}
