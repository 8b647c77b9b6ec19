// Package policy says who may do what.
//
// # Rules
//
// A policy is a list of rules, and the first that matches decides; where none does, nothing is allowed. A rule is a line:
//
//	# who          path               what they may do
//	user:root      *                  admin
//	group:editors  documents/blog-*   read lock write
//	signed-in      documents          read lock write max-ttl=10m
//	anyone         documents/public   read
//
// The first word of a rule is user:NAME, group:NAME, signed-in or anyone. A path is its components with slashes between them; it matches the place itself and
// everything below it. A component is literal, a beginning followed by *, or * alone. A slash, a blank, a star and a percent sign inside a
// component are escaped as %2F, %20, %2A and %25.
//
// Lock, write and break bring read with them, and admin brings everything: so nobody meets the lock of a place that they may not read.
//
// # Places
//
// An operation on a place reaches everything below it, so it needs the permission there too: see [Policy.MayBelow].
package policy
