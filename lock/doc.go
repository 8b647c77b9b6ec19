// Package lock is the domain of Holdfast: leases on a project, kept alive by a heartbeat and reported by events.
//
// A [Manager] answers one question, may this owner write?, over one or more backends. A backend consists of a [Locker],
// which decides who holds the lock, and of [Records], which show the holder to others and hand out fencing tokens. The
// package is pure Go and knows neither browsers nor files nor servers. Adapters for those are in other packages and
// pass the suite in lock/locktest.
//
// # Guarantees
//
//   - While a lease has not ended, no other lease of the same resource exists in a conflicting mode, as long as the
//     Locker keeps its contract.
//   - A lease ends at its TTL at the latest, by the monotonic and the wall clock alike; it is never renewed after that.
//   - A waiter gets an answer within AcquireOptions.Timeout.
//   - A grant that nobody waits for any more is given back.
//   - Every listener receives all events in one order.
//
// # Limits
//
// The end of a lease is noticed at the next look at the clock: a suspended process cannot notice anything. Stores must
// therefore check the fencing token (Lease.Token) inside their commit, as Martin Kleppmann describes in "How to do
// distributed locking" (2016).
package lock
