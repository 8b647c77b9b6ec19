// Package lock is the domain of Holdfast: leases on a project, kept alive by a heartbeat and reported by events.
//
// A [Manager] answers one question over one or more backends: may this owner write? A backend consists of a [Locker]
// and of [Records]. The Locker decides which client holds the lock. The Records show the holder to others and hand out
// fencing tokens. The package is pure Go and knows neither browsers nor files nor servers. Adapters for those are in
// other packages and pass the suite in lock/locktest.
//
// # Guarantees
//
//   - As long as the Locker keeps its contract, a lease excludes every other lease of the same resource in a
//     conflicting mode, until it ends.
//   - A lease ends at its TTL at the latest, on the monotonic and the wall clock alike. It is never renewed after that.
//   - A waiter gets an answer within AcquireOptions.Timeout.
//   - A grant that nobody waits for any more is given back.
//   - Every listener receives all events in one order.
//
// # Limits
//
// The holder notices the end of its lease when it next looks at the clock: a suspended process notices nothing. Stores
// must therefore check the fencing token (Lease.Token) inside their commit, as Martin Kleppmann describes in "How to do
// distributed locking" (2016).
package lock
