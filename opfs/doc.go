// Package opfs stores what a page keeps in its browser: locks and lease records in the origin private file system, for
// browsers that have no Web Locks, lease records beside Web Locks for those that do, and the files of AutoSave.
//
// Everything lies under one folder, the project's root:
//
//	<root>/.lock          the table of holders, waiters and leases
//	<root>/.alive/        a file for each client that is in the table
//	<root>/autosave/      contents, history and drafts: see docs/files.md
//
// One file has the locks of all names. So a request of several names is granted in one step, and a query
// sees one moment. No file has to be removed when a name is no longer used. Such a removal
// would not be safe: between closing a file and removing it, another client may
// have written to it.
//
// [Files] are the files of AutoSave, and [Database] keeps the same files in IndexedDB where a page has no files. The
// scripts beside the Go code write them, mostly in a worker. The rest of this comment is about the locks.
//
// # Guarantees
//
//   - A client reads or changes the table only under a sync access handle on the file. Every engine gives this handle
//     to one opener at a time.
//   - A client may keep that handle between its steps. It closes the handle as soon as another client asks for it, and
//     after a tenth of a second without a step (tables.js).
//   - An operation is answered after the write that contains it, and in the order in which the client began its operations.
//   - A table is written beside the one before it, never over it. A program that ends at any byte of a write leaves the
//     old table or the new one.
//   - A client is in the table only while it keeps its file in .alive open. The browser closes that file when the
//     client's worker ends, however it ends. The next client that is blocked by a dead client removes it from the
//     table.
//   - A table that is missing, torn or unreadable counts as held by others until every living client has reported its
//     locks, or the TTL has passed.
//
// # Parts
//
// FileLocks has the methods of lock.Locker and lock.Records. Each of its parts has one concern and a state of its own:
//
//   - steps reads and changes the table, one step at a time. A session is the table during one step.
//   - line is the order of this client's operations. Operations that wait at the same time are made in one step, so the table is
//     written once for all of them.
//   - tableFile is the file: its handle, its last known content, and the compare-and-swap.
//   - requests are the waiters and grants of this client, liveness is what it knows of the life of the others.
//   - questions are asked before a settled query.
//   - maintenance has the goroutine that looks at the table when no operation does.
//
// # Limits
//
// A client that lives but does not run, as in a frozen tab, cannot notice that its lease was taken over: stores must
// check the token of the lease. A program that opens the file by other means, or clears the storage of the site, can
// break these guarantees. Clients notice it at their next look at the table, a second later at most, or at the next renewal of a lease
// over Web Locks.
package opfs
