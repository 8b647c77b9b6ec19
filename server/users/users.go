// Package users says which user a request is of.
//
// A user is the name beside an API key, the one that a trusted proxy names, or the subject of an OIDC token. A session belongs to a user:
// the same secret in the hands of two users is two owners.
package users

// User is a person or a program that has signed in. The zero value is nobody.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
}

// SignedIn reports whether it is somebody.
func (u User) SignedIn() bool { return u.Name != "" }
