// Package remote also holds a project's lease on a Holdfast server, so that the lease is valid between machines. A
// [Document] is a [lock.Locker] and [lock.Records] over another backend and over the server. The other backend decides
// between the tabs of one browser, and the server decides between browsers.
//
// Places of the project, shared leases and slots are locks of the server, below the document: see [Document.Lock].
//
// The local lock is taken first and released last. For the server the browser's session is one owner, so the local lock
// separates its tabs. Each grant has a token of its own. The server refuses a former holder because of its old token,
// in this browser or another.
//
// The package is pure Go. It sends through a [Server], which the browser implements with fetch and a Go program may
// implement with net/http.
package remote
