// Package locks is the lock table: who may write where, in a tree of paths, for all servers on one store.
//
// A lock on a path takes the path itself in the mode asked for and shares every ancestor, as in the multiple
// granularity locking of Gray, Lorie, Putzolu and Traiger (1976). So a lock on "a" keeps everybody out of "a/b", and
// locks on "a/b" and "a/c" do not touch each other. Several paths are taken at once or not at all. The lock on a document
// is the exclusive one on the path documents/{room}.
//
// # What is guaranteed
//
//   - Grants, extensions, releases and expiries are each one transaction of the store, under the condition that nothing
//     in their way is there: not even servers that race grant a parent and its child, or one path twice.
//   - A lease's token is the revision that granted it: greater than that of every earlier grant, of any path.
//   - A lease ends at its TTL after the last extension, never earlier, whichever server it went to. See [Table.Due].
//   - Waiters are served in the order of arrival, over all servers. No waiter overtakes another, unless the one ahead waits
//     for it or is away: a place in line outlasts its request and its server, see [Request.Ticket].
//   - A deadlock ends: the request that closes it fails with [ErrDeadlock]. Package waitgraph says what counts as one.
//   - The cost of a waiter does not depend on how many others wait. It costs nothing to those that do not wait with it.
//
// # What is not
//
// A holder that was suspended past its TTL does not know it. Whatever it writes must be checked against its token in
// the transaction that writes; [Table.Fence] is that check.
//
// A server that has just started has not seen when the leases it finds were extended. It trusts the time that the
// store has for them, and so the wall clocks of the servers that wrote them.
//
// # In the store
//
// A claim, locks/claim/<path>/!x (exclusive), !x#<slots>#<slot> or !s<lease> (shared), says who holds. It is never changed,
// only created and deleted, so the revision that created it is the token. The heartbeat is beside it, under locks/beat/, and
// those who wait are under locks/wait/; what their places are known by is under locks/stub/, and locks/gone/ has the tickets
// of acquisitions that have ended. Components are percent-encoded
// and never begin with "!", so what is below a path is one range of keys, and that it is empty is one condition of a
// transaction.
package locks
