// Package kv is the only place that touches etcd: a store of keys with transactions over version checks, reads of
// ranges, watches that resume, and leases. [Open] starts an etcd inside this process or connects to a cluster;
// what follows is the same for both.
//
// # Revisions
//
// Every committed change gives the whole store a new revision, one higher than the last. An [Entry] bears the
// revision that created it and the one that changed it last; a deleted key that is put again is created anew. Reads
// are linearizable: they see every change that was committed before they began.
//
// # Transactions
//
// A [Txn] checks conditions and then runs one list of operations or the other, at one revision, with nothing in
// between. That is all there is to build on: there are no locks here. Read, decide, commit under the condition that
// what was read is unchanged ([Unchanged], [Absent]), and start again when the condition failed.
//
// A transaction may not change one key twice, and holds at most [MaxOps] conditions or operations and
// [MaxRequest] bytes.
//
// # Errors
//
// [Store.Commit] that fails with an error leaves its outcome open: the change may have been made. A caller who must
// know reads again. [ErrUnavailable] stands for every error of the network or the cluster; a later call may succeed.
package kv
