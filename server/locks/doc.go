// Package locks is the lock table: it decides who may write where in a tree of paths, for all servers on one store.
//
// A lock on a path takes the path itself in the requested mode and shares every ancestor, as in the multiple
// granularity locking of Gray, Lorie, Putzolu and Traiger (1976). So a lock on "a" excludes others from "a/b", and
// locks on "a/b" and "a/c" are independent. A request takes all its paths or none. The lock on a document is the
// exclusive lock on the path documents/{id}.
//
// # Guarantees
//
//   - Each grant, extension, release and expiry is one transaction of the store, on the condition that nothing conflicts with it.
//     Even racing servers never grant a parent and its child, or one path twice.
//   - A lease's token is the revision of its grant. It is greater than that of every earlier grant, of any path. Only grants of
//     different holders that do not exclude each other may have the same token.
//   - A lease ends at its TTL after the last extension, never earlier, whichever server extended it. See [Table.Due].
//   - Waiters are served in order of arrival, over all servers. No waiter overtakes another, unless the one ahead waits for it or
//     is absent. A place in the queue outlives its request and its server, see [Request.Ticket].
//   - A deadlock ends: the request that closes it fails with [ErrDeadlock]. Package waitgraph defines what a deadlock is.
//   - The cost of a waiter does not depend on the number of other waiters. It adds no cost to requests without a conflict with it.
//
// # Limits
//
// A holder that was suspended past its TTL does not know it. The transaction that makes its writes must check its
// token; [Table.Fence] returns that check.
//
// A server that has just started has not seen when existing leases were extended. It trusts the times in the store,
// and so the wall clocks of the servers that wrote them.
//
// # In the store
//
// A claim, locks/claim/<path>/!x (exclusive), !x#<slots>#<slot> or !s<lease> (shared), names a holder. It is only
// created and deleted, never changed, so the revision that created it is the token. Its heartbeat is under
// locks/beat/. Waiters are under locks/wait/, and the stubs that identify their places are under locks/stub/.
// locks/gone/ has the tickets of acquisitions that have ended, and locks/asked/ those of shared leases and of slots.
// A server writes locks/heard to learn the present revision.
// Path components are percent-encoded and never begin with "!". So everything below a path is one range of keys, and
// one condition of a transaction checks that the range is empty.
package locks
