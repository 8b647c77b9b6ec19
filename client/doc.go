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
// A [Lease] is renewed in the background until it is released. [Lease.Lost] is closed no later than the server may grant the lock to
// somebody else, by whichever of the process's two clocks is further; [Lease.Err] looks at the clocks when it is called. A process that was
// suspended may work on for a moment before it notices. So contents are written under the token of the lease, which the server checks in
// the transaction that writes: nothing that a former holder sends is ever stored.
//
// Every request names what it is about: an acquisition has a random ticket, and renewals, releases and writes name the lease or the
// token. A request that the network delays or repeats touches no other acquisition, so this package repeats requests that were not answered.
//
// # Limits
//
// The lock says nothing about other systems that the holder writes to. Give them the token of the lease, and let them refuse a lower one
// than they have seen.
//
// A lock that an administrator breaks is noticed at the next renewal, after a third of its TTL at most.
//
// # Owners
//
// Two acquisitions exclude each other, of one [Client] too. A nested one says so by its context: see [Lease.Context].
package client
