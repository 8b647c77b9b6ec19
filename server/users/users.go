// Package users finds the user of a request.
//
// A user is the name beside an API key, the name that a trusted proxy sets, or the subject of an OIDC token. A session
// belongs to a user: the same secret of two users is two owners.
package users

// User is a person or a program that has signed in. The zero value is nobody.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
}

// SignedIn reports whether the user has signed in.
func (u User) SignedIn() bool { return u.Name != "" }
