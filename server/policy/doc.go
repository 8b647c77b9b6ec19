// Package policy decides which users may read, lock, write and break locks.
//
// # Rules
//
// A policy is a list of rules. The first rule that matches decides; if none matches, nothing is allowed. A rule is a
// line:
//
//	# who          path               what they may do
//	user:root      *                  admin
//	group:editors  documents/blog-*   read lock write
//	signed-in      documents          read lock write max-ttl=10m
//	anyone         documents/public   read
//
// The first word of a rule is user:NAME, group:NAME, signed-in or anyone. A path consists of components with slashes
// between them; it matches the place itself and everything below it. A component is literal, a prefix followed by *, or
// * alone. A slash, a blank, a star and a percent sign inside a component are escaped as %2F, %20, %2A and %25.
//
// Lock, write and break include read, and admin includes everything. A user therefore never meets the lock of a place
// that the user may not read.
//
// # Places
//
// An operation on a place affects everything below it, so it needs the permission there too: see [Policy.MayBelow].
package policy
