// Package client locks documents and places on a Holdfast server, and reads and writes contents there.
//
//	c, err := client.New(client.Config{URL: "https://locks.example.com", Key: os.Getenv("HOLDFAST_API_KEY"), Name: "nightly import"})
//	…
//	defer c.Close(context.Background())
//	lease, err := c.Acquire(ctx, client.Request{Document: "plan", Wait: time.Minute})
//	…
//	defer lease.Release(context.WithoutCancel(ctx))
//	_, err = c.Put(ctx, lease.Fence(), "plan", text, client.PutOptions{})
//
// # Guarantees
//
// A [Lease] is renewed in the background until it is released. [Lease.Lost] is closed before the server may grant the lock to another
// owner, by the faster of the process's two clocks; [Lease.Err] reads both clocks when it is called. A process that was suspended may
// continue to work for a moment before it notices the loss. So contents are written under the token of the lease, which the server
// checks in the transaction that writes: the server never stores a write of a former holder.
//
// Every request names its acquisition: an acquisition has a random ticket, and renewals, releases and writes name the lease or the
// token. A request that the network delays or repeats affects no other acquisition, so this package repeats requests that were not answered.
//
// # Limits
//
// The lock does not protect other systems to which the holder writes. Send them the token of the lease, and let them refuse a token lower
// than the highest that they have seen.
//
// The client notices that an administrator has broken its lock at the next renewal, after a third of the TTL at most.
//
// # Owners
//
// Two acquisitions exclude each other, even in one [Client]. A nested acquisition uses the context of its outer lease: see [Lease.Context].
package client
