// Package lock is the domain of Holdfast: leases on a project, kept by a
// heartbeat, told by events.
//
// A [Manager] answers one question, may this owner write?, over one or more
// backends. A backend is a [Locker], which decides who holds, and [Records],
// which tell others who holds and hand out fencing tokens. The package is pure
// Go: it knows neither browsers nor files nor servers; adapters for those live
// elsewhere and pass the suite in lock/locktest.
//
// # What is guaranteed
//
//   - While a lease has not ended, no other lease of the same resource exists
//     in a conflicting mode, as far as the Locker keeps its promise.
//   - A lease ends at its TTL at the latest, measured on the monotonic and the
//     wall clock alike; it is never renewed after that.
//   - Whoever waits has its answer within AcquireOptions.Timeout.
//   - A grant that nobody waits for any more is given back.
//   - Every listener sees all events in one order.
//
// # What is not
//
// A lease that ended is noticed at the next look at the clock: a process that is
// suspended cannot notice anything. Stores must therefore check the fencing
// token (Lease.Token) inside their commit, as Martin Kleppmann describes in "How
// to do distributed locking" (2016).
package lock
