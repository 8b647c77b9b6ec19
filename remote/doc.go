// Package remote holds a project's lease on a Holdfast server too, so that it holds between
// machines: a [Document] is a [lock.Locker] and [lock.Records] over another backend, which decides
// between the tabs of one browser, and the server, which decides between browsers.
//
// Places of the project, shared leases and slots are locks of the server's own, below the document: see [Document.Lock].
//
// The local lock is taken first and given back last. The browser's session is one owner for the
// server, so the local lock is what keeps its tabs apart; each grant has a token of its own all the
// same, and whoever held before, in this browser or another, is refused with the old one.
//
// The package is pure Go. It sends through a [Server], which the browser implements with fetch and a
// Go program may implement with net/http.
package remote
