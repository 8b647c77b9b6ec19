// Package kv is the only package that uses etcd. It is a store of keys with transactions over version checks, range
// reads, watches that resume, and leases. [Open] starts an etcd inside this process or connects to a cluster.
// Everything below holds for both.
//
// # Revisions
//
// Every committed change gives the whole store a new revision, one higher than the last. An [Entry] contains the
// revision that created its key and the revision that last changed it. A put after a deletion creates the key again.
// Reads are linearizable: a read sees every change that was committed before it began.
//
// # Transactions
//
// A [Txn] checks conditions and then runs one of two lists of operations, at one revision and atomically. The store
// has no locks. Callers read, decide, commit under the condition that the entries read are unchanged ([Unchanged],
// [Absent]), and start again when the condition fails.
//
// Transactions that wait at the same moment and are independent share a revision, unless they have the same [Txn.Apart].
//
// A transaction must not change the same key twice. It holds at most [MaxOps] conditions or operations and
// [MaxRequest] bytes.
//
// # Errors
//
// When [Store.Commit] fails with an error, its outcome is unknown: the change may have been made. A caller that must
// know reads again. [ErrUnavailable] wraps every error of the network or the cluster; a later call may succeed.
package kv
